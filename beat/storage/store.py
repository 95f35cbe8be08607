"""Run each atomic step on beat's keys in Redis, and read a few fields of many schedules at once.

Replies are returned as codes, and the caller interprets them. Nothing is sent twice here. After a lost reply, the
caller sends a step again, and compare-and-set makes that safe.
"""

from __future__ import annotations

import itertools
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from beat.storage import clock_setback, connection, lifetimes, script_keys, scripts
from beat.storage.batches import counted
from beat.storage.connection import Call
from beat.storage.messages import Claimed, Decided, Looked, Reply, Sight, decoded, replies, unless_named
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.schedule.state import State
    from beat.storage.clock_setback import Setback
    from beat.storage.connection import Redis
    from beat.storage.keys import Keys
    from beat.storage.messages import Item, Registration
    from beat.storage.scripts import Value


T = TypeVar("T")


_PAGE = 250  # items per script call, so that no call occupies Redis for 25 ms

_SAME = Reply("SAME")
_NO_SIGNATURES: Mapping[str, str] = MappingProxyType({})
_LASTING_MS = 30 * 86_400_000
"""How long a function may still be scheduled from data after its last announcement."""


class Tracer(Protocol):
    """A tracer follows items from the message that contains them to the reply."""

    def sent(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items to send instead; an item that is sent again must stay the same."""

    def decided(self, items: Sequence[Item], replies: Sequence[Reply]) -> None:
        """Record the replies to the items that were sent."""


class Untraced:
    """A tracer that does nothing."""

    def sent(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items unchanged."""
        return items

    def decided(self, items: Sequence[Item], replies: Sequence[Reply]) -> None:
        """Do nothing."""


class Store:
    """The keys of one installation, through one client."""

    tracer: Tracer = Untraced()

    def __init__(
        self,
        client: Redis,
        keys: Keys,
        *,
        history_limit: int = 1000,
        events_limit: int = 10_000,
        longest_lock: int = lifetimes.LOCK_MS,
        cycle: int = 1000,
        misfire_limit: int = 20_000,
        early: int = 1000,
    ) -> None:
        self.client = client
        self.keys = keys
        limits = {"history_limit": history_limit, "events_limit": events_limit, "longest_lock": longest_lock}
        waits = {"cycle": cycle, "misfire_limit": misfire_limit, "early": early}
        self._fixed = script_keys.fixed(keys) | limits | waits

    def time(self) -> datetime:
        """Return the present instant by Redis' clock."""
        seconds, micros = self.client.time()
        return clock.from_ms(int(seconds) * 1000 + int(micros) // 1000)

    def claim(
        self, unread: Iterable[str] = (), *, token: str, lock_ttl: int, lookahead: int, limit: int, only: str = ""
    ) -> Claimed:
        """Claim at most `limit` schedules that are due within `lookahead` ms, except the ids in `unread`."""
        asked = {"token": token, "lock_ttl": lock_ttl, "lookahead": lookahead, "limit": limit, "only": only}
        return Claimed.read(self.run("claim", [[each] for each in unread], **asked))

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:
        """Decide ticks, all of them in one step; safe to send again."""
        decided = Decided.read(self.run("fire", counted(self.tracer.sent(items)), token=token), len(items))
        self.tracer.decided(items, decided.replies)
        return decided

    def register(self, items: Iterable[Registration], *, beat: str) -> list[Reply]:
        """Write definitions, unless a live scheduler has announced newer ones."""
        return replies(self.run("register", words_of(items), beat=beat)[1:])

    def registering(self, items: Iterable[Registration], *, beat: str) -> Callable[[], list[Reply]]:
        """Write definitions, and return a function that returns the replies; a pipelined store waits only there."""
        found = self.register(items, beat=beat)
        return lambda: found

    def repair(self, ids: Sequence[str]) -> list[Reply]:
        """Repair the keys and indexes of a page of schedules."""
        return unless_named(_SAME, len(ids), self.run("repair", [[each] for each in ids])[1:])

    def announce(
        self,
        declared: Mapping[str, str],
        functions: Iterable[str] = (),
        signatures: Mapping[str, str] = _NO_SIGNATURES,
        app: str = "default",
        *,
        digest: str,
        ttl: int,
        kept: int = _LASTING_MS,
    ) -> Reply:
        """Announce how the code declares its schedules, and which functions may be scheduled from data.

        `signatures` maps the path of a function to its parameters as JSON; the parameters of other functions are
        unknown.
        """
        schedules = ((schedule_id, text, "") for schedule_id, text in declared.items())
        exposed = ((path, "", signatures.get(path, "")) for path in functions)
        reply, items = Reply("OK"), pages([*schedules, *exposed])
        own = {"announced": self.keys.announced(digest), "signatures": self.keys.signatures(app)}
        named = {**own, "digest": digest, "ttl": ttl, "kept": kept}
        for said in self.in_turn("announce", items, **named):
            reply = Reply(*map(decoded, said))
        return reply

    def heartbeat(
        self, fields: Mapping[str, str], *, name: str, ttl: int, digest: str, announced_ttl: int, judged: int, mark: str
    ) -> Reply:
        """Write the heartbeat of this scheduler, and renew its announcement."""
        said = self.run(
            "heartbeat",
            fields.items(),
            instance=self.keys.instance(name),
            announced=self.keys.announced(digest),
            name=name,
            ttl=ttl,
            digest=digest,
            announced_ttl=announced_ttl,
            judged=judged,
            mark=mark,
        )
        return Reply(*map(decoded, said))

    def look(self, ids: Sequence[str], *, app: str = "") -> list[State | None]:
        """Return the state of each of these schedules; None for one that does not exist."""
        found = (Looked.read(self.run("look", map(Sight, page), app=app)) for page in pages(ids))
        return [state for looked in found for state in looked.others.values()]

    def looking(self, items: Sequence[Sight], *, app: str = "") -> Callable[[], Looked]:
        """Return a function that returns the schedules that differ from the expected state, as with `registering`."""
        found = Looked.read(self.run("look", items, app=app))
        return lambda: found

    def hang_up(self) -> None:
        """Do nothing; a pipelined store drops its outstanding requests."""

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the rev and the definition of each of these schedules; empty for one that does not exist."""
        with self.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(self.keys.schedule(each), "rev", "definition")
            found = pipe.execute(raise_on_error=False)
        return [(decoded(v[0] or b""), decoded(v[1] or b"")) if isinstance(v, list) else ("", "") for v in found]

    def due(self, limit: int) -> list[str]:
        """Return the ids of at most `limit` due schedules, earliest first."""
        now = clock.to_ms(self.time())
        return [decoded(each) for each in self.client.zrangebyscore(self.keys.due, "-inf", now, start=0, num=limit)]

    def strange(self) -> list[str]:
        """Describe each shared key that has another type than it should."""
        mine = self.keys
        wanted = {mine.schedules: "set", mine.due: "zset", mine.meta: "hash", mine.events: "stream"}
        wanted |= {mine.open: "zset", mine.closed: "zset", mine.records: "hash", mine.waiting_slots: "zset"}
        wanted |= {mine.functions: "zset", mine.groups: "hash", mine.unread: "hash", mine.fanout: "zset"}
        found = {key: decoded(self.client.type(key)) for key in wanted}
        wrong = (key for key, kind in found.items() if kind not in {wanted[key], "none"})
        return [f"{key} is a {found[key]}, not a {wanted[key]}" for key in wrong]

    def ids(self) -> Iterator[list[str]]:
        """Yield pages of all ids in the set or the index; an id may come twice."""
        yield from pages(decoded(each) for each in self.client.sscan_iter(self.keys.schedules, count=_PAGE))
        for page in pages(each for each, _ in self.client.zscan_iter(self.keys.due, count=_PAGE)):
            known = self.client.smismember(self.keys.schedules, page)
            if strangers := [decoded(each) for each, is_known in zip(page, known, strict=True) if not is_known]:
                yield strangers

    def is_empty(self) -> bool:
        """Return whether there is no schedule."""
        return not self.client.exists(self.keys.schedules)

    def hold(self, since: int, until: int) -> None:
        """Stop all claims from `since` to `until`, by Redis' clock in ms, unless a hold is already in force."""
        kept: list[Any] = self.client.hmget(self.keys.meta, "hold_from", "hold_until")
        begins, ends = (int(each) if each and each.isdigit() else 0 for each in kept)
        if not begins <= since < ends:
            self.client.hset(self.keys.meta, mapping={"hold_from": since, "hold_until": until})

    def high_water(self) -> tuple[str, str]:
        """Return the highest time that a scheduler found sound, and the mark stored with it; empty if none."""
        time, mark = self.client.hmget(self.keys.meta, "time", "mark")
        return decoded(time or b""), decoded(mark or b"")

    def setback(self) -> Setback | None:
        """Return the setback of Redis' clock; None if it did not go back."""
        with self.client.pipeline(transaction=False) as pipe:
            pipe.hget(self.keys.meta, "time")
            pipe.zrange(self.keys.due, 0, 0, withscores=True)
            pipe.time()
            seen, first, (seconds, micros) = pipe.execute(raise_on_error=False)
        now = clock.from_ms(int(seconds) * 1000 + int(micros) // 1000)
        due = first[0][1] if isinstance(first, list) and first else None
        return clock_setback.read(now, decoded(seen) if isinstance(seen, bytes) else "", due)

    def leave(self, *, name: str, digest: str, linger: int) -> None:
        """Delete the heartbeat, and let the announcement expire after `linger` ms, in case the scheduler restarts."""
        lapses = clock.to_ms(self.time()) + linger
        with self.client.pipeline() as pipe:
            pipe.delete(self.keys.instance(name))
            pipe.zrem(self.keys.instances, name)
            pipe.pexpire(self.keys.announced(digest), linger, lt=True)
            pipe.zadd(self.keys.announcements, {digest: lapses}, xx=True, lt=True)
            pipe.execute()

    def run(self, name: str, items: Iterable[Sequence[Value]] = (), /, **named: Any) -> Any:
        """Run a script, with its constant arguments filled in."""
        call = self.call(name, items, **named)
        return connection.run(self.client, name, call.items, **call.named)

    def in_turn(self, name: str, pages: Iterable[Iterable[Sequence[Value]]], /, **named: Any) -> Iterator[Any]:
        """Run a script for each of these pages of items."""
        for page in pages:
            yield self.run(name, page, **named)

    def call(self, name: str, items: Iterable[Sequence[Value]], /, **named: Any) -> Call:
        """Return the call of a script, with its constant arguments filled in."""
        wanted = scripts.script(name)
        fixed = {word: self._fixed[word] for word in (*wanted.keys, *wanted.args) if word in self._fixed}
        return Call(name, items, {**fixed, **named})


def pages(values: Iterable[T], size: int = _PAGE) -> Iterator[list[T]]:
    """Yield the values in lists of at most `size`."""
    rest = iter(values)
    while page := list(itertools.islice(rest, size)):
        yield page


def words_of(items: Iterable[Registration]) -> Iterator[list[Value]]:
    """Yield the items of `register` as they are sent: a template equal to the previous one is sent only once."""
    before = None
    for item in items:
        fields, template = _flat(item.fields), _flat(item.template) if item.template != before else []
        yield [*item[:-2], len(fields), len(template), *fields, *template]
        before = item.template


def _flat(mapping: Mapping[str, Value]) -> list[Value]:
    return list(itertools.chain.from_iterable(mapping.items()))


PAGE = 1000  # schedules per script call, which occupies Redis for a millisecond or two


def glance(store: Store, ids: Iterable[str], size: int = PAGE, *, fields: str) -> Iterator[list[str]]:
    """Yield for each of these schedules the values of the space-separated `fields`; missing values are empty."""
    for page in pages(ids, size):
        told: Any = store.run("glance", [[each] for each in page], fields=fields)
        yield from ([value or "" for value in values] for values in json.loads(told.decode(errors="replace")))
