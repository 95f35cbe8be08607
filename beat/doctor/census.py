"""The census: reads every schedule once, in pages, and counts what they are. A hundred thousand take seconds.

Whatever is known of the schedules comes from `read`, a page at a time; all else works with what that has read.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import clock
from beat.client.standing import instant
from beat.connection import Refused, forbids
from beat.doctor.facts import Case, Census, Index, Late
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from beat.store import Store

FIELDS = (
    "state", "due_at", "queue", "consecutive_failures", "last_error", "override", "overridden_by", "unannounced_at",
    "pause_reason", "paused_by", "source", "func", "overlap", "rule", "kept",
)  # fmt: skip
SAMPLE = 200
"""Of how many ledgers the size is asked."""
STATES = frozenset({"active", "paused", "disabled", "finished", "retired", "broken"})
_PAGE = 1000
_CASES = 5
_LONGEST = 60  # characters of an error
_HIDDEN_MS = 30_000
"""For so long a schedule that cannot be fired, or whose claim was not given back, is hidden in the index."""


class Row(NamedTuple):
    """One schedule, as far as the doctor asks."""

    id: str
    fields: dict[str, str] | None
    """None if there is no such hash; a key of another type has no fields."""
    score: float | None
    """In the index."""
    locked: bool

    def text(self, field: str) -> str:
        """A field, or nothing."""
        return (self.fields or {}).get(field, "")


def read(store: Store) -> Iterator[list[Row]]:
    """Every schedule that the set or the index knows, in pages; some may come twice."""
    try:
        for ids in pages(itertools.chain.from_iterable(store.ids()), _PAGE):
            yield rows(store, ids)
    except Refused as e:
        if forbids(e):
            raise
        # the set or the index is of another type, which is said elsewhere


def rows(store: Store, ids: Sequence[str], *, at_once: bool = False) -> list[Row]:
    """These schedules; `at_once` in one step, so that what belongs together is seen together."""
    keys, client = store.keys, store.client
    with client.pipeline(transaction=at_once) as pipe:
        pipe.zmscore(keys.due, list(ids))
        pipe.mget([keys.lock(each) for each in ids])
        for each in ids:
            pipe.hmget(keys.schedule(each), FIELDS)
        scores, locks, *hashes = pipe.execute(raise_on_error=False)
    scores, locks = (each if isinstance(each, list) else [None] * len(ids) for each in (scores, locks))
    found = zip(ids, hashes, scores, locks, strict=True)
    return [Row(each, _fields(values), score, lock is not None) for each, values, score, lock in found]


def _fields(values: Any) -> dict[str, str] | None:
    if isinstance(values, Refused) and forbids(values):
        raise values
    if not isinstance(values, list):  # it is of another type
        return {}
    named = {name: value.decode(errors="replace") for name, value in zip(FIELDS, values, strict=True) if value}
    return named or None


class Places(NamedTuple):
    """The queue of some schedules."""

    active: int
    due_at: str


class Taken:
    """What a census counts as it goes."""

    def __init__(self, now: datetime, late_after: timedelta, known: int) -> None:
        self._now_ms, self._late_after_ms = clock.to_ms(now), clock.to_ms(clock.EPOCH + late_after)
        self._every = max(1, known // SAMPLE)
        self._seen: set[str] = set()
        self.states: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.cases: dict[str, list[Case]] = defaultdict(list)
        self.late: list[Late] = []
        self.queues: dict[str, Places] = {}
        self.suspects: list[str] = []
        self.sample: list[Row] = []
        self.from_data: list[Case] = []
        self.replaces = False

    def take(self, page: Iterable[Row]) -> None:
        """Counts a page of schedules."""
        for row in page:
            if row.id in self._seen:
                continue
            self._seen.add(row.id)
            if disagrees(row, self._now_ms):
                self.suspects.append(row.id)
            if row.fields is None:
                continue
            self._count(row)
            if len(self._seen) % self._every == 0 and len(self.sample) < SAMPLE:
                self.sample.append(row)

    def _count(self, row: Row) -> None:
        state, queue = row.text("state"), row.text("queue")
        self.states[state] += 1
        self.replaces = self.replaces or row.text("overlap") == "replace"
        for kind, words in _kinds(row):
            self.kinds[kind] += 1
            if len(self.cases[kind]) < _CASES:
                self.cases[kind].append(Case(row.id, words))
        if row.text("source") == "api":
            self.from_data.append(Case(row.id, row.text("func")))
        if queue:
            before, active = self.queues.get(queue, Places(0, "")), state == "active"
            dues = [due for due in (before.due_at, row.text("due_at") if active else "") if due]
            self.queues[queue] = Places(before.active + active, min(dues, default=""))
        due = _ms(row.text("due_at"))
        if state == "active" and not row.locked and due is not None and due < self._now_ms - self._late_after_ms:
            self.late.append(Late(row.id, (self._now_ms - due) / 1000, row.text("last_error")[:_LONGEST]))

    def census(self) -> Census:
        """What was counted."""
        return Census(
            total=sum(self.states.values()),
            states=dict(self.states),
            kinds=dict(self.kinds),
            cases={kind: tuple(cases) for kind, cases in self.cases.items()},
            late=len(self.late),
            latest=tuple(heapq.nlargest(_CASES, self.late, key=lambda each: each.seconds)),
            replaces=self.replaces,
        )

    @property
    def looked(self) -> int:
        """How many ids there were."""
        return len(self._seen)


def take(store: Store, now: datetime, late_after: timedelta, say: Callable[[int], None] = lambda _: None) -> Taken:
    """Counts all of them; `say` hears how many so far, page by page."""
    taken = Taken(now, late_after, _number(store))
    for page in read(store):
        taken.take(page)
        say(taken.looked)
    return taken


def _number(store: Store) -> int:
    try:
        return int(store.client.scard(store.keys.schedules))
    except Refused as e:
        if forbids(e):
            raise
        return 0


def index(store: Store, taken: Taken) -> Index:
    """Those that did not agree with the index at first sight, looked at again: a beat may have been at work."""
    wrong: dict[str, list[str]] = defaultdict(list)
    for ids in pages(taken.suspects, _PAGE):
        now_ms = clock.to_ms(store.time())
        for row in rows(store, ids, at_once=True):
            if kind := disagrees(row, now_ms):
                wrong[kind].append(row.id)
    return Index(looked=taken.looked, **{kind: tuple(ids) for kind, ids in wrong.items()})


def disagrees(row: Row, now_ms: int) -> str:
    """How a schedule and its entry in the index do not agree, as `Index` calls it; nothing if they do."""
    if row.fields is None:
        return "no_hash"
    due = _ms(row.text("due_at"))
    if not row.fields or row.locked or (row.text("state") == "active" and due is None):
        return ""  # somebody is at work on it, or it is broken, which is said elsewhere
    if row.text("state") != "active":
        return "not_active" if row.score is not None else ""
    if row.score is None:
        return "no_entry"
    is_hidden = due is not None and due <= row.score <= now_ms + _HIDDEN_MS
    return "" if is_hidden or row.score == due else "elsewhere"


def _kinds(row: Row) -> Iterator[tuple[str, str]]:
    """What a schedule is, and what there is to say about that."""
    state, failures = row.text("state"), row.text("consecutive_failures")
    if state == "broken":
        yield "broken", row.text("last_error")[:_LONGEST]
    if state == "paused":
        by, reason = row.text("paused_by"), row.text("pause_reason")
        yield "paused", ": ".join(part for part in (by and f"by {by}", reason) if part)
    if state == "retired":
        yield "retired", ""
    if state not in STATES:
        yield "unknown", state or "none"
    if failures not in {"", "0"}:
        yield "failing", f"{failures} in a row"
    if row.text("override"):
        yield "overridden", f"by {row.text('overridden_by')}" if row.text("overridden_by") else ""
    if row.text("unannounced_at") and state == "active":
        yield "unannounced", f"since {row.text('unannounced_at')}"


def _ms(written: str) -> int | None:
    found = instant(written)
    return None if found is None else clock.to_ms(found)
