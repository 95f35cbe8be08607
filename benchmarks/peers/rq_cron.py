"""Run `rq cron`, the scheduler of RQ. It keeps its times in memory and has no lock."""

from dataclasses import replace

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
ON_THE_SECOND = replace(
    RQ_CRON, files={**RQ_CRON.files, "cron_config.py": CONFIG.replace("interval=1", 'cron="* * * * * *"')}
)
"""Due on whole seconds: the six fields that croniter understands, and not one second after the last time."""

CROWD = """\
from rq import cron
from jobs import tick

for n in range({schedules}):
    cron.register(tick, queue_name=f"q{{n % {queues}}}", {when})
"""


def crowd(schedules: int, queues: int, *, due: bool = True) -> Contender:
    """Return a contender with intervals, which are all due at the start; with `due=False` they wait for 1 January."""
    when = "interval=3600" if due else 'cron="0 0 1 1 *"'
    return replace(
        RQ_CRON,
        files={**RQ_CRON.files, "cron_config.py": CROWD.format(schedules=schedules, queues=queues, when=when)},
        queues=tuple(f"rq:queue:q{n}" for n in range(queues)),
        command=(*RQ_CRON.command, "--logging-level", "error"),
    )
