"""Check the runs of a ledger: numbered without a gap, each enqueued once and ended once, and consistent with Redis."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from beat.history import broadcast
from beat.history.ledger import Enqueued, Outcome, Reopened, Skipped
from beat.history.records import OPEN
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from beat.history.ledger import Entry
    from beat.history.verify.findings import Findings

_COUNTED = {"succeeded": "success", "failed": "failure", "lost": "failure", "stopped": "stopped"}


class Numbers:
    """A check of the running totals: each decision states how many jobs, or skipped ticks, there were by then."""

    def __init__(self, findings: Findings, *, complete: bool) -> None:
        self.runs = self.skips = 0 if complete else None
        self._findings = findings

    def step(self, entry: Entry) -> None:
        """Check the next entry."""
        say, at = self._findings.say, clock.text(entry.at)
        if isinstance(entry, Enqueued):
            if self.runs is not None and entry.number != self.runs + 1:
                say(entry.at, f"run {entry.number:,} of {at} follows run {self.runs:,}")
            self.runs = entry.number
        elif isinstance(entry, Skipped):
            if self.skips is not None and entry.number != self.skips + entry.count:
                words = f"{self.skips:,} skipped ticks and {entry.count:,} more are not {entry.number:,}"
                say(entry.at, f"the line of {at}: {words}")
            self.skips = entry.number

    def end(self, run_count: int | None, skip_count: int | None, now: datetime) -> None:
        """Compare the newest totals with the schedule's run_count and skip_count."""
        named = (("run_count", run_count, self.runs), ("skip_count", skip_count, self.skips))
        for name, kept, told in named:
            if kept is None:
                self._findings.say(now, f"{name} is not a number")
            elif told is not None and kept != told:
                self._findings.say(now, f"{name} is {kept:,}, and the ledger says {told:,}")


class _Known(NamedTuple):
    """The newest line about a run; a ledger may have 100,000 runs, so little is kept of each."""

    tick: datetime | None
    ended: str = ""
    """The outcome; empty while the run is open."""
    mark: int = 0
    """A hash of the outcome's type, times and attempts, to recognize a repeated outcome."""


class Runs:
    """A check of one schedule's runs; lines that the ledger has trimmed are not missed."""

    def __init__(self, findings: Findings, *, complete: bool) -> None:
        self._findings, self._complete = findings, complete
        self._begun: datetime | None = None
        self._early: list[Outcome | Reopened] = []
        self._known: dict[str, _Known] = {}
        self._enqueued: set[str] = set()
        self._parts: dict[str, list[str]] = {}
        """For each broadcast tick, by its job id, the jobs of its parts."""

    def step(self, entry: Entry, begun: datetime | None) -> None:
        """Check the next entry; `begun` is the first tick of the ledger, if it is known by now."""
        self._begun = begun
        if isinstance(entry, Enqueued):
            self._enqueue(entry)
        elif isinstance(entry, Outcome | Reopened):
            known = self._known.get(entry.job)
            ended = (sys.intern(entry.type), _mark(entry)) if isinstance(entry, Outcome) else ()
            tick = known.tick if known and known.tick == entry.tick else entry.tick
            self._known[entry.job] = _Known(tick, *ended)
            if entry.of and entry.of not in self._parts:
                self._parts[entry.of] = []
            if entry.of and entry.job not in self._parts[entry.of]:
                self._parts[entry.of].append(entry.job)
            if known is None and begun is None:
                self._early.append(entry)
            elif known is None:
                self._refuse_unknown(entry)
            else:
                self._follow(entry, known)

    def _refuse_unknown(self, entry: Outcome | Reopened) -> None:
        if self._is_missed(entry.tick):
            self._say(entry, "has an outcome, and no line says that it was enqueued")

    def _enqueue(self, entry: Enqueued) -> None:
        if entry.job in self._enqueued:
            self._say(entry, "was enqueued twice")
        elif entry.job in self._known:
            self._say(entry, "has an outcome that is older than itself")
        else:
            parts = broadcast.jobs(entry.job, entry.shards)
            self._known |= {job: _Known(entry.tick) for job in parts or [entry.job]}
            self._enqueued.update(parts)
            if parts:
                self._parts[entry.job] = parts
        self._enqueued.add(entry.job)

    def _follow(self, entry: Outcome | Reopened, known: _Known) -> None:
        if entry.tick != known.tick:
            self._say(entry, "has lines of two ticks")
        if isinstance(entry, Reopened):
            was = known.ended or "open"
            if was != entry.was:
                self._say(entry, f"was started again after it had {entry.was}, and it was {was}")
        elif known.ended and _mark(entry) == known.mark:  # a different end may come from RQ, the same one may not
            self._say(entry, "ended twice")

    def end(
        self,
        now: datetime,
        begun: datetime | None,
        *,
        jobs: Mapping[str, datetime | None],
        open_jobs: Collection[str] | None,
        other_jobs: Collection[str],
        counts: Mapping[str, int],
    ) -> None:
        """Compare the runs with the jobs, open runs and counters in Redis."""
        self._begun, later = begun, self._findings.problems
        self._findings.problems = []
        for entry in self._early:  # their problems come before all others
            self._refuse_unknown(entry)
        self._findings.problems += later
        if open_jobs is not None:
            self._await({*open_jobs, *(job for job in other_jobs if job in self._known)}, now)
        if self._complete:
            self._count(counts, now)
        self._find(jobs)

    def _await(self, open_jobs: Collection[str], now: datetime) -> None:
        """Report runs that have no outcome and are not open in Redis, and the reverse."""
        going = {job for job, known in self._known.items() if not known.ended}
        for job in sorted(going.difference(open_jobs)):
            self._findings.say(now, f"job {job} has no outcome, and nobody waits for one")
        waited = {job for job in open_jobs if job not in going and (self._complete or job in self._known)}
        for job in sorted(waited):
            self._findings.say(now, f"job {job} is waited for, and the ledger does not say that it is open")

    def _count(self, counts: Mapping[str, int], now: datetime) -> None:
        """Report counters that are not the sum of the outcomes; call this only for a complete ledger."""
        told = Counter(_COUNTED[state] for state in self._ends() if state in _COUNTED)
        for name in ("success", "failure", "stopped"):
            kept = counts.get(f"{name}_count", told[name])
            if kept != told[name]:
                self._findings.say(now, f"{name}_count is {kept:,}, and the ledger says {told[name]:,}")

    def _ends(self) -> Iterator[str]:
        """Yield how each tick ended, with the parts of a broadcast combined."""
        apart = {job for parts in self._parts.values() for job in parts}
        states = {job: known.ended or OPEN for job, known in self._known.items()}
        yield from (state for job, state in states.items() if job not in apart)
        for parts in self._parts.values():
            yield broadcast.outcome([states[job] for job in parts])

    def _find(self, jobs: Mapping[str, datetime | None]) -> None:
        """Report existing jobs without a line, as far as the ledger goes back."""
        for job, tick in sorted(jobs.items()):
            if tick and job not in self._enqueued and self._is_missed(tick):
                self._findings.say(tick, f"job {job} of {clock.text(tick)} exists, and no line says so")

    def _is_missed(self, tick: datetime | None) -> bool:
        if tick is None:  # a manual run: its time is unknown
            return self._complete
        return self._begun is not None and tick >= self._begun

    def _say(self, entry: Enqueued | Outcome | Reopened, words: str) -> None:
        self._findings.say(entry.at, f"job {entry.job} {words}, at {clock.text(entry.at)}")


def _mark(outcome: Outcome) -> int:
    return hash((outcome.type, outcome.started, outcome.ended, outcome.attempts))
