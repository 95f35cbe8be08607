"""Run beat itself, with default settings, from the environment of this program. Its job ids name the tick."""

from importlib.metadata import version

from benchmarks.peers.contender import Contender

SCHEDULES = """\
from beat import periodic

@periodic(every="1s")
def tick():
    pass
"""

BEAT = Contender(
    name="beat",
    title=f"beat {version('rq-beat')}",
    group=None,
    queue="rq:queue:default",
    push="evalsha",
    files={"schedules.py": SCHEDULES},
    command=("{bin}/python", "-m", "beat", "run", "--redis-url", "{url}", "schedules"),
    tick=lambda job_id: int(job_id.removeprefix("beat_tick_")),
)
