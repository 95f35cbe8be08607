"""Count the schedules by state and kind."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from beat.doctor import indexes, schedule_rows
from beat.doctor.facts import Case, Census, Far, Late, Unfit
from beat.history import ledger
from beat.jobs import report
from beat.storage import lifetimes
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.doctor.schedule_rows import Row
    from beat.storage.store import Store

SAMPLE = 200
"""The largest number of ledgers whose size is read."""
_CASES = 5
_LONGEST = 60  # characters of an error
_FAILING = 100
"""The largest number of failing schedules whose newest run is read."""
_NEWEST = 20
"""How many lines of a ledger are searched for the newest outcome."""
_TOLD = (
    "state", "last_error", "consecutive_failures", "unannounced_at", "paused_by", "pause_reason", "overridden_by",
)  # fmt: skip


class Places(NamedTuple):
    """How schedules use one queue."""

    active: int
    due_at: str
    """When the next of them is due."""


class Taken:
    """The running counts over all schedules."""

    def __init__(self, store: Store, now: datetime, late_after: timedelta, lock_ttl: timedelta, known: int) -> None:
        self._keys, self._lock_ms = store.keys, lock_ttl // timedelta(milliseconds=1)
        self._now_ms, self._late_ms = clock.to_ms(now), clock.to_ms(now - late_after)
        self._every = max(1, known // SAMPLE)
        self._seen: set[str] = set()
        self.states: Counter[str] = Counter()
        self.kinds: dict[str, list[str]] = defaultdict(list)
        self.late: list[Late] = []
        self.queues: dict[str, Places] = {}
        self.suspects: list[str] = []
        self.sample: list[str] = []
        self.from_data: list[Case] = []
        self.replaces = False
        self.far_locks: list[Far] = []

    @property
    def looked(self) -> int:
        """Return how many ids were read."""
        return len(self._seen)

    @property
    def total(self) -> int:
        """Return how many of the ids are schedules."""
        return sum(self.states.values())

    def take(self, page: Iterable[Row]) -> None:
        """Count a page of schedules, and ignore ids that were counted before."""
        for row in page:
            if row.id in self._seen:
                continue
            self._seen.add(row.id)
            if indexes.disagrees(row, self._now_ms):
                self.suspects.append(row.id)
            if row.locked and not 0 <= int(row.locked) <= self._lock_ms:
                self.far_locks.append(Far(self._keys.lock(row.id), int(row.locked), self._lock_ms))
            if row.kind != "none":
                self._count(row)
            if len(self._seen) % self._every == 0 and len(self.sample) < SAMPLE and row.kind == "hash":
                self.sample.append(row.id)

    def _count(self, row: Row) -> None:
        is_active = row.state == "active"
        self.states[row.state] += 1
        self.replaces = self.replaces or row.overlap == "replace"
        for kind in indexes.kinds(row):
            self.kinds[kind].append(row.id)
        if row.source == "api":
            self.from_data.append(Case(row.id, row.func))
        if row.queue:
            before = self.queues.get(row.queue, Places(0, ""))
            dues = [due for due in (before.due_at, row.due_at if is_active else "") if due]
            self.queues[row.queue] = Places(before.active + is_active, min(dues, default=""))
        due = indexes.ms(row.due_at)
        if is_active and not row.locked and due is not None and due < self._late_ms:
            self.late.append(Late(row.id, (self._now_ms - due) / 1000))


def take(
    store: Store,
    now: datetime,
    late_after: timedelta,
    say: Callable[[int], None] = lambda _: None,
    *,
    lock_ttl: timedelta = timedelta(milliseconds=lifetimes.LOCK_MS),
) -> Taken:
    """Count all schedules; `say` is called after each page with the number of ids so far."""
    taken = Taken(store, now, late_after, lock_ttl, schedule_rows.number(store))
    for page in schedule_rows.read(store):
        taken.take(page)
        say(taken.looked)
    return taken


def told(store: Store, taken: Taken) -> Census:
    """Return the counts, with details about a few schedules of each kind."""
    latest = heapq.nlargest(_CASES, taken.late, key=lambda each: each.seconds)
    few = {kind: ids[:_CASES] for kind, ids in taken.kinds.items()}
    named = {each for ids in few.values() for each in ids} | {each.id for each in latest}
    more = schedule_rows.details(store, sorted(named), *_TOLD)
    return Census(
        total=taken.total,
        states=dict(taken.states),
        kinds={kind: len(ids) for kind, ids in taken.kinds.items()},
        cases={kind: tuple(Case(each, _words(kind, more[each])) for each in ids) for kind, ids in few.items()},
        late=len(taken.late),
        latest=tuple(each._replace(error=more[each.id]["last_error"][:_LONGEST]) for each in latest),
        unfit=tuple(_unfit(store, taken.kinds.get("failing", ())[:_FAILING])),
    )


def _unfit(store: Store, ids: Sequence[str]) -> Iterator[Unfit]:
    """Find the schedules whose newest run failed because the worker could not call its function."""
    queues = schedule_rows.details(store, ids, "queue")
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.lrange(store.keys.runs(each), 0, _NEWEST - 1)
        ledgers = pipe.execute(raise_on_error=False)
    for each, lines in zip(ids, ledgers, strict=True):
        entries = map(ledger.read, lines if isinstance(lines, list) else ())
        newest = next((entry for entry in entries if isinstance(entry, ledger.Outcome)), None)
        if newest and (found := report.advice(newest.error, queues[each]["queue"])):
            yield Unfit(each, found.problem, found.remedy)


def _words(kind: str, told: Mapping[str, str]) -> str:
    """Return the details about a schedule of that kind."""
    match kind:
        case "broken":
            return told["last_error"][:_LONGEST]
        case "failing":
            return f"{told['consecutive_failures']} in a row"
        case "overridden":
            return told["overridden_by"] and f"by {told['overridden_by']}"
        case "paused":
            by = told["paused_by"] and f"by {told['paused_by']}"
            return ": ".join(filter(None, (by, told["pause_reason"][:_LONGEST])))
        case "unannounced":
            return f"since {told['unannounced_at']}"
        case "unknown":
            return told["state"][:_LONGEST] or "none"
    return ""
