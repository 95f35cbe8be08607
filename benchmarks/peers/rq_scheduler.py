"""Run rq-scheduler. It keeps jobs in a sorted set, and the process that owns the lock moves due jobs to the queue.

By default it looks every 60 s. At four times a second, it can keep up with a schedule that is due every second.
"""

from dataclasses import replace

from benchmarks.peers.contender import PINS, Contender

REGISTER = """\
import sys
from datetime import datetime

from redis import Redis
from rq_scheduler import Scheduler

scheduler = Scheduler(connection=Redis.from_url(sys.argv[1]))
scheduler.schedule(datetime.utcnow(), "jobs.tick", interval=1)
"""

RQ_SCHEDULER = Contender(
    name="rq-scheduler",
    title=f"rq-scheduler {PINS['rq']['rq-scheduler']}",
    group="rq",
    queue="rq:queue:default",
    prepare=("{bin}/python", "register.py", "{url}"),
    command=("{bin}/rqscheduler", "--url", "{url}", "--interval", "0.25"),
    looks="zrangebyscore",
    files={"jobs.py": "def tick(): pass\n", "register.py": REGISTER},
)

CROWD = """\
import sys
from datetime import datetime, timedelta

from redis import Redis
from rq_scheduler import Scheduler

redis = Redis.from_url(sys.argv[1])
due = datetime.utcnow() + timedelta(hours={hours})
for begin in range(0, {schedules}, 1000):
    with redis.pipeline(transaction=False) as pipe:  # or it would take minutes
        scheduler = Scheduler(connection=pipe)
        for n in range(begin, min(begin + 1000, {schedules})):
            scheduler.schedule(due, "jobs.tick", interval=3600, queue_name=f"q{{n % {queues}}}")
        pipe.execute()
"""


def crowd(schedules: int, queues: int, *, due: bool = True) -> Contender:
    """Return a contender with stored schedules, all due or none for hours; it looks every second, like beat."""
    text = CROWD.format(schedules=schedules, queues=queues, hours=0 if due else 6)
    return replace(
        RQ_SCHEDULER,
        files={**RQ_SCHEDULER.files, "register.py": text},
        queues=tuple(f"rq:queue:q{n}" for n in range(queues)),
        command=("{bin}/rqscheduler", "--url", "{url}", "--interval", "1", "--quiet"),
    )
