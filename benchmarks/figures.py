"""Define the figures that a benchmark yields, each with the values of all its repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True)
class Figure:
    """One quantity of one contender under one set of conditions."""

    suite: str
    what: str
    """The quantity, in words that a table can show: `fires per second`, `lateness p99`."""
    values: tuple[float | None, ...]
    """One value for each repetition, in order; None if the repetition failed."""
    unit: str
    who: str = "beat"
    at: Mapping[str, int | str] = field(default_factory=dict)
    """The conditions: `{"schedules": 10_000, "queues": 10}`."""

    @property
    def known(self) -> tuple[float, ...]:
        """Return the values of the repetitions that did not fail."""
        return tuple(value for value in self.values if value is not None)

    @property
    def median(self) -> float:
        """Return the median, which is the figure to quote."""
        return statistics.median(self.known)

    @property
    def worst(self) -> float:
        """Return the highest value, for budgets that must hold every time."""
        return max(self.known)

    @property
    def spread(self) -> float:
        """Return half the distance between the lowest and highest value, as a fraction of the median."""
        return (max(self.known) - min(self.known)) / 2 / abs(self.median) if self.median else 0.0


def ratio(one: Figure | None, other: Figure | None) -> float | None:
    """Return `one` divided by `other`: the median over the rounds in which both have a value.

    Ratios are taken round by round because the speed of the machine changes over minutes, while a round is short.
    Figures with different numbers of repetitions, or without a common round, are compared by their medians. Return None
    if one of them was not measured, or if `other` is 0.
    """
    if one is None or other is None or not other.median:
        return None
    pairs = zip(one.values, other.values, strict=True) if len(one.values) == len(other.values) else ()
    ratios = [a / b for a, b in pairs if a is not None and b]
    return statistics.median(ratios) if ratios else one.median / other.median


class Figures(list[Figure]):
    """The figures of a run, searchable by quantity, contender and conditions."""

    def find(self, what: str, at: Mapping[str, int | str] | None = None, who: str = "beat") -> Figure | None:
        """Return the first figure that matches, whatever its other conditions; None if it was not measured."""
        wanted = (at or {}).items()
        found = (each for each in self if (each.what, each.who) == (what, who))
        return next((each for each in found if wanted <= each.at.items()), None)

    def median(self, what: str, at: Mapping[str, int | str] | None = None, who: str = "beat") -> float | None:
        """Return the median of the first figure that matches; None if it was not measured."""
        found = self.find(what, at, who)
        return found.median if found else None

    def of(self, suite: str) -> Iterable[Figure]:
        """Return the figures of one suite."""
        return (each for each in self if each.suite == suite)


@dataclass(frozen=True)
class Scale:
    """How much is measured: `quick` while you wait, full scale for the documentation."""

    quick: bool

    def pick(self, full: tuple[int, ...], quick: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes, or the numbers of repetitions, for this scale."""
        return quick if self.quick else full


Say = Callable[[str], object]
"""Show what is being measured, until the next call."""


class Suite(Protocol):
    """A module of `benchmarks.suites`: `TITLE` and `run`."""

    TITLE: str

    def run(self, scale: Scale, say: Say) -> Iterator[Figure]:
        """Measure, and yield each figure as soon as it is known."""
