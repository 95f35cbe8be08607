"""Run RedBeat: Celery beat with its schedule in Redis and one lock for the whole scheduler, owned by one process.

By default, the lock expires 25 minutes after its owner is killed, and waiting processes check it every 5 minutes. The
second contender is tuned for a quick takeover: the lock expires after 5 s, and they check it every second.
"""

from dataclasses import replace

from benchmarks.peers.celery_beat import APP, CELERY_BEAT
from benchmarks.peers.contender import PINS, Contender

REDBEAT = replace(
    CELERY_BEAT,
    name="redbeat",
    title=f"RedBeat {PINS['celery']['celery-redbeat']}",
    command=("{bin}/celery", "-A", "app", "beat", "--scheduler", "redbeat.RedBeatScheduler", "--pidfile="),
    looks="zrangebyscore",
)
REDBEAT_TUNED = replace(
    REDBEAT,
    name="redbeat-tuned",
    title=f"{REDBEAT.title}, lock 5 s",
    files={"app.py": f"{APP}app.conf.redbeat_lock_timeout = 5\n"},
    command=(*REDBEAT.command, "--max-interval", "1"),
)

EMPTY = """\
import os

from celery import Celery

app = Celery("app", broker=os.environ["PEER_REDIS_URL"])
app.conf.redbeat_redis_url = os.environ["PEER_REDIS_URL"]
"""
SAVE = """\
from datetime import datetime, timedelta, timezone

from app import app
from celery.schedules import schedule
from redbeat import RedBeatSchedulerEntry

last = datetime.now(timezone.utc) - timedelta(hours={hours})
hourly = schedule(3600, app=app)
for n in range({schedules}):
    RedBeatSchedulerEntry(
        f"s{{n}}", "app.tick", hourly, last_run_at=last, options={{"queue": f"q{{n % {queues}}}"}}, app=app
    ).save()
"""


def crowd(schedules: int, queues: int, *, due: bool = True) -> Contender:
    """Return a contender whose schedules are saved beforehand: all due, or with `due=False` as if they just ran."""
    return replace(
        REDBEAT,
        files={"app.py": EMPTY, "save.py": SAVE.format(schedules=schedules, queues=queues, hours=6 if due else 0)},
        queues=tuple(f"q{n}" for n in range(queues)),
        prepare=("{bin}/python", "save.py"),
    )
