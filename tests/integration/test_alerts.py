"""Alerts on a real Redis: a decision is written once, whoever is killed where; a message is kept until it was taken."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

import pytest

from beat.engine.events import Event
from beat.engine.health import Once
from beat.notify.alerts import evaluator, overdue, rules
from beat.notify.alerts.evaluator import Decider, Lost, Turn
from beat.notify.alerts.incidents import Message
from beat.notify.channels import Channel
from beat.notify.delivery import Sender
from beat.notify.outbox import Handed, Item, Kept
from beat.storage import connection
from beat.storage.lock import Lock
from beat.timing import clock
from tests.support.builders import shows
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.storage.store import Store

GROUP = "beat-alerts-app"
ENTRY = json.dumps({"error": {"type": "KeyError", "message": "x", "traceback": ""}})


@pytest.fixture
def kept(store: Store) -> Kept:
    return Kept(store, "app")


def rule(**given: Any) -> rules.Rule:
    return rules.read({"on": ["failed", "recovered"], "channel": "ops", "name": "r", **given}, "a rule")


def say(redis: Redis, type_: str, schedule: str = "report", job: str = "j", **entry: Any) -> str:
    fields: Any = {"type": type_, "schedule": schedule, "job": job, "entry": json.dumps(entry) if entry else ENTRY}
    return str(redis.xadd("beat:events", fields))


def turn(kept: Kept, *mine: rules.Rule, told: list[Event] | None = None, token: str = "") -> Turn:
    events: list[Event] = [] if told is None else told
    emit = events.append
    return Turn(kept, mine or [rule()], emit, Once(emit), token)


def read(made: Turn) -> None:
    """Decides on all that there is to read."""
    while taken := made.reader.look():
        made.take(taken)


def sent(redis: Redis, channel: str = "ops") -> list[tuple[str, str]]:
    """What waits to be sent: which message about which incident, and what it says."""
    with redis.pipeline() as pipe:  # at one instant: somebody may be writing both
        pipe.hgetall(f"beat:messages:app.{channel}")
        pipe.zrange(f"beat:deliveries:app.{channel}", 0, -1)
        found, order = pipe.execute()
    assert sorted(found) == sorted(order)
    return sorted((key, json.loads(text)["state"]) for key, text in found.items())


def in_hand(redis: Redis) -> int:
    pending: Any = redis.xpending("beat:events", GROUP)
    return int(pending["pending"])


# --- the decision ----------------------------------------------------------------------------------------------------


@shows("decide", "OK")
def test_an_event_becomes_a_state_and_a_message_and_is_acknowledged_in_one_step(redis: Redis, kept: Kept) -> None:
    made = turn(kept)
    read(made)
    first = say(redis, "failed", job="a")
    say(redis, "enqueued")
    say(redis, "failed", job="b")
    read(made)
    assert sent(redis) == [(f"r.run.report.{first} 1", "opened")]
    assert json.loads(redis.hget("beat:incidents:app", "r:run:report") or "")["count"] == 2
    assert in_hand(redis) == 0
    say(redis, "succeeded", job="c")
    read(made)
    assert [how for _, how in sent(redis)] == ["opened", "closed"]
    assert not redis.hexists("beat:incidents:app", "r:run:report")


@shows("decide", "STALE")
def test_of_two_who_have_the_same_event_in_hand_one_decides(redis: Redis, kept: Kept) -> None:
    one, other = turn(kept), turn(kept)
    read(one)
    say(redis, "failed", job="a")
    taken, again = one.reader.look(), other.reader.look()
    assert [each.id for each in taken] == [each.id for each in again]
    one.take(taken)
    with pytest.raises(Lost):
        other.take(again)
    assert len(sent(redis)) == 1


@shows("decide", "FENCED")
def test_who_has_lost_the_lock_decides_nothing_and_acknowledges_nothing(redis: Redis, kept: Kept) -> None:
    lock = Lock(kept.store.client, kept.lock, 60_000)
    assert lock.acquire()
    old = turn(kept, token=lock.token)
    read(old)
    say(redis, "failed", job="a")
    say(redis, "succeeded", job="b")
    taken = old.reader.look()
    assert lock.release()
    other = Lock(kept.store.client, kept.lock, 60_000)
    assert other.acquire()
    for page in (taken, taken[1:]):  # the success alone means nothing to who does not know of the failure
        with pytest.raises(Lost):
            old.take(page)
    say(redis, "failed", job="c")
    assert old.reader.look() == []
    assert in_hand(redis) == 2
    read(turn(kept, token=other.token))
    assert [how for _, how in sorted(sent(redis))] == ["opened", "closed", "opened"]
    assert in_hand(redis) == 0


def test_who_loses_the_lock_while_it_reads_stops(redis: Redis, kept: Kept) -> None:
    lock = Lock(kept.store.client, kept.lock, 60_000)
    assert lock.acquire()
    made = turn(kept, token=lock.token)
    read(made)
    say(redis, "failed")
    real = made.reader.look

    def slow() -> Any:
        taken = real()
        redis.set(kept.lock, "another", px=60_000)
        return taken

    with mock.patch.object(made.reader, "look", slow), pytest.raises(Lost):
        made.go_on(lock, threading.Event())
    assert in_hand(redis) == 1


@pytest.mark.parametrize("command", ["zadd", "pexpire", "hrandfield", "zrem", "xack"])
def test_a_right_that_is_missing_is_said_before_anything_is_written(redis: Redis, kept: Kept, command: str) -> None:
    made = turn(kept)
    read(made)
    say(redis, "failed")
    taken, server = made.reader.look(), cast("Any", redis)
    server.execute_command("ACL", "SETUSER", "default", f"-{command}")
    try:
        with pytest.raises(connection.Refused, match=f"do {command} with"):
            made.take(taken)
    finally:
        server.execute_command("ACL", "SETUSER", "default", "+@all")
    assert not redis.exists("beat:incidents:app", "beat:messages:app.ops", "beat:deliveries:app.ops")


@shows("decide", "CHANGED")
def test_who_decides_on_a_state_that_is_no_longer_so_writes_nothing(redis: Redis, kept: Kept) -> None:
    late, prompt = turn(kept), turn(kept)
    read(late)
    say(redis, "failed", job="a")
    read(prompt)
    say(redis, "failed", job="b")
    with pytest.raises(Lost):
        read(late)
    assert in_hand(redis) == 1
    read(turn(kept))
    assert (in_hand(redis), len(sent(redis))) == (0, 1)


@shows("decide", "BADTYPE")
@pytest.mark.parametrize("key", ["beat:incidents:app", "beat:deliveries:app.ops", "beat:messages:app.ops"])
def test_a_key_of_another_kind_is_said_and_the_event_stays_in_hand(redis: Redis, kept: Kept, key: str) -> None:
    told: list[Event] = []
    made = turn(kept, told=told)
    read(made)
    redis.set(key, "mine", px=60_000)
    say(redis, "failed")
    with pytest.raises(Lost):
        read(made)
    assert [(each.name, key in each.fields["error"]) for each in told] == [("alerts_refused", True)]
    assert in_hand(redis) == 1
    redis.delete(key)


@pytest.mark.parametrize("kill", ["before", "after"])
def test_a_kill_before_the_decision_repeats_it_and_after_it_never(redis: Redis, kept: Kept, kill: str) -> None:
    killed = turn(kept)
    read(killed)
    first = say(redis, "failed", job="a")
    real = Kept.decide

    def dies(*given: Any, **named: Any) -> Any:
        if kill == "after":
            real(*given, **named)
        raise KeyboardInterrupt

    with mock.patch.object(Kept, "decide", dies), suppress(KeyboardInterrupt):
        read(killed)
    assert in_hand(redis) == (1 if kill == "before" else 0)
    read(turn(kept))
    assert sent(redis) == [(f"r.run.report.{first} 1", "opened")]
    assert in_hand(redis) == 0


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_and_whoever_is_killed_where_the_messages_are_the_same(
    redis: Redis, kept: Kept, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 (a die)
    mine = [rule(times=2), rule(name="all", on="failed")]
    read(turn(kept, *mine))
    history = [(chance.choice(["failed", "failed", "succeeded"]), chance.choice(["a", "b"])) for _ in range(40)]
    ids = [say(redis, type_, schedule, job=f"j{n}") for n, (type_, schedule) in enumerate(history)]
    real = Kept.decide

    def risky(*given: Any, **named: Any) -> Any:
        fate = chance.random()
        if fate < 0.3:
            raise KeyboardInterrupt
        reply = real(*given, **named)
        if fate < 0.6:
            raise KeyboardInterrupt
        return reply

    with mock.patch.object(Kept, "decide", risky):
        while in_hand(redis) or redis.xinfo_groups("beat:events")[0]["lag"]:
            with suppress(KeyboardInterrupt):
                read(turn(kept, *mine))
    assert sorted(sent(redis)) == sorted(expected(history, ids))


def expected(history: list[tuple[str, str]], ids: list[str]) -> Iterator[tuple[str, str]]:
    streaks, opened = Counter[str](), dict[str, str]()
    for (type_, schedule), event in zip(history, ids, strict=True):
        if type_ == "succeeded":
            if schedule in opened:
                yield f"{opened.pop(schedule)} 2", "closed"
            streaks[schedule] = 0
            continue
        streaks[schedule] += 1
        if streaks[schedule] == 1:
            yield f"all.run.{schedule}.{event} 1", "opened"
        if streaks[schedule] == 2:
            opened[schedule] = f"r.run.{schedule}.{event}"
            yield f"{opened[schedule]} 1", "opened"


def test_more_incidents_than_can_be_remembered_are_given_up_and_said(redis: Redis, kept: Kept) -> None:
    for number in range(4):
        item = Item("state", f"r:run:{number}", "", "{}")
        message = kept.message(Message("ops", f"i{number} 1", "{}"))
        reply = kept.decide([item, message], group=GROUP, event="", most=3, most_waiting=2)
    assert reply.words == "2"
    assert redis.hlen("beat:incidents:app") == 3
    assert redis.hexists("beat:incidents:app", "r:run:3")
    assert redis.zrange("beat:deliveries:app.ops", 0, -1) == ["i2 1", "i3 1"]
    assert redis.hlen("beat:messages:app.ops") == 2
    assert redis.pttl("beat:deliveries:app.ops") > 86_400_000 < redis.pttl("beat:messages:app.ops")


def test_bytes_that_are_no_state_are_passed_over(redis: Redis, kept: Kept) -> None:
    kept.store.client.hset("beat:incidents:app", mapping={b"r:run:report": b"\xff{", b"\xff": b"x", b"r:x": b"{}"})
    made = turn(kept, rule(on=["failed", "late_fire", "broken", "late_end"]))
    made.look()
    read(made)
    say(redis, "failed")
    read(made)
    assert len(sent(redis)) == 1


def test_what_belongs_to_no_rule_is_forgotten_after_a_week(redis: Redis, kept: Kept) -> None:
    def state(last: str) -> str:
        return json.dumps({"event": "failed", "count": 1, "since": last, "last": last})

    new, old = state(clock.text(kept.store.time())), state("2026-01-01T00:00:00Z")
    redis.hset("beat:incidents:app", mapping={"x:run:a": new, "x:run:b": old, "x:run:c": "odd", "r:run:d": old})
    stopping = threading.Event()
    stopping.set()
    turn(kept).go_on(Lock(kept.store.client, kept.lock, 1000), stopping)
    assert sorted(redis.hkeys("beat:incidents:app")) == ["r:run:d", "x:run:a"]


def test_what_redis_refuses_is_said_once_and_tried_again(redis: Redis, kept: Kept) -> None:
    told: list[Event] = []
    made = Decider(lambda: kept, [rule()], told.append)
    redis.set("beat:incidents:app", "mine", px=60_000)
    for _ in range(2):
        with pytest.raises(connection.Refused):
            made.run(threading.Event())
    assert [each.name for each in told] == ["alerts_refused"]
    assert not redis.exists("beat:alerting:app")
    redis.delete("beat:incidents:app")


def test_an_event_of_last_week_changes_the_state_and_wakes_nobody(redis: Redis, kept: Kept) -> None:
    made = turn(kept)
    read(made)
    say(redis, "failed", job="a", ended="2026-01-01T00:00:00Z")
    read(made)
    assert redis.hexists("beat:incidents:app", "r:run:report")
    assert not redis.exists("beat:messages:app.ops")
    fresh = say(redis, "failed", job="b")
    read(made)
    assert sent(redis) == [(f"r.run.report.{fresh} 1", "opened")], "it still goes on"


def test_a_queue_that_has_had_no_worker_for_days_is_told(redis: Redis, kept: Kept) -> None:
    made = turn(kept, rule(on="no_worker"))
    read(made)
    redis.xadd("beat:events", {"type": "no_worker", "entry": json.dumps({"queue": "mail"})}, id="1767225600000-0")
    read(made)
    assert [how for _, how in sent(redis)] == ["opened"]


def test_a_run_that_is_queued_again_and_fails_again_counts_once(redis: Redis, kept: Kept) -> None:
    made = turn(kept, rule(times=3))
    read(made)
    say(redis, "failed", job="a")
    say(redis, "failed", job="b")
    say(redis, "reopened", job="b", was="failed")
    say(redis, "failed", job="b")
    read(made)
    assert not redis.exists("beat:messages:app.ops")
    third = say(redis, "failed", job="c")
    read(made)
    assert sent(redis) == [(f"r.run.report.{third} 1", "opened")]


def test_events_that_were_gone_are_said(redis: Redis, kept: Kept) -> None:
    told: list[Event] = []
    made = turn(kept, told=told)
    read(made)
    say(redis, "failed")
    redis.xtrim("beat:events", 0)
    read(made)
    assert [(each.name, each.fields["count"]) for each in told] == [("alerts_missed", "1")]


def test_a_queue_without_a_worker_is_an_incident_until_one_is_back(redis: Redis, kept: Kept) -> None:
    made = turn(kept, rule(on=["no_worker", "recovered"], queues="mail*"))
    read(made)
    for type_, queue in (("no_worker", "mail"), ("no_worker", "other"), ("worker_back", "mail")):
        say(redis, type_, "", queue=queue)
    read(made)
    assert [how for _, how in sent(redis)] == ["opened", "closed"]


def test_the_second_time_that_a_queue_has_no_worker_is_told_though_nobody_said_that_the_first_was_over(
    redis: Redis, kept: Kept
) -> None:
    made = turn(kept, rule(on="no_worker"))
    read(made)
    ids = []
    for _ in range(2):
        ids.append(say(redis, "no_worker", "", queue="mail"))
        read(made)
    assert sent(redis) == [(f"r.no_worker.mail.{each} 1", "opened") for each in ids]


# --- what no event tells ---------------------------------------------------------------------------------------------


def texts(redis: Redis) -> list[str]:
    found: Any = redis.hgetall("beat:messages:app.ops")
    return [json.loads(found[key])["text"] for key in sorted(found, key=lambda key: key.split()[1])]


def test_a_tick_that_does_not_fire_is_told_once_and_that_it_has(redis: Redis, kept: Kept) -> None:
    now = clock.to_ms(kept.store.time())
    due = clock.text(clock.from_ms(now - 120_000))
    redis.hset("beat:schedule:report", mapping={"state": "active", "next_run": due, "due_at": due})
    redis.hset("beat:schedule:asleep", mapping={"state": "paused", "next_run": due, "due_at": due})
    redis.zadd("beat:due", {"report": now - 120_000, "asleep": now - 120_000, "soon": now, "none": 1})
    made = turn(kept, rule(on=["late_fire", "recovered"]))
    made.look()
    assert not redis.exists("beat:messages:app.ops"), "this beat has not been here for a minute"
    made.lateness.began_at -= 60
    made.look()
    made.look()
    assert texts(redis) == [f"report was due at {due}, and has not fired"]
    redis.hset("beat:schedule:report", mapping={"due_at": clock.text(kept.store.time())})
    made.look()
    assert texts(redis)[1:] == ["report is no longer late"]


def test_a_tick_that_a_beat_tries_and_cannot_fire_is_late_too(
    redis: Redis, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "_TRIED", 2)
    now = clock.to_ms(kept.store.time())
    due, soon = (clock.text(clock.from_ms(now + ms)) for ms in (-120_000, 20_000))
    for each, at in (("tried", due), ("soon", soon), ("other", soon), ("held", due)):
        redis.hset(f"beat:schedule:{each}", mapping={"state": "active", "next_run": at, "due_at": at})
    redis.hset("beat:schedule:held", "unannounced_at", due)
    redis.zadd("beat:due", {"held": now, "soon": now + 20_000, "other": now + 20_000, "tried": now + 28_000})
    made = turn(kept, rule(on="late_fire"))
    made.lateness.began_at -= 60
    made.look()
    made.look()
    assert texts(redis) == [f"tried was due at {due}, and has not fired"]


@pytest.mark.parametrize(
    ("event", "status", "said"),
    [
        ("late_start", "queued", ("was queued at", "report waits no longer: j")),
        ("late_end", "started", ("started at", "report has ended: j")),
    ],
)
def test_a_run_that_does_not_start_or_end_is_told_once(
    redis: Redis, kept: Kept, event: str, status: str, said: tuple[str, str]
) -> None:
    ago = clock.text(clock.from_ms(clock.to_ms(kept.store.time()) - 90_000))
    redis.zadd("beat:open", {"j": 0, "new": 0, "odd": 0})
    redis.hset("beat:records", "j", json.dumps({"schedule": "report", "enqueued": ago}))
    redis.hset("beat:records", "new", json.dumps({"schedule": "report", "enqueued": clock.text(kept.store.time())}))
    redis.hset("rq:job:j", mapping={"status": status, "started_at": ago})
    redis.hset("rq:job:new", mapping={"status": status, "started_at": clock.text(kept.store.time())})
    made = turn(kept, rule(on=[event, "recovered"], after="1m"))
    made.look()
    made.look()
    [words] = texts(redis)
    assert said[0] in words
    redis.hset("rq:job:j", "status", "finished")
    redis.zrem("beat:open", "j")
    made.look()
    assert texts(redis)[1:] == [said[1]]


def test_a_run_that_was_queued_again_just_now_is_not_late(redis: Redis, kept: Kept) -> None:
    now = kept.store.time()
    redis.zadd("beat:open", {"j": 0})
    ago = clock.text(clock.from_ms(clock.to_ms(now) - 90_000))
    redis.hset("beat:records", "j", json.dumps({"schedule": "report", "enqueued": ago}))
    redis.hset("rq:job:j", mapping={"status": "queued", "enqueued_at": clock.text(now)})
    turn(kept, rule(on="late_start", after="1m")).look()
    assert not redis.exists("beat:messages:app.ops")


@pytest.mark.parametrize("state", [None, "retired"])
@pytest.mark.parametrize("event", ["late_fire", "broken"])
def test_of_a_schedule_that_is_gone_nobody_is_told_that_it_is_well(
    redis: Redis, kept: Kept, event: str, state: str | None
) -> None:
    now = clock.to_ms(kept.store.time())
    due = clock.text(clock.from_ms(now - 120_000))
    told: Any = {"state": "broken" if event == "broken" else "active", "next_run": due, "due_at": due}
    redis.hset("beat:schedule:report", mapping=told)
    redis.zadd("beat:due", {"report": now - 120_000})
    redis.sadd("beat:in:broken", "report")
    made = turn(kept, rule(on=[event, "recovered"]))
    made.lateness.began_at -= 60
    made.look()
    assert len(texts(redis)) == 1
    redis.delete("beat:schedule:report")
    if state:
        redis.hset("beat:schedule:report", "state", state)
    made.look()
    assert len(texts(redis)) == 1
    assert redis.hkeys("beat:incidents:app") == ["@seen"]


def test_each_rule_has_its_own_patience(redis: Redis, kept: Kept) -> None:
    ago = clock.text(clock.from_ms(clock.to_ms(kept.store.time()) - 90_000))
    redis.zadd("beat:open", {"j": 0})
    redis.hset("beat:records", "j", json.dumps({"schedule": "report", "enqueued": ago}))
    redis.hset("rq:job:j", mapping={"status": "started", "started_at": ago})
    turn(kept, rule(on="late_end", after="1h"), rule(on="late_end", after="1m", name="s", channel="soon")).look()
    assert (redis.exists("beat:messages:app.ops"), len(sent(redis, "soon"))) == (0, 1)


def test_a_schedule_that_is_broken_is_told_and_that_it_is_mended(redis: Redis, kept: Kept) -> None:
    redis.sadd("beat:in:broken", "report", "other", "gone")
    for each in ("report", "other"):
        redis.hset(f"beat:schedule:{each}", mapping={"state": "broken", "last_error": "no such function"})
    made = turn(kept, rule(on=["broken", "recovered"], schedules="report"))
    made.look()
    made.look()
    assert texts(redis) == ["report is broken, and does not fire: no such function"]
    redis.hset("beat:schedule:report", "state", "active")
    redis.srem("beat:in:broken", "report")
    made.look()
    assert texts(redis)[1:] == ["report is in order again"]


def test_what_lasts_is_told_to_a_second_channel(redis: Redis, kept: Kept) -> None:
    redis.sadd("beat:in:broken", "report")
    redis.hset("beat:schedule:report", "state", "broken")
    made = turn(kept, rule(on="broken", escalate_after="1s", escalate_to="pager"))
    made.look()

    def told() -> Any:
        made.look()
        return redis.exists("beat:messages:app.pager")

    wait_until(told)
    assert [how for _, how in sent(redis, "pager")] == ["escalated"]


def test_a_time_without_any_beat_is_told_once_by_the_first_that_comes(redis: Redis, kept: Kept) -> None:
    mine = rule(on="no_beat")
    stopping = threading.Event()
    stopping.set()
    lock = Lock(kept.store.client, kept.lock, 10_000)
    turn(kept, mine).look()
    turn(kept, mine).go_on(lock, stopping)
    assert not redis.exists("beat:messages:app.ops")
    redis.hset("beat:incidents:app", "@seen", "2026-11-01T00:00:00Z")
    one, other = turn(kept, mine), turn(kept, mine)
    one.go_on(lock, stopping)
    with pytest.raises(Lost):
        other.go_on(lock, stopping)
    [said] = texts(redis)
    assert said.startswith("no scheduler was running from 2026-11-01T00:00:00Z to 20")


def test_one_beat_at_a_time_decides_and_another_goes_on_where_it_ended(redis: Redis, kept: Kept) -> None:
    stops = [threading.Event(), threading.Event()]
    told: list[Event] = []
    made = [Decider(lambda: kept, [rule()], told.append) for _ in stops]
    threads = [threading.Thread(target=each.run, args=(stop,)) for each, stop in zip(made, stops, strict=True)]
    with mock.patch.object(evaluator, "_WAIT_S", 0.05):
        threads[0].start()
        wait_until(lambda: redis.exists("beat:alerting:app"))
        threads[1].start()
        wait_until(lambda: redis.exists("beat:events"))
        say(redis, "failed", job="a")
        wait_until(lambda: redis.exists("beat:messages:app.ops"))
        stops[0].set()
        threads[0].join()
        say(redis, "succeeded", job="b")
        wait_until(lambda: len(sent(redis)) == 2)
        stops[1].set()
        threads[1].join()
    assert not redis.exists("beat:alerting:app")


# --- sending ---------------------------------------------------------------------------------------------------------


def put(kept: Kept, *keys: str, at: str = "") -> None:
    text = json.dumps({"incident": keys[0].split()[0], "at": at or clock.text(kept.store.time())})
    kept.decide([kept.message(Message("ops", key, text)) for key in keys], group=GROUP, event="")


@shows("hand", "OK", "NONE")
def test_a_message_that_is_on_its_way_is_hidden_until_it_was_taken(redis: Redis, kept: Kept) -> None:
    put(kept, "i 1")
    found = kept.hand("ops", lease=60_000)
    assert isinstance(found, Handed)
    assert (found.key, found.incident) == ("i 1", "i")
    waits = kept.hand("ops", lease=60_000)
    assert not isinstance(waits, Handed)
    assert 50_000 < int(waits.words) <= 60_000
    kept.taken("ops", found.key)
    assert not redis.keys("beat:*ops")


def test_the_messages_of_one_incident_come_in_their_order_and_those_of_others_meanwhile(kept: Kept) -> None:
    put(kept, "i 1", "i 2", "i 3", "k 1")
    kept.later("ops", "i 1", 5)
    found = kept.hand("ops", lease=60_000)
    assert isinstance(found, Handed)
    assert found.key == "k 1"
    assert not isinstance(kept.hand("ops", lease=60_000), Handed)
    kept.taken("ops", "i 1")
    found = kept.hand("ops", lease=60_000)
    assert isinstance(found, Handed)
    assert found.key == "i 2"


@shows("hand", "BADTYPE")
def test_what_is_no_message_is_passed_over(redis: Redis, kept: Kept) -> None:
    redis.zadd("beat:deliveries:app.ops", {"odd": 1, "a 1": 1, "b 99": 1, "c 1 2": 1})
    redis.hset("beat:messages:app.ops", mapping={"odd": "x", "b 99": "x"})
    assert not isinstance(kept.hand("ops", lease=1000), Handed)
    assert not redis.exists("beat:deliveries:app.ops")
    redis.set("beat:deliveries:app.ops", "mine", px=60_000)
    assert not isinstance(kept.hand("ops", lease=1000), Handed)
    redis.delete("beat:deliveries:app.ops", "beat:messages:app.ops")


def sender(kept: Kept, function: Any, told: list[Event]) -> Sender:
    return Sender(lambda: kept, Channel("ops", "function", function=function), told.append)


def test_a_channel_that_fails_is_said_once_and_tried_until_it_works(redis: Redis, kept: Kept) -> None:
    told, heard, works = list[Event](), list[Any](), False

    def page(alert: Any) -> None:
        heard.append(alert["incident"])
        if not works:
            raise ValueError("busy")

    put(kept, "i 1")
    made = sender(kept, page, told)
    waits = []
    for _ in range(3):
        found = kept.hand("ops", lease=1000)
        assert isinstance(found, Handed)
        made.send(kept, found)
        waits.append(
            round((redis.zscore("beat:deliveries:app.ops", "i 1") or 0) / 1000 - clock.to_ms(kept.store.time()) / 1000)
        )
        redis.zadd("beat:deliveries:app.ops", {"i 1": 0})
    assert waits == [1, 2, 4]
    works = True
    stopping = threading.Event()
    thread = threading.Thread(target=made.run, args=(stopping,))
    thread.start()
    wait_until(lambda: not redis.exists("beat:deliveries:app.ops"))
    wait_until(lambda: len(told) == 3)
    stopping.set()
    thread.join()
    assert [each.name for each in told] == ["alert_failed", "alerted", "alert_back"]
    assert told[0].fields["error"] == "raised ValueError: busy"
    assert heard == ["i"] * 4


@pytest.mark.parametrize("at", ["2026-01-01T00:00:00Z", "nonsense"])
def test_what_no_channel_has_taken_for_a_day_is_given_up(redis: Redis, kept: Kept, at: str) -> None:
    told: list[Event] = []
    put(kept, "i 1", at=at)
    found = kept.hand("ops", lease=1000)
    assert isinstance(found, Handed)
    sender(kept, {}.__getitem__, told).send(kept, found)
    assert [each.name for each in told] == ["alert_failed", "alert_dropped"]
    assert not redis.keys("beat:*ops")
