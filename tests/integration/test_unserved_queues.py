"""Queues that no worker reads: of all beats one says so, once, and one that it is over."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions

from beat import events
from beat.engine.events import Event
from beat.engine.unserved_queues import Lookout
from beat.storage import queue_workers
from beat.storage.queue_workers import Seen
from beat.timing import clock
from tests.storage.test_queue_workers import hire
from tests.support.builders import another_client, restricted, shows

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.messages import Reply
    from beat.storage.store import Store

DAY_MS = 86_400_000
NEW, BACK, SAME = "NEW", "BACK", "SAME"


def note(store: Store, *seen: Seen, kept: int = DAY_MS, most: int = 1000) -> list[Reply]:
    return queue_workers.note(store, seen, beat="beat-1", kept=kept, most=most)[1]


def codes(store: Store, *seen: Seen) -> list[str]:
    return [reply.code for reply in note(store, *seen)]


def told(redis: Redis) -> list[tuple[str, str]]:
    """The outbox: type and queue of each event."""
    found: Any = redis.xrange("beat:events")
    return [(fields["type"], json.loads(fields["entry"])["queue"]) for _, fields in found]


def ago(store: Store, **length: float) -> str:
    ms = clock.to_ms(store.time()) - length.get("seconds", 0) * 1000 - length.get("hours", 0) * 3_600_000
    return clock.text(clock.from_ms(int(ms)))


# --- what is noted ---------------------------------------------------------------------------------------------------


@shows("unread", "NEW", "SAME")
def test_a_queue_that_nobody_reads_is_news_once(store: Store, redis: Redis) -> None:
    assert codes(store, Seen("mail", "0", 1)) == [NEW]
    assert codes(store, Seen("mail", "0", 1), Seen("mail", "", 1)) == [SAME, SAME]
    since, last = str(redis.hget("beat:unread", "mail")).split(" ")
    assert since == last
    assert abs((clock.read(since) - store.time()).total_seconds()) < 10
    assert told(redis) == [("no_worker", "mail")]


@shows("unread", "NEW", "BACK")
def test_a_worker_that_comes_is_news_once(store: Store, redis: Redis) -> None:
    codes(store, Seen("mail", "0", 1), Seen("slow", "0", 1))
    since = str(redis.hget("beat:unread", "mail")).split(" ")[0]
    assert note(store, Seen("mail", "1", 0), Seen("mail", "1", 0)) == [(BACK, since), (SAME, "")]
    assert redis.hkeys("beat:unread") == ["slow"]
    assert told(redis) == [("no_worker", "mail"), ("no_worker", "slow"), ("worker_back", "mail")]


@shows("unread", "SAME")
def test_a_queue_that_was_never_alone_is_no_news(store: Store, redis: Redis) -> None:
    assert codes(store, Seen("mail", "1", 1), Seen("slow", "", 1)) == [SAME, SAME]
    assert not redis.exists("beat:unread", "beat:events")


def test_both_events_are_handed_to_readers_of_the_outbox(store: Store, server: PrivateRedis) -> None:
    note(store, Seen('ma"il', "0", 1))
    note(store, Seen('ma"il', "1", 0))
    gone, back = events.read(redis=server.url, follow=False)
    assert isinstance(gone, events.Notice)
    assert isinstance(back, events.Notice)
    assert (gone.type, gone.schedule_id, gone.tick, gone.job_id, gone.by) == ("no_worker", "", None, None, "beat-1")
    assert (gone.entry["type"], gone.entry["queue"], gone.entry["beat"]) == ("no_worker", 'ma"il', "beat-1")
    assert (back.type, back.entry["since"]) == ("worker_back", gone.entry["at"])


def test_of_many_beats_one_is_told(store: Store, redis: Redis) -> None:
    found: list[Reply] = []
    clients = [type(store)(another_client(store), store.keys) for _ in range(8)]
    threads = [threading.Thread(target=lambda s=each: found.extend(note(s, Seen("mail", "0", 1)))) for each in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.code for reply in found) == [NEW, *[SAME] * 7]
    assert told(redis) == [("no_worker", "mail")]


def test_a_queue_to_which_nothing_goes_for_a_day_is_forgotten(store: Store, redis: Redis) -> None:
    week, yesterday, today = ago(store, hours=168), ago(store, hours=25), ago(store, hours=23)
    values = {"old": f"{week} {yesterday}", "still": f"{week} {today}", "once": yesterday, "garbled": "x y z"}
    redis.hset("beat:unread", mapping=values)  # type: ignore[arg-type]  # redis-py wants no narrower dict
    assert queue_workers.note(store, [], beat="beat-1", kept=DAY_MS) == (["still"], [])
    assert redis.hkeys("beat:unread") == ["still"]
    assert told(redis) == []


def test_a_tick_that_goes_there_keeps_it_noted(store: Store, redis: Redis) -> None:
    week, today = ago(store, hours=168), ago(store, hours=23)
    redis.hset("beat:unread", "mail", f"{week} {today}")
    assert codes(store, Seen("mail", "0", 0)) == [SAME]
    assert redis.hget("beat:unread", "mail") == f"{week} {today}"
    assert codes(store, Seen("mail", "", 1)) == [SAME]
    since, last = str(redis.hget("beat:unread", "mail")).split(" ")
    assert (since, last > today) == (week, True)


def test_no_more_are_noted_than_may_be(store: Store, redis: Redis) -> None:
    seen = [Seen(f"q{n}", "0", 1) for n in range(5)]
    assert [reply.code for reply in note(store, *seen, most=3)] == [NEW, NEW, NEW, SAME, SAME]
    assert redis.hlen("beat:unread") == 3


def test_a_key_of_another_type_is_left_alone_and_told_as_strange(store: Store, redis: Redis) -> None:
    redis.set("beat:unread", "x")
    assert codes(store, Seen("mail", "0", 1), Seen("mail", "1", 1)) == [SAME, SAME]
    assert redis.get("beat:unread") == "x"
    assert queue_workers.unread(store, ["mail"]) == {}
    assert store.strange() == ["beat:unread is a string, not a hash"]


@pytest.mark.parametrize("command", ["hgetall", "hset", "hdel", "xadd"])
def test_who_may_not_write_it_all_writes_nothing(command: str, store: Store, redis: Redis) -> None:
    with restricted(store, f"-{command}") as few, pytest.raises(exceptions.NoPermissionError):
        note(few, Seen("mail", "0", 1))
    assert not redis.exists("beat:unread", "beat:events")


def test_since_when_can_be_asked(store: Store, redis: Redis) -> None:
    note(store, Seen("mail", "0", 1))
    redis.hset("beat:unread", "garbled", "x")
    since = str(redis.hget("beat:unread", "mail")).split(" ")[0]
    assert queue_workers.unread(store, ["mail", "slow", "garbled"]) == {"mail": clock.read(since)}
    assert queue_workers.unread(store, []) == {}


# --- one beat's lookout ----------------------------------------------------------------------------------------------


class Watch:
    """A lookout whose time is told by hand."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch, name: str = "beat-1") -> None:
        self.events: list[Event] = []
        self.seconds = 1000.0
        self.lookout = Lookout(store, name=name, emit=self.events.append)
        monkeypatch.setattr("beat.engine.unserved_queues.time", SimpleNamespace(monotonic=lambda: self.seconds))

    def turn(self, *sent: str, after: float = 5) -> list[tuple[str, str]]:
        """So many seconds later, ticks have gone to these queues: what is said."""
        self.seconds += after
        for each in sent:
            self.lookout.sent(each)
        before = len(self.events)
        self.lookout.turn()
        return [(event.name, event.fields["queue"]) for event in self.events[before:]]


@pytest.fixture
def watch(store: Store, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(store, monkeypatch)


def test_a_queue_is_told_when_nobody_reads_it_in_two_looks(watch: Watch) -> None:
    assert watch.turn("mail") == []
    assert watch.turn() == [("no_worker", "mail")]
    assert [watch.turn("mail") for _ in range(3)] == [[], [], []]


def test_looks_that_follow_at_once_are_one(watch: Watch) -> None:
    assert watch.turn("mail") == []
    assert watch.turn(after=0.5) == []
    assert watch.turn(after=4) == []
    assert watch.turn(after=0.5) == [("no_worker", "mail")]


def test_a_worker_that_restarts_meanwhile_is_no_news(watch: Watch, redis: Redis) -> None:
    assert watch.turn("mail") == []
    hire(redis, "w1")
    assert watch.turn("mail") == []
    redis.delete("rq:worker:w1")
    assert watch.turn("mail") == []
    assert watch.turn("mail") == [("no_worker", "mail")]


def test_a_queue_that_a_worker_reads_is_no_news(watch: Watch, redis: Redis) -> None:
    hire(redis, "w1")
    assert [watch.turn("mail") for _ in range(3)] == [[], [], []]
    assert not redis.exists("beat:unread")


def test_a_queue_to_which_nothing_goes_is_not_looked_at(watch: Watch, redis: Redis) -> None:
    assert [watch.turn() for _ in range(3)] == [[], [], []]
    assert not redis.exists("beat:unread")


def test_a_worker_that_comes_is_told_with_since_when_there_was_none(watch: Watch, redis: Redis) -> None:
    watch.turn("mail")
    watch.turn()
    since = str(redis.hget("beat:unread", "mail")).split(" ")[0]
    hire(redis, "w1")
    assert watch.turn() == [("worker_back", "mail")]
    assert watch.events[-1] == Event("worker_back", fields={"queue": "mail", "since": since})
    assert watch.turn("mail") == []


def test_a_beat_that_restarts_does_not_say_it_again(
    watch: Watch, store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.turn("mail")
    watch.turn()
    second = Watch(store, monkeypatch, "beat-2")
    assert [second.turn("mail") for _ in range(3)] == [[], [], []]
    hire(redis, "w1")
    assert second.turn() == [("worker_back", "mail")]
    assert watch.turn() == []


def test_a_beat_that_sent_nothing_sees_that_a_worker_is_back(
    watch: Watch, store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.turn("mail")
    watch.turn()
    second = Watch(store, monkeypatch, "beat-2")
    assert second.turn() == []
    hire(redis, "w1")
    assert second.turn() == [("worker_back", "mail")]


def test_where_nobody_may_look_nothing_is_said(store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    note(store, Seen("slow", "0", 1))
    with restricted(store, "-srandmember") as few:
        blind = Watch(few, monkeypatch)
        assert [blind.turn("mail", "slow") for _ in range(3)] == [[], [], []]
    assert redis.hkeys("beat:unread") == ["slow"]


def test_what_was_sent_while_redis_was_away_is_looked_at_when_it_is_back(
    watch: Watch, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise exceptions.ConnectionError("away")

    with monkeypatch.context() as patch:
        patch.setattr(queue_workers, "note", away)
        with pytest.raises(exceptions.ConnectionError):
            watch.turn("mail")
        patch.setattr(queue_workers, "staff", away)
        with pytest.raises(exceptions.ConnectionError):
            watch.turn("slow")
    assert watch.turn() == [("no_worker", "mail")]
    assert watch.turn() == [("no_worker", "slow")]
    assert set(redis.hkeys("beat:unread")) == {"mail", "slow"}
