"""What Redis knows about a schedule: the part of its hash that decides what happens next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

FIELDS = ("rev", "timing_rev", "state", "next_run", "due_at", "last_run")
OTHERS = (
    "run_count", "manual_count", "last_skip", "override", "unannounced_at", "source", "app",
    "overridden_by",
)  # fmt: skip
_LONG = 16  # more digits than Redis' scripts count with


@dataclass(frozen=True)
class State:
    """As it was read: any value may be missing, or be something that no beat wrote."""

    rev: str
    timing_rev: str
    state: str
    next_run: str
    due_at: str
    last_run: str
    template: bool = True
    """Whether the fields of its jobs are there."""
    run_count: str = ""
    manual_count: str = ""
    last_skip: str = ""
    override: str = ""
    """The rule that an operator has put in the place of the code's, as JSON."""
    unannounced_at: str = ""
    source: str = ""
    app: str = ""
    overridden_by: str = ""

    @classmethod
    def read(cls, values: Sequence[str | bytes | None], *, template: bool = True) -> State | None:
        """From the values of FIELDS, and of OTHERS; None when there is no such schedule."""
        if not any(value is not None for value in values):
            return None
        texts = (value.decode(errors="replace") if isinstance(value, bytes) else value or "" for value in values)
        return cls(**dict(zip((*FIELDS, *OTHERS), texts, strict=False)), template=template)

    @property
    def next(self) -> datetime | None:
        """The next tick, if there is one that can be read."""
        return clock.found(self.next_run) if clock.found(self.due_at) else None

    @property
    def ticked(self) -> int:
        """How many of its ticks became jobs: those that somebody asked for are none."""
        return max(0, _count(self.run_count) - _count(self.manual_count))

    @property
    def last(self) -> datetime | None:
        """The newest tick that was enqueued, was skipped or waits."""
        found = [tick for tick in (clock.found(self.last_run), clock.found(self.last_skip)) if tick]
        return max(found, default=None)


def _count(written: str) -> int:
    return int(written) if written.isascii() and written.isdigit() and len(written) < _LONG else 0
