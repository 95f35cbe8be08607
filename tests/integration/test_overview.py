"""The installation as a whole on a real Redis: what is due, what ran last, who did what, and who is there."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.client import audit_log
from beat.config.groups import Group
from beat.errors import BadOption
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.builders import schedule
from tests.support.lines import MINUTE, SECOND, Ledger
from tests.support.schedulers_in_turn import BROKEN, DONE, NAME, Crew

if TYPE_CHECKING:
    from datetime import datetime

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url, by="ann")


def kept(redis: Redis, schedule_id: str, due: datetime, **fields: str) -> None:
    """A schedule that is due then."""
    book = Ledger(schedule_id).registered(due - 60 * MINUTE, due)
    book.keep(redis, **fields)
    redis.zadd("beat:due", {schedule_id: clock.to_ms(due)})


def ids(found: Any) -> list[str]:
    return [each.schedule_id for each in found]


def test_what_is_due_for_long_is_late_and_what_nobody_declares_is_held(client: Client, redis: Redis) -> None:
    now = client.now()
    kept(redis, "later", now + 5 * MINUTE)
    kept(redis, "soon", now + MINUTE)
    kept(redis, "late", now - MINUTE)
    kept(redis, "latest", now - 10 * MINUTE)
    kept(redis, "at_hand", now - SECOND)
    kept(redis, "held", now - MINUTE, unannounced_at=clock.text(now - 2 * MINUTE))
    kept(redis, "paused", now - MINUTE, state="paused")
    found = client.due()
    assert ids(found.late) == ["latest", "late"]
    assert ids(found.held) == ["held"]
    assert ids(found.coming) == ["soon", "later"]
    assert (found.more_late, found.patience) == (0, timedelta(seconds=20))
    assert ids(client.due(1).coming) == ["soon"]


def test_a_tick_that_was_put_out_of_sight_is_late_all_the_same(client: Client, redis: Redis) -> None:
    kept(redis, "hidden", client.now() - MINUTE)
    redis.zadd("beat:due", {"hidden": clock.to_ms(client.now() + 30 * SECOND)})
    assert ids(client.due().late) == ["hidden"]


def test_no_more_is_read_than_the_head_however_many_are_late(client: Client, redis: Redis) -> None:
    now = client.now()
    for n in range(3):
        kept(redis, f"soon_{n}", now + (n + 1) * MINUTE)
    redis.zadd("beat:due", {f"none_{n}": clock.to_ms(now - 60 * MINUTE) for n in range(250)})
    found = client.due(2)
    assert (found.late, found.more_late) == ((), 150)
    assert ids(found.coming) == ["soon_0", "soon_1"]


def test_an_index_that_is_none_says_nothing(client: Client, redis: Redis) -> None:
    redis.set("beat:due", "no")
    redis.set("beat:events", "no")
    redis.set("beat:instances", "no")
    redis.set("beat:meta", "no")
    found = client.due()
    assert (found.late, found.coming) == ((), ())
    assert (client.latest(), client.actions().deeds) == ([], ())
    assert client.attendance().lapsed == ()


@pytest.mark.parametrize("value", [0, -1, "8", True, 10**6])
def test_how_many_is_a_number(client: Client, value: Any) -> None:
    for ask in (client.due, client.latest, client.actions):
        with pytest.raises(BadOption, match="must be a whole number from 1 to"):
            ask(value)


def test_the_newest_runs_of_all_schedules(store: Store, server: PrivateRedis) -> None:
    crew = Crew(
        store, server, schedule("good", func=DONE, timing=Every("1s")), schedule("bad", func=BROKEN, timing=Every("1s"))
    )
    client = Client(server.url)
    assert client.latest() == []
    for each in ("good", "bad"):
        crew.client.trigger(each)
    assert [(run.schedule_id, run.state) for run in client.latest()] == [("bad", "queued"), ("good", "queued")]
    crew.work("default")
    crew.look()
    assert [(run.schedule_id, run.state) for run in client.latest()] == [("bad", "failed"), ("good", "succeeded")]
    assert [run.schedule_id for run in client.latest(1)] == ["bad"]


def test_who_did_what(store: Store, server: PrivateRedis) -> None:
    crew = Crew(store, server, schedule("report"))
    bob = crew.client.named("bob")
    crew.client.pause("report", reason="it is loud")
    crew.client.resume("report")
    bob.trigger("report")
    bob.reschedule("report", "0 9 * * *")
    found = crew.client.actions()
    told = [(deed.by, deed.type, deed.schedule_id) for deed in found.deeds]
    assert told == [
        ("bob", "rescheduled", "report"),
        ("bob", "manual", "report"),
        ("ann", "resumed", "report"),
        ("ann", "paused", "report"),
        (NAME, "registered", "report"),
    ]
    assert (found.people, found.whole) == (("ann", "bob", NAME), True)
    assert ids(crew.client.actions(by="bob").deeds) == ["report", "report"]
    assert len(crew.client.actions(1).deeds) == 1
    paused = found.deeds[3].line
    assert paused is not None
    assert getattr(paused, "reason", "") == "it is loud"


def test_what_is_in_force_is_told_when_the_outbox_has_forgotten_it(
    store: Store, server: PrivateRedis, redis: Redis
) -> None:
    crew = Crew(store, server, schedule("report"), schedule("other"))
    crew.client.pause("report", reason="for now")
    crew.client.reschedule("other", "0 9 * * *")
    redis.delete("beat:events")
    found = crew.client.actions()
    assert {(deed.by, deed.type, deed.schedule_id) for deed in found.deeds} == {
        ("ann", "paused", "report"),
        ("ann", "rescheduled", "other"),
    }
    told = next(deed.line for deed in found.deeds if deed.type == "paused")
    assert getattr(told, "reason", "") == "for now"


def test_what_is_no_event_of_ours_is_passed_over(client: Client, redis: Redis) -> None:
    for fields in (
        {"x": "y"},
        {"type": "enqueued", "entry": "{"},
        {"type": "paused"},
        {"type": "removed", "by": "ann"},
    ):
        redis.xadd("beat:events", fields)  # type: ignore[arg-type]  # redis-py asks for more than it needs
    redis.xadd(
        "beat:events", {"type": "paused", "schedule": "\udcff".encode(errors="surrogateescape")}, id=f"{2**63}-0"
    )
    assert client.latest() == []
    assert [deed.type for deed in client.actions().deeds] == ["removed", "paused", "paused"]
    assert [deed.line for deed in client.actions().deeds] == [None] * 3


def test_events_are_read_in_pages_and_not_without_end(store: Store, redis: Redis) -> None:
    for n in range(25):
        redis.xadd("beat:events", {"type": "x", "n": n})
    assert [int(fields[b"n"]) for _, fields in audit_log.events(store, 100, 10)] == [*range(24, -1, -1)]
    assert len(list(audit_log.events(store, 20, 10))) == 20


def test_beats_that_went_without_a_word_are_told(client: Client, redis: Redis) -> None:
    now = client.now()
    redis.zadd("beat:instances", {"dead": clock.to_ms(now - MINUTE), "alive": clock.to_ms(now + MINUTE)})
    redis.hset("beat:instance:alive", mapping={"host": "vm"})
    redis.pexpire("beat:instance:alive", 60_000)
    found = client.attendance()
    assert [each.name for each in found.beats] == ["alive"]
    assert found.lapsed == (("dead", clock.from_ms(clock.to_ms(now - MINUTE))),)
    assert found.hold_until is None


@pytest.mark.parametrize(("begin", "end", "holds"), [(-1, 60, True), (-60, -1, False), (30, 60, False)])
def test_a_clock_that_jumped_holds_beats_until_then(
    client: Client, redis: Redis, begin: int, end: int, *, holds: bool
) -> None:
    now = clock.to_ms(client.now())
    redis.hset("beat:meta", mapping={"hold_from": now + 1000 * begin, "hold_until": now + 1000 * end})
    assert bool(client.attendance().hold_until) is holds


def test_groups_say_how_much_of_their_room_they_use(store: Store, server: PrivateRedis, redis: Redis) -> None:
    crew = Crew(store, server, schedule("report", group="mail"), groups=[Group("mail", 2), Group("empty", 5, "skip")])
    redis.zadd("beat:running:@mail", {"a": 1, "b": 2})
    redis.zadd("beat:waiting:@mail", {"report x y": 1})
    found = {each.name: (each.running, each.waiting) for each in crew.client.groups()}
    assert found == {"empty": (0, 0), "mail": (2, 1)}


def test_every_queue_to_which_a_tick_may_go(store: Store, server: PrivateRedis) -> None:
    crew = Crew(
        store,
        server,
        schedule("plain", queue="low"),
        schedule("routed", queues=("a", "b"), route="round_robin"),
        schedule("laned", queue="low", slow_queue="slow"),
    )
    assert [each.name for each in crew.client.queues()] == ["a", "b", "low", "slow"]


def test_without_schedules_there_is_nothing(client: Client) -> None:
    assert (client.queues(), client.groups(), client.latest(), client.actions().deeds) == ([], [], [], ())
    assert json.dumps(client.actions()._asdict()) == '{"deeds": [], "since": null, "whole": true, "people": []}'
