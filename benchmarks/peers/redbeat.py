"""RedBeat: Celery beat with its schedule in Redis and one lock for the whole scheduler, held by one process.

As it comes, the lock lives for 25 minutes after its holder is killed, and those who wait look every 5 minutes. The
second contender has both set for a quick takeover: a lock of 5 s, a look every second.
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
    """So many, saved beforehand, all due, since they ran last hours ago; with `due=False` they ran just now."""
    return replace(
        REDBEAT,
        files={"app.py": EMPTY, "save.py": SAVE.format(schedules=schedules, queues=queues, hours=6 if due else 0)},
        queues=tuple(f"q{n}" for n in range(queues)),
        prepare=("{bin}/python", "save.py"),
    )
