"""What was read in one step: a schedule at one moment, and how far a job is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import clock, ledger
from beat.errors import BadInstant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


class Snapshot(NamedTuple):
    """One schedule at one moment."""

    state: Mapping[bytes, bytes]
    """Its hash; empty when there is no such schedule."""
    lines: Sequence[bytes]
    """Its ledger, newest first."""
    open_jobs: frozenset[str]
    """The jobs, of all schedules, whose outcome is waited for."""
    running: frozenset[str]
    """The jobs that take up the room of its slot; none where runs may overlap."""
    in_line: tuple[tuple[datetime, str], ...]
    """The ticks that wait, oldest first, each with the job whose success it follows; nothing where that is none."""
    holder: str
    """Whose lock is on it."""
    now: datetime
    """By Redis' clock."""
    problems: tuple[str, ...]
    """What is not of the type it should be, in words."""

    @property
    def waiting(self) -> tuple[datetime, ...]:
        """The ticks that wait, oldest first."""
        return tuple(tick for tick, _ in self.in_line)

    @property
    def entries(self) -> list[ledger.Entry]:
        """The lines that are beat's own, newest first."""
        return [entry for entry in map(ledger.read, self.lines) if entry]


class Progress(NamedTuple):
    """What RQ's hash of a job says while the job is on its way; empty where there is none."""

    status: str
    started_at: str
    worker: str
    queue: str


def in_line(member: str) -> tuple[datetime, str] | None:
    """Of what stands in line as `id tick by`, perhaps with the job that it follows."""
    _, tick, _, after = [*member.split(" "), "", "", "", ""][:4]
    try:
        return clock.read(tick), after
    except BadInstant:
        return None
