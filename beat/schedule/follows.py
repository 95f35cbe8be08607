"""The rule of a schedule that follows another: it has no times of its own, and ticks when that one has succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beat.config import validators

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


@dataclass(frozen=True)
class Follows:
    """A rule that ticks after every success of the schedule with that id; it has no times of its own."""

    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", validators.identifier(self.id, "follows"))

    def after(self, _instant: datetime) -> None:
        """No tick can be foretold."""

    def before(self, _instant: datetime) -> None:
        """What has been is in the ledger, and nowhere else."""

    def count(self, _a: datetime, _b: datetime) -> int:
        """None that can be foretold."""
        return 0

    def ticks(self, _start: datetime, _end: datetime | None = None) -> Iterator[datetime]:
        """None that can be foretold."""
        return iter(())

    @property
    def meaning(self) -> list[object]:
        """All that decides the ticks, as plain values."""
        return ["follows", self.id]

    def describe(self) -> str:
        """The rule in words."""
        return f"after every success of {self.id}"

    def __str__(self) -> str:
        return f"follows {self.id}"
