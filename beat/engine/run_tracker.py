"""Find out from RQ's own records how each run ended, and record each outcome once.

One scheduler at a time checks the runs, whichever gets the lock. `outcomes` decides about what it sees, and `close`
does nothing unless the run is still as it was seen. So a run is closed once, even if a scheduler dies meanwhile.
"""

from __future__ import annotations

import json
import math
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.engine.events import Event
from beat.engine.health import Once
from beat.engine.listening import Hearing
from beat.jobs import job_template, outcomes
from beat.jobs.observation import Record
from beat.jobs.outcomes import Close, Forget, Mark, Reopen
from beat.storage.lifetimes import SEARCH_MS, WATCH_MS
from beat.storage.lock import Lock
from beat.storage.messages import Closing
from beat.storage.runs import Runs
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beat.engine.events import Emit
    from beat.jobs.observation import Sighting
    from beat.jobs.outcomes import Decision
    from beat.storage.runs import Observed
    from beat.storage.store import Store

INTERVAL_MS = 900
"""How soon a run is checked again."""
SEARCH_S = 20
"""How often to search for jobs that vanished from their queue."""
AGE = timedelta(seconds=10)
"""How long a run must have been enqueued before the search covers it."""
BUSY_S = 2
"""How long a scheduler with many ticks to fire checks only the first page of runs."""
_PAGE = 500
_PAGES = 10
_CLOSED_PAGE = 200
_CLOSE_PAGE = 100
_LONG_S = 100


class Watcher:
    """The checks of one thread on the runs in Redis."""

    def __init__(self, store: Store, *, name: str, emit: Emit, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._store, self._name, self._emit, self._is_busy = store, name, emit, is_busy
        self._runs = Runs(store, between=self.turn)  # outcomes are recorded during a long search, too
        self._once, self._hearing = Once(emit), Hearing()
        self._searched_at = self._looked_at = time.monotonic()

    def turn(self) -> None:
        """Check the runs that are due, unless another scheduler has just done so; every `SEARCH_S`, search, too."""
        lock = Lock(self._store.client, self._store.keys.watching, WATCH_MS)
        is_ours = lock.acquire()
        self._hearing.answered()
        if not is_ours:
            return
        seen = self._runs.observe(limit=_PAGE, interval=INTERVAL_MS, closed_limit=_CLOSED_PAGE)
        self.settle(seen)
        for _ in range(_PAGES):
            if seen.looked < _PAGE:
                break
            if self._is_busy() and time.monotonic() - self._looked_at < BUSY_S:  # ticks come first
                lock.release()  # another scheduler may have the time
                return
            seen = self._runs.observe(limit=_PAGE, interval=INTERVAL_MS)
            self.settle(seen)
        self._looked_at = time.monotonic()
        if self._looked_at - self._searched_at >= SEARCH_S:
            self._searched_at = math.inf  # a search calls `turn`, which must not start another
            try:
                self.search()
            finally:
                self._searched_at = time.monotonic()

    def look(self, number: int) -> None:
        """Check this many runs at once, without the lock; ended runs that still hold a slot come first."""
        while number > 0:
            seen = self._runs.observe(limit=min(number, _PAGE), interval=INTERVAL_MS)
            self.settle(seen)
            if not seen.sightings:  # another scheduler has settled them
                return
            number -= len(seen.sightings)

    def search(self) -> None:
        """Search for queued runs that are in no queue, unless another scheduler has just done so."""
        if not Lock(self._store.client, self._store.keys.searched, SEARCH_MS).acquire():
            return
        if self._store.strange():
            return  # the housekeeper reports it
        if found := self._runs.rebuild():
            self._emit(Event("repaired", fields={"count": found}))
        now = self._store.time()
        for page in self._runs.search(before=clock.text(now - AGE), now=clock.text(now)):
            self.settle(self._runs.observe(page))

    def settle(self, seen: Observed) -> None:
        """Decide about the runs that were seen, record the decisions, and emit an event for each."""
        since = self._hearing.since(seen.now)
        decided = [(each, what) for each in seen.sightings if (what := outcomes.judge(each, seen.now, since))]
        for page in pages(decided, _CLOSE_PAGE):
            while page:  # each script stops after a few milliseconds, and leaves the rest as LATER
                items = [_closing(each, what, seen.now) for each, what in page]
                replies = self._runs.close(items, token=self._name)
                for (each, what), reply in zip(page, replies, strict=True):
                    if reply.code == "OK":
                        self._tell(each, what)
                    elif reply.code in {"BADTYPE", "BADARG"}:
                        self._once.say(reply.words, Event("unclosed", fields={"error": f"{reply.code} {reply.words}"}))
                page = [pair for pair, reply in zip(page, replies, strict=True) if reply.code == "LATER"]  # noqa: PLW2901

    def _tell(self, seen: Sighting, what: Decision) -> None:
        if isinstance(what, Forget):
            self._emit(Event("run_forgotten", fields={"job_id": seen.job}))
        if isinstance(what, Reopen):
            fields: dict[str, Any] = {"tick": what.record.tick, "job_id": seen.job, "was": what.before.outcome}
            self._emit(Event("run_reopened", what.record.schedule, fields))
        if not isinstance(what, Close):
            return
        schedule_id, shown = what.before.schedule, _shown(what.duration)
        fields = {"tick": what.before.tick, "job_id": seen.job, "seconds": shown, "error": what.words}
        match what.outcome:
            case "succeeded":
                self._emit(Event("run_succeeded", schedule_id, fields))
            case "failed":
                self._emit(Event("run_failed", schedule_id, fields))
            case "stopped":
                self._emit(Event("run_stopped", schedule_id, fields))
            case _:
                self._emit(Event("run_lost", schedule_id, fields))


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return f"{seconds:.0f}" if seconds >= _LONG_S else f"{seconds:.3g}"


def _closing(seen: Sighting, what: Decision, now: int) -> Closing:
    item = Closing("forget", seen.job, seen.record, sign=seen.sign)
    if known := Record.read(seen.record):
        item = item._replace(group=known.group, part=known.part)
    match what:
        case Forget():
            return item
        case Mark(record):
            return item._replace(kind="mark", record=record.text(), id=record.schedule)
        case Reopen(record, before):
            line: dict[str, Any] = {"type": "reopened", "tick": record.tick or None, "job": seen.job}
            line |= {**record.share(), "was": before.outcome, "attempts": before.attempts}
            return item._replace(
                kind="reopen",
                record=record.text(),
                id=record.schedule,
                tick=record.tick,
                outcome="reopened",
                entry=_open_json(line),
                was=before.outcome,
                was_ended=before.ended,
                life=record.life,
            )
    return _outcome(item, seen, what, now)


def _open_json(line: Mapping[str, Any]) -> str:
    """Return the line as JSON without the closing brace, because the script adds the time and the scheduler."""
    return json.dumps(line, separators=(",", ":"))[:-1]


def _outcome(item: Closing, seen: Sighting, what: Close, now: int) -> Closing:
    ended = what.ended or clock.from_ms(now)
    since = seen.written or ended  # by Redis' clock, where it is known
    ttl = "" if what.ttl_s is None else str(max(0, clock.to_ms(since) + what.ttl_s * 1000 - now))
    return item._replace(
        kind="close",
        record=outcomes.kept(what, seen, now),
        id=what.before.schedule,
        tick=what.before.tick,
        outcome=what.outcome,
        entry=_open_json(outcomes.entry(what, seen.job)),
        was=what.before.outcome,
        was_ended=what.before.ended,
        ended=clock.text(ended) if what.ended else "",
        duration="" if what.duration is None else str(what.duration),
        error=what.words,
        ttl=ttl,
        life=what.before.life,
        registry=job_template.registry_key("failed" if seen.status == "failed" else "finished", seen.origin),
    )
