"""Verify schedules: compare their ledgers in Redis with counters, records and jobs.

The existing jobs are read first. Each of them already had its line, so a ledger that is read afterwards must contain
that line, unless it was trimmed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from beat.client import schedule_info
from beat.history import verify
from beat.history.history import Fired, assemble
from beat.history.ledger import ASKED
from beat.history.verify import Bonds, Verification, parents_of
from beat.jobs import report
from beat.jobs.run import Run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from beat.client.reader import Archive, Snapshot
    from beat.history.ledger import Acted, Changed
    from beat.storage.keys import Keys

_COUNTS = ("success_count", "failure_count", "stopped_count")


class Audit:
    """The facts with which the ledgers of one schedule, or of all, are compared."""

    def __init__(self, archive: Archive, keys: Keys, schedule_id: str | None = None) -> None:
        self._archive, self._keys = archive, keys
        self._jobs: dict[str, dict[str, datetime | None]] = defaultdict(dict)
        for job_id, run in self._runs(schedule_id):
            asked = run.triggered_by in ASKED  # its line may be trimmed although that of its tick is not
            self._jobs[run.schedule_id][job_id] = None if asked else run.scheduled_for
        self._owners = {job_id: record.schedule for job_id, record in archive.records()}

    def verify(self, schedule_id: str, since: datetime | None = None) -> Verification | None:
        """Compare the schedule's ledger with all that is known; return None if there is no such schedule any more."""
        snapshot = self._archive.snapshot(schedule_id)
        marks = snapshot.entries.landmarks()
        parents = self._parents(snapshot, marks)
        if parents:  # by now, each success in these runs has had its tick here
            snapshot = self._archive.snapshot(schedule_id)
            marks = snapshot.entries.landmarks()
        if not snapshot.state:
            strange = snapshot.problems
            return Verification(schedule_id=schedule_id, expected=0, accounted=0, problems=strange) if strange else None
        found = schedule_info.read(schedule_id, snapshot.state)
        owned, unknown = self._waiting(schedule_id, snapshot.open_jobs)
        told = verify.verify(
            schedule_id,
            snapshot.entries,
            rule=found.rule,
            next_run=found.next_run,
            run_count=found.run_count,
            skip_count=found.skip_count,
            state=found.state,
            now=snapshot.now,
            since=since,
            due_at=found.put_off,
            held=found.state == "paused" or found.unannounced_at is not None,
            waiting=[tick for tick, after in snapshot.in_line if not after],
            jobs=self._jobs.get(schedule_id, {}),
            open_jobs=owned,
            other_jobs=unknown,
            landmarks=marks,
            counts={name: getattr(found, name) for name in _COUNTS},
            bonds=Bonds(parents, [after for _, after in snapshot.in_line if after]),
        )
        return replace(told, problems=(*snapshot.problems, *told.problems))

    def _parents(self, snapshot: Snapshot, landmarks: list[Changed | Acted]) -> dict[str, list[Fired]]:
        """Return the runs of each schedule that it follows, or followed."""
        ids = parents_of(landmarks, schedule_info.read("", snapshot.state).rule)
        told = {each: assemble(each, self._archive.snapshot(each).entries) for each in ids}
        return {each: [line for line in lines if isinstance(line, Fired)] for each, lines in told.items()}

    def _runs(self, schedule_id: str | None) -> Iterator[tuple[str, Run]]:
        """Yield the jobs that RQ has, each with the run that its meta names, if the job id fits that run."""
        for job_id, meta in self._archive.jobs(jobs_begin(self._keys, schedule_id)):
            serializer = "json" if meta.startswith(b"{") else "pickle"  # a pickle never begins like this
            run = Run.read(report.beat_entry(meta, serializer))
            if run and job_id.startswith(jobs_begin(self._keys, run.schedule_id)):
                yield job_id, run

    def _waiting(self, schedule_id: str, open_jobs: Collection[str]) -> tuple[set[str], set[str]]:
        """Return the open jobs whose record names the schedule, and all other open jobs."""
        owned = {job for job in open_jobs if self._owners.get(job) == schedule_id}
        return owned, {*open_jobs} - owned


def jobs_begin(keys: Keys, schedule_id: str | None = None) -> str:
    """Return the text with which the ids of all beat jobs begin, or those of one schedule."""
    return keys.job(schedule_id or "", 0).removesuffix("0" if schedule_id else "_0")
