"""Run `celery beat`. Each process has its own schedule file and no lock; the documentation says to run only one."""

from dataclasses import replace

from benchmarks.peers.contender import PINS, Contender

APP = """\
import os

from celery import Celery

app = Celery("app", broker=os.environ["PEER_REDIS_URL"])
app.conf.beat_schedule = {"tick": {"task": "app.tick", "schedule": 1.0}}
"""

CELERY_BEAT = Contender(
    name="celery-beat",
    title=f"Celery beat {PINS['celery']['celery[redis]']}",
    group="celery",
    queue="celery",
    push="LPUSH",
    files={"app.py": APP},
    command=("{bin}/celery", "-A", "app", "beat", "--schedule", "schedule-{n}", "--pidfile="),
)

CROWD = """\
import os
from datetime import datetime, timedelta, timezone

from celery import Celery

app = Celery("app", broker=os.environ["PEER_REDIS_URL"])
last = datetime.now(timezone.utc) - timedelta(hours={hours})
app.conf.beat_schedule = {{
    f"s{{n}}": {{
        "task": "app.tick", "schedule": 3600.0, "last_run_at": last, "options": {{"queue": f"q{{n % {queues}}}"}}
    }}
    for n in range({schedules})
}}
"""


def crowd(schedules: int, queues: int, *, due: bool = True) -> Contender:
    """Return a contender whose schedules last ran hours ago, so all are due; with `due=False` they ran just now."""
    return replace(
        CELERY_BEAT,
        files={"app.py": CROWD.format(schedules=schedules, queues=queues, hours=6 if due else 0)},
        queues=tuple(f"q{n}" for n in range(queues)),
    )
