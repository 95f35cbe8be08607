"""Read the facts for the doctor with few commands; a missing right becomes `Unseen` instead of an error."""

from __future__ import annotations

import itertools
import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from beat._version import __version__
from beat.client import liveness, schedule_info
from beat.doctor import schedule_rows
from beat.doctor.facts import Beats, Case, Declarations, Far, Growth, Kept, Ledger, Queue, Queues, Server, Unseen
from beat.jobs import job_template
from beat.storage import announcements, connection, lifetimes, queue_workers, scripts
from beat.storage.messages import decoded
from beat.storage.provenance import Provenance
from beat.storage.script_keys import FORMAT
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.config.settings import Settings
    from beat.doctor.schedule_counts import Places, Taken
    from beat.storage.announcements import Conflict
    from beat.storage.store import Store

T = TypeVar("T")
PINGS = 20
_DAYS = 28
_PAGE = 500


def tried(ask: Callable[[], T]) -> T | Unseen:
    """Return the result of `ask`, or the right that the user lacks for it."""
    try:
        return ask()
    except connection.Refused as e:
        if is_refused(e):
            return Unseen(lacking(e))
        raise


def is_refused(reply: object) -> bool:
    """Return whether Redis denied a command: this user may not run it, or the server does not know it."""
    return isinstance(reply, connection.Refused) and (connection.forbids(reply) or "unknown command" in str(reply))


def lacking(error: Exception) -> str:
    """Return the right that Redis missed, as far as its error says."""
    command = re.search(r"'([\w|-]+)' command|command '([\w|-]+)'", str(error))
    if command:
        return f"+{(command[1] or command[2]).lower()}"
    # Redis 7.0 does not name a command inside a script; the findings about rights name what is lacking.
    return "the right to these keys" if "key" in str(error) else "a right that Redis does not name"


def server(store: Store, url: str) -> Server:
    """Return what Redis says about itself, and how fast it answers."""
    client: Any = store.client
    pings = []
    for _ in range(PINGS):
        asked = time.perf_counter()
        client.ping()
        pings.append((time.perf_counter() - asked) * 1000)
    info: Mapping[str, Any] | Unseen = tried(client.info)
    return Server(url, info, store.time(), tuple(pings))


def beats(store: Store, settings: Settings, now: datetime, schedules: int) -> Beats:
    """Return the live schedulers."""
    alive = tuple(announcements.alive(store, now))
    return Beats(alive, now, __version__, liveness.limit(settings.interval), schedules)


def declarations(store: Store, now: datetime) -> Declarations:
    """Read what live schedulers declare, and compare them two by two."""
    try:
        live = announcements.announcers(announcements.alive(store, now)).values()
    except connection.Refused as e:
        if is_refused(e):
            raise
        return Declarations(0)  # heartbeats are unreadable; the findings about schedulers say so
    declared = {each.digest: announcements.declared(store, each.digest) for each in live}
    conflicts: list[Conflict] = []
    unrelated: list[tuple[str, str]] = []
    for one, other in itertools.combinations(live, 2):
        comparison = announcements.compare(store, declared[one.digest], lambda each: each, other.digest)
        conflicts += announcements.conflicts(one, other, comparison, now)
        if announcements.unrelated(one, other, comparison):
            unrelated.append(announcements.unrelated_words(one, other))
    known = set(itertools.chain.from_iterable(declared.values()))
    apps = sorted({each.app for each in live})
    undeclared = itertools.chain.from_iterable(_undeclared(store, app, known) for app in apps)
    return Declarations(len(live), tuple(conflicts), tuple(unrelated), tuple(undeclared))


_UNDECLARED = ("state", "unannounced_at", *Provenance._fields)


def _undeclared(store: Store, app: str, known: Container[str]) -> Iterator[Case]:
    """Find the schedules of an application that fire although no live scheduler declares them."""
    client: Any = store.client
    try:
        ids = [decoded(each) for each in client.sscan_iter(store.keys.app(app), count=1000)]
    except connection.Refused as e:
        if is_refused(e):
            raise
        return  # the key is not a set
    strangers = sorted(each for each in ids if each not in known)
    for schedule_id, fields in schedule_rows.details(store, strangers, *_UNDECLARED).items():
        if fields["state"] == "active" and not fields["unannounced_at"]:
            yield Case(schedule_id, str(Provenance(*(fields[name] for name in Provenance._fields))))


def growth(store: Store, settings: Settings, taken: Taken, now: datetime) -> Growth:
    """Return sizes and rates of a sample of ledgers, and the size of the event stream."""
    keys, sample = store.keys, schedule_rows.details(store, taken.sample, "state", "rule", "kept")
    with store.client.pipeline(transaction=False) as pipe:
        for each in sample:
            pipe.memory_usage(keys.runs(each))
        pipe.xlen(keys.events)
        pipe.memory_usage(keys.events)
        *sizes, events, events_size = pipe.execute(raise_on_error=False)
    return Growth(
        ledgers=taken.total,
        sample=tuple(_ledger(told, size, now) for told, size in zip(sample.values(), sizes, strict=True)),
        history_limit=settings.history_limit,
        events=events if isinstance(events, int) else None,
        events_size=events_size if isinstance(events_size, int) else None,
        events_limit=settings.events_limit,
    )


def _ledger(told: Mapping[str, str], size: Any, now: datetime) -> Ledger:
    per_day, kept = 0.0, told["kept"]
    if told["state"] == "active" and (rule := schedule_info.rule(told["rule"])):
        per_day = rule.count(now, now + timedelta(days=_DAYS)) / _DAYS
    known = None if isinstance(size, Exception) else size or 0
    return Ledger(known, int(kept) if kept.isdecimal() else 0, per_day)


def queues(store: Store, places: Mapping[str, Places], now: datetime) -> Queues:
    """Return the jobs and workers of each queue."""
    names, found = sorted(places), []
    for page in pages(names, _PAGE):
        with store.client.pipeline(transaction=False) as pipe:
            for name in page:
                pipe.llen(job_template.queue_key(name))
            lengths = pipe.execute(raise_on_error=False)
        working, since = queue_workers.staff(store, page), queue_workers.unread(store, page)
        for name, length in zip(page, lengths, strict=True):
            due = clock.found(places[name].due_at)
            queued = length if isinstance(length, int) else None
            strange = "" if queued is not None or is_refused(length) else job_template.queue_key(name)
            workers = working[name].workers
            found.append(Queue(name, places[name].active, due, queued, workers, strange, since.get(name)))
    suspended = tried(lambda: store.client.exists(job_template.SUSPENDED_KEY))
    return Queues(tuple(found), suspended == 1, now)


def kept(store: Store, app: str, from_data: Sequence[Case], now: datetime, locks: Sequence[Far] = ()) -> Kept:
    """Return whether beat's keys in Redis can be used: types, format, scripts, clock, functions."""
    strange = tried(store.strange)
    found = _meta(store)
    loaded, refused = load_scripts(store)
    distant = tried(lambda: far(store, app))
    return Kept(
        strange=strange if isinstance(strange, Unseen) else tuple(strange),
        format=found.get("format", ""),
        understood=FORMAT,
        hold_until=_held(found, now),
        scripts=len(scripts.names()),
        loaded=loaded,
        refused=refused,
        unexposed=tuple(_unexposed(store, from_data)),
        now=now,
        setback=store.setback(),
        far=distant if isinstance(distant, Unseen) else (*distant, *locks),
    )


_LONG = 15


def far(store: Store, app: str) -> tuple[Far, ...]:
    """Return the locks and the indexes that lie further ahead than they may."""
    client: Any = store.client
    locks, indexes = lifetimes.locks(store.keys, app), lifetimes.indexes(store.keys, 0)
    with client.pipeline(transaction=False) as pipe:
        for key in locks:
            pipe.pttl(key)
        for key in indexes:
            pipe.zrange(key, -1, -1, withscores=True)
        pipe.zcard(store.keys.open)
        pipe.time()  # last, so that values written meanwhile do not seem too far ahead
        replies = pipe.execute(raise_on_error=False)
    if refused := next(filter(is_refused, replies), None):
        raise refused
    *values, open_runs, (seconds, micros) = replies
    most = [*locks.values(), *lifetimes.indexes(store.keys, open_runs if isinstance(open_runs, int) else 0).values()]
    now_ms = seconds * 1000 + micros // 1000
    ahead = (_ahead_ms(each, now_ms) for each in values)
    found = map(Far, (*locks, *indexes), ahead, most)
    return tuple(each for each in found if each.ms == _FOR_EVER or each.ms > each.most_ms)


def _held(meta: Mapping[str, str], now: datetime) -> datetime | None:
    """Return until when the clock guard holds all ticks, or None; a hold that begins in the future does not count."""
    begins, until = (meta.get(name, "") for name in ("hold_from", "hold_until"))
    if not all(each.isdecimal() and len(each) < _LONG for each in (begins or "0", until)):
        return None
    return clock.from_ms(int(until)) if int(begins or "0") <= clock.to_ms(now) else None


_FOR_EVER, _NO_KEY = -1, -2
_FURTHEST_MS = 10**15


def _ahead_ms(reply: Any, now_ms: int) -> int:
    """Return how long a lock lasts, by the reply of PTTL, or how far ahead the last member of an index lies."""
    if isinstance(reply, list):
        return max(0, int(min(reply[0][1], _FURTHEST_MS)) - now_ms) if reply else _NO_KEY
    return reply if isinstance(reply, int) else _NO_KEY


def _meta(store: Store) -> dict[str, str]:
    names = ("format", "hold_from", "hold_until")
    try:
        values: list[Any] = store.client.hmget(store.keys.meta, names)
    except connection.Refused as e:
        if is_refused(e):
            raise
        return {}  # not a hash; the findings about key types say so
    return {name: value.decode(errors="replace") for name, value in zip(names, values, strict=True) if value}


def load_scripts(store: Store) -> tuple[int | Unseen, dict[str, str]]:
    """Load all scripts; return how many Redis knew before, and the error for each that it rejects."""
    client: Any = store.client
    every = [scripts.script(name) for name in scripts.names()]
    known = tried(lambda: client.script_exists(*(each.sha for each in every)))
    if isinstance(known, Unseen):
        return known, {}
    refused = {}
    for script in every:
        try:
            client.script_load(script.text)
        except connection.Refused as e:
            if is_refused(e):
                return Unseen(lacking(e)), {}
            refused[script.name] = str(e)
    return sum(map(bool, known)), refused


def _unexposed(store: Store, from_data: Sequence[Case]) -> list[Case]:
    """Return the cases whose function no application exposes."""
    client: Any = store.client
    paths = sorted({case.words for case in from_data if case.words})
    known: set[str] = set()
    for page in pages(paths, _PAGE):
        try:
            scores = client.zmscore(store.keys.functions, page)
        except connection.Refused:
            return []  # of another type, or this user may not read it
        known.update(itertools.compress(page, (score is not None for score in scores)))
    return [case for case in from_data if case.words not in known]


def groups(store: Store) -> bool:
    """Return whether the event stream has consumer groups; True if this user may not know."""
    client: Any = store.client
    try:
        return bool(client.xinfo_groups(store.keys.events))
    except connection.Refused as e:
        return is_refused(e)  # otherwise there is no event stream yet
