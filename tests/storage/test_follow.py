"""One success with more followers than one step may hand it on to: each follower has one tick, whoever goes on."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from beat.engine.definition_cache import Book
from beat.engine.run_tracker import Watcher
from beat.engine.waiting import Attendant
from beat.storage import scripts
from beat.storage.messages import Reply
from beat.storage.runs import Runs
from beat.storage.slots import Slots
from tests.support.builders import TOKEN, changed, everything, hash_of, restricted, shows
from tests.support.hand_made import close, closing, put_run, put_schedule, record
from tests.support.many_schedules import Town, following, periodic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.engine.events import Event
    from beat.storage.store import Store

MANY = 1200
"""Followers: more than two steps hand on to."""
STEP = 500
WRITTEN = scripts.script
FANOUT, REST = "beat:fanout", "beat:fanout:beat_report_1"


def followed(store: Store, number: int = MANY, parent: str = "report") -> list[str]:
    """So many schedules follow another, as far as closing its runs looks at them."""
    put_schedule(store, parent)
    ids = [f"f{n:04}" for n in range(number)]
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hset(store.keys.schedule(each), mapping={"follows": parent, "rev": "r1", "state": "active"})
        pipe.sadd(store.keys.followers(parent), *ids)
        pipe.execute()
    return ids


def succeed(store: Store, *jobs: str) -> list[Reply]:
    """Runs of `report` have succeeded, and that is written down in one step."""
    for job in jobs:
        put_run(store, job)
    return close(Runs(store), *[closing(job, entry=f'{{"type":"succeeded","job":"{job}"') for job in jobs])


def waiting(store: Store) -> Counter[tuple[str, str]]:
    """How often each follower waits with a tick for each success."""
    found: Counter[tuple[str, str]] = Counter()
    for key in store.client.scan_iter("beat:waiting:*", count=1000):
        members: Any = store.client.zrange(key, 0, -1)
        found.update((words[0], words[3]) for words in (member.decode().split(" ") for member in members))
    return found


def drain(store: Store) -> Counter[tuple[str, str]]:
    """The same, and the ticks leave their lists, as if they were fired."""
    found = waiting(store)
    for key in list(store.client.scan_iter("beat:waiting:*", count=1000)):
        store.client.delete(key)
    return found


def hand_on(store: Store, most: int = 50) -> Iterator[int]:
    """Steps to the end, each of another scheduler; how many successes are left after each."""
    for n in range(most):
        slots = Slots(store)
        assert slots.follow(token=f"web-{n}").code == "OK"
        yield slots.pending
        if not slots.pending:
            return
    pytest.fail("there is no end")


# --- one success -----------------------------------------------------------------------------------------------------


@shows("follow", "OK")
def test_success_with_many_followers_is_handed_on_in_parts(store: Store) -> None:
    ids = followed(store)
    assert succeed(store, "beat_report_1") == [Reply("OK")]
    assert not waiting(store)
    before, sizes = 0, []
    for _ in hand_on(store):
        sizes.append(waiting(store).total() - before)
        before += sizes[-1]
    assert len(sizes) == 3
    assert all(0 < size <= STEP for size in sizes)
    assert waiting(store) == Counter((each, "beat_report_1") for each in ids)
    assert store.client.zcard("beat:waiting") == MANY
    assert not store.client.exists(FANOUT, REST)


def test_ticks_of_one_success_are_the_same_for_all_followers(store: Store) -> None:
    followed(store)
    succeed(store, "beat_report_1")
    list(hand_on(store))
    client: Any = store.client
    ticks = {client.zrange(key, 0, -1)[0].split(b" ")[1] for key in client.scan_iter("beat:waiting:*")}
    assert len(ticks) == 1


def test_follower_whose_tick_fired_meanwhile_has_no_second_one(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    found: Counter[tuple[str, str]] = Counter()
    for _ in hand_on(store):
        found += drain(store)
    assert found == Counter((each, "beat_report_1") for each in ids)


def test_close_that_is_sent_again_hands_nothing_on_twice(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    next(hand_on(store))
    found = drain(store)
    item = closing("beat_report_1", entry='{"type":"succeeded","job":"beat_report_1"')
    assert close(Runs(store), item) == [Reply("STALE")]
    for _ in hand_on(store):
        found += drain(store)
    assert found == Counter((each, "beat_report_1") for each in ids)


def test_followers_up_to_the_limit_have_their_ticks_at_once(store: Store) -> None:
    ids = followed(store, STEP)
    succeed(store, "beat_report_1")
    assert waiting(store) == Counter((each, "beat_report_1") for each in ids)
    assert not store.client.exists(FANOUT)


# --- what changes between two steps ----------------------------------------------------------------------------------


def test_new_follower_does_not_make_others_follow_twice(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    found: Counter[tuple[str, str]] = Counter()
    for n, _ in enumerate(hand_on(store)):
        found += drain(store)
        store.client.hset(f"beat:schedule:new{n}", "follows", "report")
        store.client.sadd("beat:followers:report", f"new{n}")
    assert found == Counter((each, "beat_report_1") for each in ids)


def test_follower_that_is_gone_or_follows_another_has_no_tick(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    store.client.delete("beat:schedule:f0001")
    store.client.hset("beat:schedule:f0002", "follows", "another")
    list(hand_on(store))
    assert waiting(store) == Counter((each, "beat_report_1") for each in ids if each not in {"f0001", "f0002"})


def test_full_waiting_list_is_recorded_in_the_ledger_of_the_follower(store: Store) -> None:
    followed(store)
    store.client.zadd("beat:waiting:f0004", {f"f0004 2026-11-16T09:00:00Z follows p{n}": n for n in range(1000)})
    succeed(store, "beat_report_1")
    list(hand_on(store))
    line: Any = store.client.lindex("beat:runs:f0004", 0)
    assert b'"reason":"overlap"' in line
    assert b'"after":"beat_report_1"' in line


# --- many successes --------------------------------------------------------------------------------------------------


@shows("close", "LATER")
def test_close_does_only_so_much_in_one_step(store: Store) -> None:
    followed(store, 200)
    replies = succeed(store, *(f"beat_report_{n}" for n in range(10)))
    assert replies == [Reply("OK")] * 3 + [Reply("LATER")] * 7
    assert waiting(store).total() == 3 * 200


def test_watcher_sends_what_was_left_for_later_again(store: Store) -> None:
    ids = followed(store, 200)
    jobs = [f"beat_report_{n}" for n in range(10)]
    for job in jobs:
        put_run(store, job, record=record())
    Watcher(store, name=TOKEN, emit=lambda _: None).look(len(jobs))
    assert waiting(store) == Counter(itertools.product(ids, jobs))
    assert not store.client.exists("beat:open")


def test_successes_are_handed_on_one_after_the_other(store: Store) -> None:
    ids = followed(store)
    jobs = [f"beat_report_{n}" for n in range(4)]
    assert succeed(store, *jobs) == [Reply("OK")] * 4
    for _ in hand_on(store):
        assert len(list(store.client.scan_iter("beat:fanout:*"))) <= 1
    assert waiting(store) == Counter(itertools.product(ids, jobs))


def test_run_stays_open_while_too_many_successes_are_handed_on(store: Store) -> None:
    followed(store)
    tick = "2026-11-16T09:00:00.000Z"
    store.client.zadd(FANOUT, {f"report {tick} p{n}": n for n in range(1000)})
    assert succeed(store, "beat_report_1") == [Reply("CHANGED")]
    store.client.zremrangebyrank(FANOUT, 0, 0)
    assert close(Runs(store), closing("beat_report_1")) == [Reply("OK")]


# --- what should not be there ----------------------------------------------------------------------------------------


@shows("follow", "BADTYPE")
@pytest.mark.parametrize("key", [FANOUT, "beat:events", "beat:waiting"])
def test_key_of_another_type_stops_before_any_write(key: str, store: Store) -> None:
    followed(store)
    succeed(store, "beat_report_1")
    store.client.delete(key)
    store.client.set(key, "garbage")
    before = everything(store)
    reply = Slots(store).follow(token=TOKEN)
    assert (reply.code, reply.words.split(" ")[0]) == ("BADTYPE", key)
    assert not changed(before, store)


def test_success_that_makes_no_sense_is_dropped(store: Store) -> None:
    ids = followed(store)
    store.client.zadd(FANOUT, {"garbage": 1, "a b c d e": 2, "report yesterday p1": 3})
    succeed(store, "beat_report_1")
    list(hand_on(store))
    assert waiting(store) == Counter((each, "beat_report_1") for each in ids)


def test_success_whose_followers_were_overwritten_is_dropped_and_the_next_one_goes_on(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    Slots(store).follow(token=TOKEN)
    before = waiting(store)
    succeed(store, "beat_report_2")
    store.client.delete(REST)
    store.client.set(REST, "garbage")
    reply = Slots(store).follow(token=TOKEN)
    words = f"{REST} is a string, not a set; some followers have no tick for the success of beat_report_1"
    assert (reply.code, reply.dropped) == ("OK", [("report", words)])
    assert hash_of(store)["last_error"] == words
    list(hand_on(store))
    assert waiting(store) == before + Counter((each, "beat_report_2") for each in ids)
    assert not store.client.exists(FANOUT)
    assert store.client.get(REST) == b"garbage", "the key may be of use to whoever wrote it"


def test_success_that_is_dropped_is_logged_once(store: Store) -> None:
    put_schedule(store, "report")
    store.client.zadd(FANOUT, {"report 2026-11-16T09:00:00.000Z beat_report_1 begun": 1})
    store.client.set(REST, "garbage")
    events: list[Event] = []
    watcher = Watcher(store, name=TOKEN, emit=events.append)
    attendant = Attendant(store, Book(store), watcher, token=TOKEN, emit=events.append)
    attendant.turn()
    attendant.turn()
    assert [(event.name, event.schedule_id) for event in events] == [("unfollowed", "report")]
    assert f"{REST} is a string, not a set" in events[0].fields["error"]


def test_index_of_followers_that_is_overwritten_meanwhile_does_not_stop_a_success(store: Store) -> None:
    ids = followed(store)
    succeed(store, "beat_report_1")
    found: Counter[tuple[str, str]] = Counter()
    for n, _ in enumerate(hand_on(store)):
        found += drain(store)
        if not n:
            store.client.set("beat:followers:report", "garbage")
            store.client.hdel(f"beat:schedule:{ids[-1]}", "follows")
            store.client.sadd(REST, ids[-1])
    found.pop((ids[-1], "beat_report_1"), None)
    assert found == Counter((each, "beat_report_1") for each in ids[:-1])


def test_missing_right_stops_before_any_write(store: Store) -> None:
    followed(store)
    succeed(store, "beat_report_1")
    before = everything(store)
    with restricted(store, "-srem") as barred, pytest.raises(Exception, match="srem"):
        Slots(barred).follow(token=TOKEN)
    assert not changed(before, store)


# --- whoever dies meanwhile ------------------------------------------------------------------------------------------

SIZES = {"local most, item_work, most_pending = 500, 5, 1000": "local most, item_work, most_pending = 3, 1, 1000",
         "local most, copied = 500, 20": "local most, copied = 3, 20"}  # fmt: skip
FOLLOWERS = [f"load{n}" for n in range(8)]


def small(name: str) -> scripts.Script:
    """The scripts, with steps of three followers."""
    text = (found := WRITTEN(name)).text
    for whole, part in SIZES.items():
        text = text.replace(whole, part)
    return replace(found, text=text)


class Struck(Exception):
    """The scheduler died."""


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("how", ["killed before", "killed after", "reply lost"])
def test_each_follower_has_one_job_for_each_success_whoever_dies(
    how: str, at: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in SIZES:
        assert any(text in WRITTEN(name).text for name in ("close", "follow"))
    monkeypatch.setattr(scripts, "script", small)
    place = Town(store, periodic("extract"), *(following(each, "extract") for each in FOLLOWERS))
    jobs: list[str] = []
    for _ in range(2):
        assert place.fire("extract") == Reply("OK")
        jobs.append(place.job("extract", len(jobs)))
    place.end(*jobs)
    real, steps = store.run, itertools.count(1)

    def run(name: str, *given: Any, **named: Any) -> Any:
        hit = name in {"close", "follow", "attend"} and next(steps) == at
        if hit and how == "killed before":
            raise Struck
        reply = real(name, *given, **named)
        if hit:
            raise RedisConnectionError if how == "reply lost" else Struck
        return reply

    monkeypatch.setattr(store, "run", run)
    for _ in range(20):
        watcher = Watcher(store, name=TOKEN, emit=place.events.append)
        place.watcher, place.attendant = (
            watcher,
            Attendant(store, Book(store), watcher, token=TOKEN, emit=place.events.append),
        )
        try:
            place.close()
            place.turn()
        except (Struck, RedisConnectionError):
            continue
    assert next(steps) > at
    for each in FOLLOWERS:
        lines = place.lines(each, "enqueued", "skipped")
        assert sorted(line["after"] for line in lines) == jobs
        assert place.state(each)["run_count"] == "2"
    assert len(place.queued()) == 2 + 2 * len(FOLLOWERS) - len(jobs)
    assert not place.client.exists(FANOUT, "beat:waiting", "beat:open:none")
