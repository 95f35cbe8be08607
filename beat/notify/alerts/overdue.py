"""Check for trouble that no event reports: late ticks, runs that do not start or end, and broken schedules.

Only what a rule asks for is read, a few pages per check. A tick's lateness counts from the first check of this
scheduler, so a night without any scheduler causes one alert and not a thousand.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from beat.jobs import job_template
from beat.jobs.observation import Record
from beat.notify.alerts.incidents import Sign
from beat.storage.messages import decoded
from beat.storage.store import glance
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.notify.alerts.incidents import State
    from beat.notify.alerts.rules import Rule
    from beat.storage.store import Store

_PAGE = 200
_TRIED = 5000
"""How many soon-due ticks to read per check."""
_RUNS = 1000
"""About how many open runs to read per check; the next check continues there."""
_WAITS = {"queued", "created"}
_GONE = {"", "retired"}


class _Run(NamedTuple):
    """An open run, as RQ's job hash describes it."""

    job: str
    status: str
    started: datetime | None
    enqueued: datetime | None
    """When RQ enqueued it, if known; later than the fire if the job was enqueued again."""


class Lateness:
    """The overdue checks of one scheduler, with their position in each index."""

    def __init__(self, store: Store, rules: Sequence[Rule], hidden: timedelta) -> None:
        self._store, self._rules, self._hidden = store, rules, hidden
        self.began_at = time.monotonic()
        self._open_at = self._broken_at = self._due_at = 0

    def look(self, now: datetime, known: Mapping[str, State]) -> Iterator[Sign]:
        """Yield signs for everything late that a rule asks for, and for known trouble that is over.

        A sign says how long the trouble has lasted; each rule decides whether that is too long.
        """
        wanted = {event for rule in self._rules for event in rule.troubles}
        if "late_fire" in wanted:
            yield from self._ticks(now, _subjects(known, "late_fire"))
        for event in sorted(wanted & {"late_start", "late_end"}):
            yield from self._ended(now, event, _subjects(known, event))
        if wanted & {"late_start", "late_end"}:
            yield from self._runs(now)
        if "broken" in wanted:
            yield from self._broken(now, _subjects(known, "broken"))

    def _least(self, event: str) -> timedelta:
        """Return the shortest limit that any rule sets for an event."""
        return min(rule.lasts(event) for rule in self._rules if event in rule.troubles)

    def _ticks(self, now: datetime, open_ones: Mapping[str, State]) -> Iterator[Sign]:
        watched, least = timedelta(seconds=time.monotonic() - self.began_at), self._least("late_fire")
        ids = sorted({*self._due(now, clock.to_ms(now - least)), *open_ones})
        told = glance(self._store, ids, fields="state due_at next_run unannounced_at")
        for each, (state, due_at, tick, held) in zip(ids, told, strict=True):
            due = clock.found(due_at) or clock.found(tick)
            if state == "active" and not held and due and now - due >= least:
                facts: Any = {"since": due, "lasted": min(now - due, watched), "tick": tick}
                yield Sign("trouble", "late_fire", each, str(clock.to_ms(due)), now, **facts)
            elif each in open_ones:
                yield Sign(_over(state), "late_fire", each, "", now)

    def _due(self, now: datetime, before: int) -> Iterator[str]:
        """Return the ids that are late by their score, and further ids that may be late.

        A tick that a scheduler has tried to fire has a score later than its due time, so each check also reads the next
        page of soon-due ids.
        """
        client, key = self._store.client, self._store.keys.due
        late: Any = client.zrangebyscore(key, "-inf", before, start=0, num=_PAGE)
        after = clock.to_ms(now + self._hidden)
        tried: Any = client.zrangebyscore(key, f"({before}", after, start=self._due_at, num=_TRIED)
        self._due_at = self._due_at + _TRIED if len(tried) == _TRIED else 0
        return map(decoded, (*late, *tried))

    def _ended(self, now: datetime, event: str, open_ones: Mapping[str, State]) -> Iterator[Sign]:
        for subject, run in zip(open_ones, self._at_rq([each.job for each in open_ones.values()]), strict=True):
            if not _is_at(run, event):
                yield Sign("well", event, subject, "", now, job=run.job)

    def _runs(self, now: datetime) -> Iterator[Sign]:
        found = self._page()
        for (_, record), run in zip(found, self._at_rq([job for job, _ in found]), strict=True):
            for event, since in (
                ("late_start", run.enqueued or clock.found(record.enqueued)),
                ("late_end", run.started),
            ):
                if since and _is_at(run, event):
                    facts: Any = {"since": since, "lasted": now - since, "job": run.job, "tick": record.tick}
                    yield Sign("trouble", event, record.schedule, run.job, now, **facts)

    def _page(self) -> list[tuple[str, Record]]:
        """Return the next page of open runs."""
        client, keys = self._store.client, self._store.keys
        answer: Any = client.zscan(keys.open, self._open_at, count=_RUNS)
        self._open_at, page = answer
        ids = [job for job, _ in page]
        texts: Any = client.hmget(keys.records, ids) if ids else []
        read = ((decoded(job), Record.read(decoded(text or b""))) for job, text in zip(ids, texts, strict=True))
        return [(job, record) for job, record in read if record]

    def _at_rq(self, ids: Sequence[str]) -> list[_Run]:
        with self._store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(job_template.job_key(each), "status", "started_at", "enqueued_at")
            found = pipe.execute(raise_on_error=False)
        read = ([decoded(value or b"") for value in each] if isinstance(each, list) else [""] * 3 for each in found)
        return [
            _Run(job, status, clock.found(started), clock.found(enqueued))
            for job, (status, started, enqueued) in zip(ids, read, strict=True)
        ]

    def _broken(self, now: datetime, open_ones: Mapping[str, State]) -> Iterator[Sign]:
        answer: Any = self._store.client.sscan(self._store.keys.index("broken"), self._broken_at, count=_PAGE)
        self._broken_at, found = answer
        ids = sorted({*map(decoded, found), *open_ones})
        for each, (state, error) in zip(ids, glance(self._store, ids, fields="state last_error"), strict=True):
            if state == "broken":
                yield Sign("trouble", "broken", each, str(clock.to_ms(now)), now, error=error)
            elif each in open_ones:
                yield Sign(_over(state), "broken", each, "", now)


def _over(state: str) -> Literal["well", "gone"]:
    """Return how trouble ends for a schedule in this state: a schedule that is gone gets no recovery message."""
    return "gone" if state in _GONE else "well"


def _is_at(run: _Run, event: str) -> bool:
    return run.status in _WAITS if event == "late_start" else run.status == "started"


def _subjects(known: Mapping[str, State], event: str) -> dict[str, State]:
    """Return the states of known trouble with this event by subject, whichever rule they belong to."""
    named = ((name.split(":", 2), state) for name, state in known.items() if name.count(":") > 1)
    return {parts[2]: state for parts, state in named if parts[1] == event}
