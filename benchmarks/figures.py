"""What a benchmark yields: figures, each with every repetition that it was taken from."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True)
class Figure:
    """One quantity of one contender under one set of circumstances."""

    suite: str
    what: str
    """The quantity, in words that a table can show: `fires per second`, `lateness p99`."""
    values: tuple[float, ...]
    """One for each repetition, in the order in which they were taken."""
    unit: str
    who: str = "beat"
    at: Mapping[str, int | str] = field(default_factory=dict)
    """The circumstances: `{"schedules": 10_000, "queues": 10}`."""

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Half of the distance between the lowest and the highest, as a part of the median."""
        return (max(self.values) - min(self.values)) / 2 / abs(self.median) if self.median else 0.0


class Figures(list[Figure]):
    """All of a run, to be looked up by what they are about."""

    def find(self, what: str, at: Mapping[str, int | str] | None = None, who: str = "beat") -> Figure | None:
        """The first that fits, whatever its other circumstances; None if it was not measured."""
        wanted = (at or {}).items()
        found = (each for each in self if (each.what, each.who) == (what, who))
        return next((each for each in found if wanted <= each.at.items()), None)

    def median(self, what: str, at: Mapping[str, int | str] | None = None, who: str = "beat") -> float | None:
        """Its median."""
        found = self.find(what, at, who)
        return found.median if found else None

    def of(self, suite: str) -> Iterable[Figure]:
        """Those of one suite."""
        return (each for each in self if each.suite == suite)


@dataclass(frozen=True)
class Scale:
    """How much is measured: `quick` is for people who wait, the other for the documentation."""

    quick: bool

    def pick(self, full: tuple[int, ...], quick: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes, or numbers of repetitions, of this scale."""
        return quick if self.quick else full


Say = Callable[[str], object]
"""Takes note of what is being measured, so that whoever waits sees it, until the next one."""


class Suite(Protocol):
    """A module of `benchmarks.suites`: `TITLE` and `run`."""

    TITLE: str

    def run(self, scale: Scale, say: Say) -> Iterator[Figure]:
        """Measures, and yields each figure as soon as it is known."""
