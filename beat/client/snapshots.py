"""What was read in one step: a schedule at one moment, and how far a job is."""

from __future__ import annotations

import marshal
import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

from beat import clock, ledger
from beat.errors import BadInstant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime


class Lines:
    """The lines of a ledger, newest first, kept packed page by page: 200,000 of them take a few MB.

    They can be read any number of times, in both directions.
    """

    def __init__(self, pages: Iterable[Sequence[bytes]]) -> None:
        self._pages = [zlib.compress(marshal.dumps(list(page)), 1) for page in pages if page]

    def __iter__(self) -> Iterator[bytes]:
        for page in self._pages:
            yield from marshal.loads(zlib.decompress(page))  # noqa: S302 (written here)

    def __reversed__(self) -> Iterator[bytes]:
        for page in reversed(self._pages):
            yield from reversed(marshal.loads(zlib.decompress(page)))  # noqa: S302 (written here)

    def __bool__(self) -> bool:
        return bool(self._pages)


class Entries:
    """The lines that are beat's own, as entries, newest first: each is read when it is asked for."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[ledger.Entry]:
        return filter(None, map(ledger.read, self._lines))

    def __reversed__(self) -> Iterator[ledger.Entry]:
        return filter(None, map(ledger.read, reversed(self._lines)))

    def landmarks(self) -> list[ledger.Changed | ledger.Acted]:
        """Return the changes and the actions, oldest first, without reading all that became of ticks and runs."""
        found = (ledger.read(line) for line in reversed(self._lines) if not _OF_TICKS.match(line))
        return [entry for entry in found if isinstance(entry, ledger.Changed | ledger.Acted)]


_OF_TICKS = re.compile(rb'\{"type":"(?:enqueued|skipped|waiting|reopened|succeeded|failed|stopped|lost)",')


class Snapshot(NamedTuple):
    """One schedule at one moment."""

    state: Mapping[bytes, bytes]
    """Its hash; empty when there is no such schedule."""
    lines: Lines
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
    def entries(self) -> Entries:
        """The lines that are beat's own, newest first."""
        return Entries(self.lines)


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
