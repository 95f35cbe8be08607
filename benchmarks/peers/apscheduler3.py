"""Run APScheduler 3 with its Redis store. It is a library, so a small program starts it as its documentation does.

APScheduler runs its jobs itself, in ten threads. Here a job only pushes one element. That costs less than enqueueing a
job, which favours APScheduler.
"""

from benchmarks.peers.contender import PINS, Contender

JOBS = """\
import os

from redis import Redis

redis = Redis.from_url(os.environ["PEER_REDIS_URL"])


def tick(queue):
    redis.rpush(queue, "tick")
"""
PROGRAM = """\
import os
from datetime import datetime, timedelta, timezone

from apscheduler.jobstores.redis import RedisJobStore
from apscheduler.schedulers.blocking import BlockingScheduler
from jobs import tick
from redis.connection import parse_url

store = RedisJobStore(**parse_url(os.environ["PEER_REDIS_URL"]))
scheduler = BlockingScheduler(jobstores={{"default": store}}, timezone=timezone.utc)
{jobs}
scheduler.start()
"""
EVERY_SECOND = 'scheduler.add_job(tick, "cron", second="*", args=["q0"])'
CROWD = """\
due = datetime.now(timezone.utc) + timedelta(hours={hours})
for n in range({schedules}):
    scheduler.add_job(
        tick, "interval", hours=1, args=[f"q{{n % {queues}}}"], next_run_time=due, misfire_grace_time=None
    )
"""


def program(jobs: str, queues: int = 1) -> Contender:
    """Return a contender that starts with these jobs."""
    return Contender(
        name="apscheduler",
        title=f"APScheduler {PINS['rq']['apscheduler']}",
        group="rq",
        queue="q0",
        queues=tuple(f"q{n}" for n in range(queues)),
        push="RPUSH",
        files={"jobs.py": JOBS, "program.py": PROGRAM.format(jobs=jobs)},
        command=("{bin}/python", "program.py"),
        looks="zrangebyscore",  # storing takes HEXISTS, HSET and ZADD
    )


APSCHEDULER = program(EVERY_SECOND)


def crowd(schedules: int, queues: int, *, due: bool = True) -> Contender:
    """Return a contender that stores this many jobs as it starts: all due, or with `due=False` none for hours."""
    return program(CROWD.format(schedules=schedules, queues=queues, hours=0 if due else 6), queues)
