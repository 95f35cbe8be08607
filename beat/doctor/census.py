"""The census: counts the schedules by what they are, and looks whether the index agrees with them."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from beat import clock
from beat.client.standing import instant
from beat.doctor import survey
from beat.doctor.facts import Case, Census, Index, Late
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime, timedelta

    from beat.doctor.survey import Row
    from beat.store import Store

SAMPLE = 200
"""Of how many ledgers the size is asked."""
STATES = frozenset({"active", "paused", "disabled", "finished", "retired", "broken"})
_CASES = 5
_LONGEST = 60  # characters of an error
_HIDDEN_MS = 30_000
"""For so long a schedule that cannot be fired, or whose claim was not given back, is hidden in the index."""
_PAGE = 500
_TOLD = (
    "state", "last_error", "consecutive_failures", "unannounced_at", "paused_by", "pause_reason", "overridden_by",
)  # fmt: skip


class Places(NamedTuple):
    """A queue of schedules."""

    active: int
    due_at: str
    """When the next of them is due."""


class Taken:
    """What a census counts as it goes."""

    def __init__(self, now: datetime, late_after: timedelta, known: int) -> None:
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

    @property
    def looked(self) -> int:
        """How many ids there were."""
        return len(self._seen)

    @property
    def total(self) -> int:
        """How many of them are schedules."""
        return sum(self.states.values())

    def take(self, page: Iterable[Row]) -> None:
        """Counts a page of schedules."""
        for row in page:
            if row.id in self._seen:
                continue
            self._seen.add(row.id)
            if disagrees(row, self._now_ms):
                self.suspects.append(row.id)
            if row.kind != "none":
                self._count(row)
            if len(self._seen) % self._every == 0 and len(self.sample) < SAMPLE and row.kind == "hash":
                self.sample.append(row.id)

    def _count(self, row: Row) -> None:
        is_active = row.state == "active"
        self.states[row.state] += 1
        self.replaces = self.replaces or row.overlap == "replace"
        for kind in _kinds(row):
            self.kinds[kind].append(row.id)
        if row.source == "api":
            self.from_data.append(Case(row.id, row.func))
        if row.queue:
            before = self.queues.get(row.queue, Places(0, ""))
            dues = [due for due in (before.due_at, row.due_at if is_active else "") if due]
            self.queues[row.queue] = Places(before.active + is_active, min(dues, default=""))
        due = _ms(row.due_at)
        if is_active and not row.locked and due is not None and due < self._late_ms:
            self.late.append(Late(row.id, (self._now_ms - due) / 1000))


def take(store: Store, now: datetime, late_after: timedelta, say: Callable[[int], None] = lambda _: None) -> Taken:
    """Counts all of them; `say` hears how many so far, page by page."""
    taken = Taken(now, late_after, survey.number(store))
    for page in survey.read(store):
        taken.take(page)
        say(taken.looked)
    return taken


def told(store: Store, taken: Taken) -> Census:
    """What was counted, with words about a few of each kind."""
    latest = heapq.nlargest(_CASES, taken.late, key=lambda each: each.seconds)
    few = {kind: ids[:_CASES] for kind, ids in taken.kinds.items()}
    named = {each for ids in few.values() for each in ids} | {each.id for each in latest}
    more = survey.details(store, sorted(named), *_TOLD)
    return Census(
        total=taken.total,
        states=dict(taken.states),
        kinds={kind: len(ids) for kind, ids in taken.kinds.items()},
        cases={kind: tuple(Case(each, _words(kind, more[each])) for each in ids) for kind, ids in few.items()},
        late=len(taken.late),
        latest=tuple(each._replace(error=more[each.id]["last_error"][:_LONGEST]) for each in latest),
    )


def index(store: Store, taken: Taken) -> Index:
    """Those that did not agree with the index at first sight, looked at again: a beat may have been at work."""
    wrong: dict[str, list[str]] = defaultdict(list)
    for ids in pages(taken.suspects, _PAGE):
        now_ms = clock.to_ms(store.time())
        for row in survey.page(store, ids):
            if kind := disagrees(row, now_ms):
                wrong[kind].append(row.id)
    return Index(looked=taken.looked, **{kind: tuple(ids) for kind, ids in wrong.items()})


def disagrees(row: Row, now_ms: int) -> str:
    """How a schedule and its entry in the index do not agree, as `Index` calls it; nothing if they do."""
    if row.kind == "none":
        return "no_hash"
    due = _ms(row.pause_until if row.state == "paused" else row.due_at)
    is_waiting = row.state == "active" or (row.state == "paused" and due is not None)
    if row.kind != "hash" or row.locked or (is_waiting and due is None):
        return ""  # somebody is at work on it, or it is broken, which is said elsewhere
    if not is_waiting:
        return "not_active" if row.score else ""
    if not row.score:
        return "no_entry"
    is_hidden = due is not None and due <= float(row.score) <= now_ms + _HIDDEN_MS
    return "" if is_hidden or float(row.score) == due else "elsewhere"


def _kinds(row: Row) -> Iterator[str]:
    """What a schedule is."""
    if row.state not in STATES:
        yield "unknown"
    elif row.state in {"broken", "paused", "retired"}:
        yield row.state
    if row.consecutive_failures not in {"", "0"}:
        yield "failing"
    if row.overridden:
        yield "overridden"
    if row.unannounced_at and row.state == "active":
        yield "unannounced"


def _words(kind: str, told: Mapping[str, str]) -> str:
    """What there is to say about a schedule of that kind."""
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


def _ms(written: str) -> int | None:
    found = instant(written)
    return None if found is None else clock.to_ms(found)
