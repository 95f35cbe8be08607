"""rq-scheduler: a sorted set of jobs, moved to the queue by whoever holds a lock for that pass.

It looks every 60 s unless told otherwise; four times a second, it can keep up with a schedule of one second.
"""

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
    files={"jobs.py": "def tick(): pass\n", "register.py": REGISTER},
)
