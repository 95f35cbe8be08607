"""What the tests of the protocol are made of: schedules in Redis, verdicts on their ticks, and all that Redis holds."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec
from unittest import mock

from redis import Redis

from beat.jobs import job_template
from beat.jobs.run import Run
from beat.schedule import serialize
from beat.schedule.schedule import Schedule
from beat.storage import connection
from beat.storage.messages import Item, Registration
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.storage.messages import Claimed

P = ParamSpec("P")

TOKEN = "ours"  # noqa: S105 (what our locks hold)
OTHER = "another"
REV = "r1"
QUEUE = job_template.queue_key("default")
LONG = 60_000
"""A lock that does not run out during a test."""


def retried(now: int, due: int | None = None, following: int | None = None, *, limit: int = 20_000) -> int:
    """When a schedule is looked at again that Redis rejects, all in ms; its score is a lookahead later."""
    wait = 2_000 if due is None else (now - due) / 2
    wait = min(wait, limit / 4, 20_000)
    undecided = [each for each in (due, following) if each is not None and each + limit > now]
    if undecided:
        wait = min(wait, (undecided[0] + limit - now) / 2)
    at = int(now + max(wait, 1000))
    return at - at % 1000 + 1000


# --- schedules, ticks, verdicts --------------------------------------------------------------------------------------


def second(store: Store) -> int:
    """Redis' clock, in whole seconds."""
    return int(store.client.time()[0])


def text(at: int) -> str:
    """So many seconds after the epoch, as Redis keeps it."""
    return clock.text(clock.at(at))


def schedule(schedule_id: str = "report", **options: Any) -> Schedule:
    given = {"func": "tests.support.job_functions.anything", "timing": Every("1m"), **options}
    return Schedule(id=schedule_id, **given)


TEMPLATE = job_template.template(schedule())
RULE = serialize.ticks(schedule())
FIELDS = {"func": "tests.support.job_functions.anything", "queue": "default", "priority": "normal"}


def registration(schedule_id: str = "report", at: int | None = None, **changes: Any) -> Registration:
    """The first registration of a schedule whose next tick is `at`."""
    made = Registration(
        id=schedule_id,
        rev=REV,
        seen_rev="",
        seen_next="",
        seen_state="",
        state="active",
        next="" if at is None else text(at),
        next_due=0 if at is None else at * 1000,
        rule=RULE,
        origin="code",
        declared=REV,
        app="default",
        func="tests.support.job_functions.anything",
        version="",
        follows="",
        fields={**FIELDS, **job_template.plain_meta(schedule(), TEMPLATE, REV)},
        template=TEMPLATE,
    )
    return made._replace(**{"declared": changes.get("rev", REV), **changes})


def put(store: Store, schedule_id: str = "report", at: int | None = None, **fields: Any) -> None:
    """A schedule that is due at `at`, with these fields of its hash set to something else afterwards."""
    replies = store.register([registration(schedule_id, at)], beat="tests")
    assert [reply.code for reply in replies] == ["NEW"]
    for name, value in fields.items():
        store.client.hset(store.keys.schedule(schedule_id), name, value)


def special(store: Store, schedule_id: str = "report") -> None:
    """Leaves the schedule as one whose jobs are more than template, times and run: with a ttl, retries …"""
    store.client.hdel(store.keys.schedule(schedule_id), "job_meta")


def claim(store: Store, **options: Any) -> Claimed:
    return store.claim(**{"token": TOKEN, "lock_ttl": LONG, "lookahead": 0, "limit": 100, **options})


def put_and_claim(store: Store, schedule_id: str = "report", *, ago: int = 10) -> int:
    """A schedule that is ours to decide about; its tick comes back."""
    at = second(store) - ago
    put(store, schedule_id, at)
    claimed = claim(store, only=f"^{schedule_id}$")
    assert [each.id for each in claimed.claims] == [schedule_id]
    return at


def verdict(at: int, schedule_id: str = "report", /, *, following: int | None = 60, **changes: Any) -> Item:
    """The tick `at` becomes a job; the following tick is so many seconds later."""
    made = Item(
        kind="fire",
        id=schedule_id,
        rev=REV,
        tick=text(at),
        due=at * 1000,
        next="" if following is None else text(at + following),
        next_due=0 if following is None else (at + following) * 1000,
        job=f"beat_{schedule_id}_{at}",
        queue=QUEUE,
        run=job_template.run_block(Run(schedule_id, clock.at(at), "scheduler"), "pickle"),
        by="scheduler",
    )
    if changes.get("kind") in {"skip", "release", "quarantine"}:
        made = made._replace(last=text(at), reason="misfire")
    return made._replace(**changes)


# --- what Redis holds ------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """A key: its value, and when it goes."""

    value: Any
    expires: int


def everything(store: Store) -> dict[str, Kept]:
    """All that Redis holds, byte by byte; of hashes the fields, whose order may change when they are read."""
    client: Any = store.client
    keys = sorted(client.scan_iter(count=1000))
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
        kinds = pipe.execute()
        for key, kind in zip(keys, kinds, strict=True):
            pipe.hgetall(key) if kind == b"hash" else pipe.dump(key)
            pipe.pexpiretime(key)
        found = iter(pipe.execute())
    return {key.decode(): Kept(next(found), next(found)) for key in keys}


def changed(before: dict[str, Kept], store: Store) -> set[str]:
    """The keys that came, went, or are not what they were."""
    after = everything(store)
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def hash_of(store: Store, schedule_id: str = "report") -> dict[str, str]:
    found: Any = store.client.hgetall(store.keys.schedule(schedule_id))
    return {name.decode(): value.decode() for name, value in found.items()}


def score(store: Store, schedule_id: str = "report") -> float | None:
    """What the index says."""
    found: float | None = store.client.zscore(store.keys.due, schedule_id)
    return found


def queued(store: Store, queue: str = QUEUE) -> list[str]:
    found: Any = store.client.lrange(queue, 0, -1)
    return [each.decode() for each in found]


class Calls:
    """How often Redis was asked to do what, from scripts too."""

    _OWN = ("cmdstat_eval", "cmdstat_evalsha", "cmdstat_info", "cmdstat_config|resetstat")

    def __init__(self, store: Store) -> None:
        self._client: Any = store.client
        self._client.config_resetstat()

    def count(self) -> dict[str, int]:
        stats = self._client.info("commandstats")
        return {name.removeprefix("cmdstat_"): s["calls"] for name, s in stats.items() if name not in self._OWN}


def spent_us(store: Store) -> int:
    """How long Redis was at scripts since it began to count, in µs."""
    stats: Any = store.client.info("commandstats")
    return sum(each["usec"] for name, each in stats.items() if name in {"cmdstat_eval", "cmdstat_evalsha"})


def another_client(store: Store) -> Redis:
    """A connection of its own, for a thread of its own."""
    pool: Any = store.client.connection_pool
    return Redis(connection_pool=type(pool)(connection_class=pool.connection_class, **pool.connection_kwargs))


@contextlib.contextmanager
def restricted(store: Store, *rules: str) -> Iterator[Store]:
    """The same keys for a user who may do everything but what these rules of Redis take away."""
    admin: Any = store.client
    pool = store.client.connection_pool
    admin.execute_command("ACL", "SETUSER", "few", "reset", "on", "nopass", "&*", "+@all", "~beat:*", "~rq:*", *rules)
    kwargs = {**pool.connection_kwargs, "username": "few", "password": "any"}
    try:
        with Redis(connection_pool=type(pool)(connection_class=pool.connection_class, **kwargs)) as client:
            yield Store(client, store.keys)
    finally:
        admin.execute_command("ACL", "DELUSER", "few")


# --- which replies the tests show ------------------------------------------------------------------------------------


def shows(script: str, *codes: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Says which replies of a script a test brings about; the test fails when one of them was not heard.

    That every reply of every script is shown somewhere is asked in test_scripts.py.
    """

    def decorate(test: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(test)
        def listening(*args: P.args, **kwargs: P.kwargs) -> None:
            heard: set[str] = set()
            run = connection.run

            def noted(client: Redis, name: str, /, *items: Any, **named: Any) -> Any:
                reply = run(client, name, *items, **named)
                heard.update(_words(reply) if name == script else ())
                return reply

            with mock.patch.object(connection, "run", noted):
                test(*args, **kwargs)
            assert set(codes) <= heard, f"{script}.lua never said {sorted(set(codes) - heard)}"

        return listening

    return decorate


def _words(reply: Any) -> Iterator[str]:
    if isinstance(reply, list):
        for part in reply:
            yield from _words(part)
    elif isinstance(reply, bytes):
        yield reply.decode(errors="replace")
