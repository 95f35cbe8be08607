"""Read the fields of a schedule's hash in Redis that decide what happens next."""

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
_LONG = 16  # more digits than the Lua scripts can count exactly


@dataclass(frozen=True)
class State:
    """The fields as text; any value may be missing, or not written by beat."""

    rev: str
    timing_rev: str
    state: str
    next_run: str
    due_at: str
    last_run: str
    template: bool = True
    """Whether the job template exists in Redis."""
    run_count: str = ""
    manual_count: str = ""
    last_skip: str = ""
    override: str = ""
    """The rule with which an operator overrides that of the code, as JSON."""
    unannounced_at: str = ""
    source: str = ""
    app: str = ""
    overridden_by: str = ""

    @classmethod
    def read(cls, values: Sequence[str | bytes | None], *, template: bool = True) -> State | None:
        """Build the state from the values of FIELDS and OTHERS; return None if the schedule does not exist."""
        if not any(value is not None for value in values):
            return None
        texts = (value.decode(errors="replace") if isinstance(value, bytes) else value or "" for value in values)
        return cls(**dict(zip((*FIELDS, *OTHERS), texts, strict=False)), template=template)

    @property
    def next(self) -> datetime | None:
        """Return the next tick, or None if it or its due time is missing or unreadable."""
        return clock.found(self.next_run) if clock.found(self.due_at) else None

    @property
    def ticked(self) -> int:
        """Return how many ticks became jobs, without manual runs."""
        return max(0, _count(self.run_count) - _count(self.manual_count))

    @property
    def last(self) -> datetime | None:
        """Return the newest tick that was enqueued, was skipped or waits."""
        found = [tick for tick in (clock.found(self.last_run), clock.found(self.last_skip)) if tick]
        return max(found, default=None)


def _count(written: str) -> int:
    return int(written) if written.isascii() and written.isdigit() and len(written) < _LONG else 0
