"""`rq cron`: the scheduler that comes with RQ. It keeps its times in its own memory and has no lock."""

from benchmarks.peers.contender import PINS, Contender

CONFIG = """\
from rq import cron
from jobs import tick

cron.register(tick, queue_name="default", interval=1)
"""

RQ_CRON = Contender(
    name="rq-cron",
    title=f"rq cron {PINS['rq']['rq']}",
    group="rq",
    queue="rq:queue:default",
    command=("{bin}/rq", "cron", "--url", "{url}", "--path", ".", "cron_config.py"),
    files={"jobs.py": "def tick(): pass\n", "cron_config.py": CONFIG},
)
