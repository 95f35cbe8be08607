"""`celery beat`: a schedule file for each process, no lock; its documentation says to run only one."""

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
