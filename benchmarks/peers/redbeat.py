"""RedBeat: Celery beat with its schedule in Redis and one lock for the whole scheduler, held by one process.

As it comes, the lock lives for 25 minutes after its holder is killed, and those who wait look every 5 minutes. The
second contender has both set for a quick takeover: a lock of 5 s, a look every second.
"""

from dataclasses import replace

from benchmarks.peers.celery_beat import APP, CELERY_BEAT
from benchmarks.peers.contender import PINS

REDBEAT = replace(
    CELERY_BEAT,
    name="redbeat",
    title=f"RedBeat {PINS['celery']['celery-redbeat']}",
    command=("{bin}/celery", "-A", "app", "beat", "--scheduler", "redbeat.RedBeatScheduler", "--pidfile="),
)
REDBEAT_TUNED = replace(
    REDBEAT,
    name="redbeat-tuned",
    title=f"{REDBEAT.title}, lock 5 s",
    files={"app.py": f"{APP}app.conf.redbeat_lock_timeout = 5\n"},
    command=(*REDBEAT.command, "--max-interval", "1"),
)
