"""Define the rule of a schedule that follows another and therefore has no predictable ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beat.config import validators

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


@dataclass(frozen=True)
class Follows:
    """A rule that ticks after each success of the schedule with the given id."""

    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", validators.identifier(self.id, "follows"))

    def after(self, _instant: datetime) -> None:
        """Return None, because future ticks are unknown."""

    def before(self, _instant: datetime) -> None:
        """Return None, because past ticks are only in the ledger."""

    def count(self, _a: datetime, _b: datetime) -> int:
        """Return 0, because no tick is predictable."""
        return 0

    def ticks(self, _start: datetime, _end: datetime | None = None) -> Iterator[datetime]:
        """Return an empty iterator, because no tick is predictable."""
        return iter(())

    @property
    def meaning(self) -> list[object]:
        """Return everything that determines the ticks, as plain values."""
        return ["follows", self.id]

    def describe(self) -> str:
        """Return the rule in words."""
        return f"after every success of {self.id}"

    def __str__(self) -> str:
        return f"follows {self.id}"
