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
    values: tuple[float | None, ...]
    """One for each repetition, in the order in which they were taken; None where it failed."""
    unit: str
    who: str = "beat"
    at: Mapping[str, int | str] = field(default_factory=dict)
    """The circumstances: `{"schedules": 10_000, "queues": 10}`."""

    @property
    def known(self) -> tuple[float, ...]:
        """Of the repetitions that did not fail."""
        return tuple(value for value in self.values if value is not None)

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.known)

    @property
    def worst(self) -> float:
        """The highest: for what may not happen even once."""
        return max(self.known)

    @property
    def spread(self) -> float:
        """Half of the distance between the lowest and the highest, as a part of the median."""
        return (max(self.known) - min(self.known)) / 2 / abs(self.median) if self.median else 0.0


def ratio(one: Figure | None, other: Figure | None) -> float | None:
    """How many times the other the one is: the median over the rounds that both have a value of.

    The machine is faster in one quarter of an hour than in the next, and a round is short. Figures that were not
    repeated equally often, or have no round in common, are held against each other by their medians. None if one was
    not measured, or the other is 0.
    """
    if one is None or other is None or not other.median:
        return None
    pairs = zip(one.values, other.values, strict=True) if len(one.values) == len(other.values) else ()
    ratios = [a / b for a, b in pairs if a is not None and b]
    return statistics.median(ratios) if ratios else one.median / other.median


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
