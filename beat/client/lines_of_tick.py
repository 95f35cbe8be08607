"""Pick the ledger lines that decide what became of one tick, out of as many as 200,000.

A line about another tick is recognised by its beginning, as the scripts write it, and is not parsed as JSON.
`explain.Question` gives the same answer as with the whole ledger.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from beat.history import ledger
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

_PLAIN = re.compile(
    rb'\{"type":"(?:(enqueued)|succeeded|failed|stopped|lost)","tick":"([0-9T:-]{19})Z","job":"[^"\\]*",'
    rb'(?:"by":"(\w*)",(?:"after":"([^"\\]*)",)?)?'
)
_Tick = str
"""A tick as text without the `Z`; such texts sort like the instants."""


class Near:
    """A picker of the lines that matter for the ticks from `start` to before `end`."""

    def __init__(self, start: datetime, end: datetime, waiting: Collection[datetime]) -> None:
        self._start, self._end = _text(start), _text(end)
        self._waiting = {_text(tick) for tick in waiting}
        self._kept: dict[int, bytes] = {}
        self._newest: tuple[_Tick, int, bytes] | None = None  # newest decision since a change
        self._beside: dict[tuple[str, str], tuple[_Tick, int, bytes]] = {}
        self._oldest: dict[str, tuple[int, bytes]] = {}  # the oldest line and the oldest decision
        self._jobs: set[str] = set()  # jobs that kept lines name; the lines of these jobs are kept, too

    def pick(self, lines: Iterable[bytes]) -> list[ledger.Entry]:
        """Return the entries that matter, newest first; `lines` is the whole ledger, newest first."""
        for place, line in enumerate(lines):
            if found := _PLAIN.match(line):
                enqueued, tick, by, after = (part.decode() if part else "" for part in found.groups())
                self._run(place, line, tick, is_decision=bool(enqueued) and by not in ledger.ASKED, after=after)
            else:
                self._any(place, line)
        self._close_era()
        for _, place, line in self._beside.values():
            self._kept[place] = line
        self._kept |= dict(self._oldest.values())
        if self._jobs:
            names = [f'"{job}"'.encode() for job in self._jobs]
            self._kept |= {place: line for place, line in enumerate(lines) if any(name in line for name in names)}
        entries = (ledger.read(self._kept[place]) for place in sorted(self._kept))
        return [entry for entry in entries if entry]

    def _run(self, place: int, line: bytes, tick: _Tick, *, is_decision: bool, after: str) -> None:
        """Process a line about the run of a tick."""
        self._oldest["line"] = place, line
        if self._start <= tick < self._end:
            self._kept[place] = line
        if is_decision:
            self._decision(place, line, tick)
            self._run_beside(place, line, tick, "any")
            if after:
                self._run_beside(place, line, tick, "followed")

    def _any(self, place: int, line: bytes) -> None:
        """Process a line of any kind, including lines that beat did not write."""
        entry = ledger.read(line)
        match entry:
            case ledger.Changed() | ledger.Acted():
                self._kept[place] = line
                self._close_era()
            case ledger.Skipped(tick=tick, last=last, behind=behind):
                if _text(tick) < self._end and self._start <= _text(last):
                    self._kept[place] = line
                    self._jobs.update([behind] if behind else [])
                self._decision(place, line, _text(last))
            case ledger.Waiting(tick=tick, behind=behind):
                if self._start <= _text(tick) < self._end or _text(tick) in self._waiting:
                    self._kept[place] = line
                    self._jobs.update([behind] if behind else [])
                return
            case (
                ledger.Enqueued(tick=tick, after=after)
                | ledger.Outcome(tick=tick, of=after)
                | ledger.Reopened(tick=tick, of=after)
            ) if tick:
                is_decision = isinstance(entry, ledger.Enqueued) and entry.by not in ledger.ASKED
                self._run(place, line, _text(tick), is_decision=is_decision, after=after)
        if entry:
            self._oldest["line"] = place, line

    def _decision(self, place: int, line: bytes, last: _Tick) -> None:
        """Process the decision about a tick or a range of ticks."""
        self._oldest["decision"] = place, line
        if self._newest is None or last > self._newest[0]:
            self._newest = last, place, line

    def _run_beside(self, place: int, line: bytes, tick: _Tick, kind: str) -> None:
        """Process a run whose tick may be the nearest before or after."""
        before, after = self._beside.get((kind, "before")), self._beside.get((kind, "after"))
        if tick < self._start and (before is None or tick > before[0]):
            self._beside[kind, "before"] = tick, place, line
        elif tick >= self._end and (after is None or tick < after[0]):
            self._beside[kind, "after"] = tick, place, line

    def _close_era(self) -> None:
        """Keep the newest decision since the last change of the rule, because it shows where a period ended."""
        if self._newest:
            self._kept[self._newest[1]] = self._newest[2]
        self._newest = None


def _text(instant: datetime) -> _Tick:
    return clock.text(instant)[:-1]
