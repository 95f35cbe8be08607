"""Where examples/policies run: a Redis of its own, a real beat, real workers, and what they have written down."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from click.testing import CliRunner

from beat.cli import why
from beat.dev import embedded
from tests.resilience.outcomes.ledgers import OUTCOMES, Ledgers
from tests.support.facts import wait_until
from tests.support.process_pool import ROOT
from tests.support.rq_worker import Steps, Worker
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.dev.embedded import PrivateRedis

EXAMPLES = sorted(f"examples.policies.{file.stem}" for file in (ROOT / "examples/policies").glob("*.py"))
OF_PLACE = [
    f"examples.policies.{name}" for name in ("broadcast", "follows", "group", "requires", "routes", "slow_lane")
]
PATIENCE_S = 90


class Span(NamedTuple):
    """A run, as its worker saw it."""

    job: str
    start: datetime
    end: datetime


@dataclass
class Place:
    """A Redis of its own, and what beats write there."""

    home: Path
    server: PrivateRedis
    ledgers: Ledgers
    killed: dict[str, str] = field(default_factory=dict)
    """The jobs at which a worker was killed, by the name of what it did."""

    @property
    def redis(self) -> Any:
        return self.ledgers.redis

    def beat(self, *modules: str) -> Beat:
        first, *others = modules
        return Beat(self.home, self.server.url, *others, module=first, PYTHONPATH=str(ROOT))

    def worker(self, *queues: str, options: tuple[str, ...] = ()) -> Worker:
        return Worker(self.server.url, Steps(self.home / "steps.log"), *queues, options=options)

    def lines(self, schedule_id: str, *types: str) -> list[dict[str, Any]]:
        """Those of its ledger, oldest first."""
        return [line for line in self.ledgers.book(schedule_id) if line["type"] in types]

    def ticks(self, schedule_id: str, kind: str = "enqueued") -> list[datetime]:
        return [instant(line["tick"]) for line in self.lines(schedule_id, kind)]

    def runs(self, schedule_id: str) -> list[Span]:
        """Those that have ended, in the order in which they did; one whose worker was killed when beat noticed."""
        ends = self.lines(schedule_id, "succeeded", "failed", "stopped", "lost")
        known = ((end, end["ended"] or end["at"]) for end in ends if end.get("started"))
        return [Span(end["job"], instant(end["started"]), instant(ended)) for end, ended in known]

    def since(self, schedule_id: str, tick: str) -> list[dict[str, Any]]:
        """The verdicts on what came after that tick."""
        return [line for line in self.lines(schedule_id, "enqueued", "skipped") if line["tick"] > tick]

    def fires(self, schedule_id: str, count: int, beat: Beat) -> None:
        """Waits until there were so many jobs."""
        wait_until(
            lambda: self.ledgers.count(schedule_id, "run") >= count,
            PATIENCE_S,
            lambda: f"for {count} of {schedule_id}: {self.ledgers.book(schedule_id)}\n{beat.log[-1500:]}",
        )

    def is_lost(self, job: str, queue: str) -> None:
        """Beat notices that nobody is at it any more; the minutes that this takes pass at once."""
        self.ledgers.let_life_lapse(job, queue)
        wait_until(lambda: self.ledgers.age(job) or self.ends(job), PATIENCE_S, lambda: f"to miss {job}")
        wait_until(lambda: self.ends(job), PATIENCE_S, lambda: f"to lose {job}: {self.ledgers.record(job)}")

    def ends(self, job: str) -> list[dict[str, Any]]:
        """What the ledger says of how it ended."""
        return [line for line in self.ledgers.lines(job) if line["type"] in OUTCOMES]

    def reaches(self, schedule_id: str, state: str) -> None:
        """Waits until the schedule is in that state."""
        wait_until(
            lambda: self.ledgers.state(schedule_id).get("state") == state,
            PATIENCE_S,
            lambda: f"for {state}: {self.ledgers.state(schedule_id)}",
        )


@contextmanager
def a_place() -> Iterator[Place]:
    home = Path(tempfile.mkdtemp(prefix="beat-"))
    with embedded.start(home / "redis") as server, closing(Ledgers(server.url)) as ledgers:
        yield Place(home, server, ledgers)
    shutil.rmtree(home, ignore_errors=True)


def explained(place: Place, line: dict[str, Any], schedule_id: str) -> None:
    """`beat why` says of a tick that it was skipped, and for the reason that is written down."""
    question = [schedule_id, line["tick"], "--redis-url", place.server.url]
    said, plain = (CliRunner().invoke(why.command, [*question, *form]) for form in ([], ["--json"]))
    assert said.stdout.count("\n") == 1
    assert ": skipped by " in said.stdout
    assert json.loads(plain.stdout)["skipped"]["reason"] == line["reason"]


def instant(text: str) -> datetime:
    """As the ledger writes it."""
    return datetime.fromisoformat(text)
