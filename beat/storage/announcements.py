"""Read which schedules the live schedulers announce in Redis, and find where two of them disagree.

Schedulers with the same declarations announce them once, under one digest. Each heartbeat names that digest.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from beat.storage import connection, heartbeat
from beat.storage.messages import decoded
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.schedule.schedule import Schedule
    from beat.storage.heartbeat import Instance
    from beat.storage.store import Store

DEPLOY = timedelta(minutes=10)
"""How long an old and a new version of one application may run side by side before their difference is a conflict."""
_SEPARATOR = "\t"
_KEPT = 1000
"""How many differing schedules a comparison keeps; it counts all of them."""
_NAMED = 3


class Revised(Protocol):
    """A definition with a digest."""

    @property
    def rev(self) -> str:
        """Return a digest that only equal definitions share."""


T = TypeVar("T", bound=Revised)


class Declaration(NamedTuple):
    """How the code of a scheduler declares one schedule."""

    rev: str
    rule: str = ""
    tz: str = ""
    source: str = ""
    """The file and the line."""

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """Return the declaration of a schedule."""
        place = schedule.declared
        source = f"{place.path}:{place.line}" if place else "an unknown line"
        return cls(schedule.rev, str(schedule.timing), str(schedule.tz), source)

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse one value of an announcement; missing parts are empty."""
        rev, rule, tz, source, *_ = [*text.split(_SEPARATOR), "", "", ""]
        return cls(rev, rule, tz, source)

    def write(self) -> str:
        """Return the declaration as one value of an announcement; the scripts read the rev, which comes first."""
        text = _SEPARATOR.join(self)
        if text.count(_SEPARATOR) == len(self) - 1:
            return text
        return _SEPARATOR.join(part.replace(_SEPARATOR, " ") for part in self)

    @property
    def when(self) -> str:
        """Return the rule and its zone."""
        return f"{self.rule} {self.tz}"


@dataclass(frozen=True)
class Announcer:
    """The live schedulers that announce the same declarations."""

    digest: str
    app: str
    hosts: tuple[str, ...]
    tz: str
    """The zone of schedules that name none."""
    partial: bool
    """Whether all of them register only a part of their code."""
    since: datetime | None
    """When the first of them started."""

    def place(self, declaration: Declaration) -> str:
        """Return the rule of a schedule and where it is declared, in words."""
        return f"{declaration.when} ({self.app} on {self.hosts[0]}, {declaration.source})"


@dataclass(frozen=True)
class Comparison:
    """A comparison of two announcements."""

    common: int = 0
    """How many ids both declare."""
    size: int = 0
    """How many ids the other announcement has."""
    differing: int = 0
    """How many of the common ids have another definition."""
    pairs: Mapping[str, tuple[Declaration, Declaration]] = field(default_factory=dict)
    """The declarations of both sides for the first thousand differing ids."""


class Conflict(NamedTuple):
    """Schedules that two live schedulers declare differently, although neither replaces the other."""

    kind: str
    """`app` for two applications, `tz` for two default zones, `version` for two versions that both stay."""
    number: int
    """How many schedules are affected."""
    ids: tuple[str, ...]
    """The first few of them."""
    words: str
    remedy: str


def alive(store: Store, now: datetime) -> list[Instance]:
    """Return the schedulers whose heartbeat has not expired, by name."""
    client: Any = store.client
    names = sorted(
        heartbeat.text(name) for name in client.zrangebyscore(store.keys.instances, clock.to_ms(now), "+inf")
    )
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hgetall(store.keys.instance(name))
        hashes = pipe.execute(raise_on_error=False)
    return [
        heartbeat.read(name, each) for name, each in zip(names, hashes, strict=True) if isinstance(each, dict) and each
    ]


def announcers(instances: Iterable[Instance]) -> dict[str, Announcer]:
    """Return the live schedulers grouped by the digest that they announce; those without one are left out."""
    groups: dict[str, list[Instance]] = defaultdict(list)
    for each in instances:
        if each.digest:
            groups[each.digest].append(each)
    return {digest: _announcer(digest, group) for digest, group in sorted(groups.items())}


def _announcer(digest: str, group: list[Instance]) -> Announcer:
    return Announcer(
        digest=digest,
        app=group[0].app,
        hosts=tuple(sorted({each.host for each in group})),
        tz=group[0].tz,
        partial=all(each.only for each in group),
        since=min((each.started_at for each in group if each.started_at), default=None),
    )


def declared(store: Store, digest: str) -> dict[str, Declaration]:
    """Return the declarations under a digest, by schedule id."""
    client: Any = store.client
    try:
        pairs = client.hscan_iter(store.keys.announced(digest), count=1000)
        return {decoded(name): Declaration.read(decoded(text)) for name, text in pairs}
    except connection.Refused as e:
        if connection.forbids(e):
            raise
        return {}  # the key is of another type


def undeclared(store: Store, ids: Sequence[str]) -> list[str]:
    """Return those of these schedules that no live announcement contains."""
    client: Any = store.client
    live = client.zrangebyscore(store.keys.announcements, clock.to_ms(store.time()), "+inf") if ids else ()
    with client.pipeline(transaction=False) as pipe:
        for digest in live:
            pipe.hmget(store.keys.announced(decoded(digest)), ids)
        found = [each for each in pipe.execute(raise_on_error=False) if isinstance(each, list)]
    return [each for n, each in enumerate(ids) if not any(values[n] for values in found)]


def compare(store: Store, declared: Mapping[str, T], of: Callable[[T], Declaration], other: str) -> Comparison:
    """Compare declarations with those announced under the digest `other`."""
    client: Any = store.client
    key, common, pairs, differing = store.keys.announced(other), 0, dict[str, tuple[Declaration, Declaration]](), 0
    try:
        size = int(client.hlen(key))
        for schedule_id, text in _shared(client, key, declared, size):
            common += 1
            if declared[schedule_id].rev != text.partition(_SEPARATOR)[0]:
                differing += 1
                if len(pairs) < _KEPT:
                    pairs[schedule_id] = of(declared[schedule_id]), Declaration.read(text)
    except connection.Refused as e:
        if connection.forbids(e):
            raise
        return Comparison()  # the key is of another type, which the scheduler that writes it reports
    return Comparison(common, size, differing, pairs)


def _shared(client: Any, key: str, declared: Mapping[str, object], size: int) -> Iterator[tuple[str, str]]:
    """Yield each id that both sides have with the other's declaration, by reading the smaller side."""
    if size < len(declared):
        for name, text in client.hscan_iter(key, count=1000):
            if (schedule_id := decoded(name)) in declared:
                yield schedule_id, decoded(text)
        return
    for page in pages(declared):
        for schedule_id, text in zip(page, client.hmget(key, page), strict=True):
            if text is not None:
                yield schedule_id, decoded(text)


def unrelated(one: Announcer, other: Announcer, comparison: Comparison) -> bool:
    """Return whether two schedulers of one application have no schedule in common, as two applications would."""
    is_apart = one.app == other.app and comparison.size > 0 and not comparison.common
    return is_apart and not (one.partial or other.partial)


def unrelated_words(one: Announcer, other: Announcer) -> tuple[str, str]:
    """Return the problem with two such schedulers, and the remedy."""
    words = (
        f"the schedulers on {', '.join(one.hosts)} and on {', '.join(other.hosts)} both run the application "
        f"{one.app!r} and have no schedule in common, so beat treats them as two and retires nothing"
    )
    return words, "give each program a name of its own: BEAT_APP, or app in [tool.beat]"


def conflicts(one: Announcer, other: Announcer, comparison: Comparison, now: datetime) -> list[Conflict]:
    """Return the differences that no deploy explains, at most one entry of each kind.

    A definition of another application is never a newer version, and neither is one that differs only by the default
    zone of its host. Two versions of one application are a conflict if both have been running for longer than a deploy
    takes.
    """
    if not comparison.differing:
        return []
    if one.app != other.app:
        return [_conflict("app", one, other, comparison.pairs, comparison.differing)]
    zones = {each: pair for each, pair in comparison.pairs.items() if _differ_by_zone(one, other, *pair)}
    rest = {each: pair for each, pair in comparison.pairs.items() if each not in zones}
    starts = [each.since for each in (one, other) if each.since]
    found = [_conflict("tz", one, other, zones, len(zones))] if zones else []
    if rest and len(starts) > 1 and now - max(starts) >= DEPLOY:
        found.append(_conflict("version", one, other, rest, comparison.differing - len(zones)))
    return found


def _differ_by_zone(one: Announcer, other: Announcer, here: Declaration, there: Declaration) -> bool:
    return one.tz != other.tz and here.rule == there.rule and (here.tz, there.tz) == (one.tz, other.tz)


def _conflict(
    kind: str, one: Announcer, other: Announcer, pairs: Mapping[str, tuple[Declaration, Declaration]], count: int
) -> Conflict:
    ids = tuple(sorted(pairs)[:_NAMED])
    here, there = pairs[ids[0]]
    more = f" and {count - 1:,} more" if count > 1 else ""
    others = " (another option differs)" if here.when == there.when else ""
    words = (
        f"live schedulers declare {ids[0]}{more} differently: {one.place(here)}, and {other.place(there)}{others}; "
        f"{_IN_FORCE[kind]}"
    )
    remedies = {
        "app": f"give {ids[0]} another id in one of them, or a BEAT_PREFIX to each program",
        "tz": "set BEAT_TZ to one zone on all hosts, or write tz= in the code",
        "version": "finish the deploy, or give each of two programs its own BEAT_APP (and BEAT_PREFIX for its ids)",
    }
    return Conflict(kind, count, ids, words, remedies[kind])


_IN_FORCE = {
    "app": "the one that was declared first stays in force while its scheduler runs",
    "tz": "the newer one is in force",
    "version": "the newer one is in force",
}
