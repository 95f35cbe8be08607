"""Schedules that follow another: a tick for each of its successes, once, whatever is sent twice or lost meanwhile."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from rq.job import Job

from beat import Client
from beat.schedule.requires import Requires
from beat.storage.messages import Closing, Reply
from beat.storage.operations import Operations
from beat.storage.runs import Runs
from beat.timing import clock
from tests.support.builders import OTHER, TOKEN, changed, everything, shows
from tests.support.many_schedules import SLOTS, Town, following, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

LOAD = following("load", "extract")


def town(store: Store, *followers: Schedule, groups: dict[str, str] | None = None, **options: Any) -> Town:
    """A schedule `extract`, and who follows it: `load`, unless others do."""
    return Town(store, periodic("extract", **options), *(followers or [LOAD]), **groups or {})


def succeeds(place: Town, schedule_id: str = "extract") -> str:
    """A tick of it fires, and its run ends well; which job that was."""
    job = place.chain(schedule_id)[0].job
    assert place.fire(schedule_id).code == "OK"
    place.succeed(job)
    return job


def afters(place: Town, schedule_id: str = "load", *types: str) -> list[str]:
    """Which jobs its ticks follow that were enqueued, or whatever."""
    return [line["after"] for line in place.lines(schedule_id, *types or ("enqueued",))]


# --- once for each success -------------------------------------------------------------------------------------------


def test_a_success_is_followed_by_one_job_that_knows_what_it_follows(store: Store) -> None:
    place = town(store)
    parent = succeeds(place)
    assert place.waiting("load") == [f"load {parent}"]
    assert place.queued() == []
    place.turn()
    [line] = place.lines("load", "enqueued", "skipped", "waiting")
    assert (line["by"], line["after"], line["n"]) == ("follows", parent, 1)
    assert re.fullmatch("beat_load_f[0-9a-f]{16}", line["job"])
    assert place.queued() == [line["job"]]
    ended = place.lines("extract", "succeeded")[0]["at"]
    assert line["tick"] == ended
    job = Job.fetch(line["job"], connection=place.client)
    assert (job.meta["beat"]["after"], job.meta["beat"]["triggered_by"]) == (parent, "follows")
    state = place.state("load")
    assert (state["run_count"], state["last_run"], state["last_job"]) == ("1", ended, line["job"])
    assert "next_run" not in state
    assert not place.client.exists("beat:waiting:load", SLOTS)
    assert place.client.zscore("beat:due", "load") is None


def test_each_success_is_followed(store: Store) -> None:
    place = town(store)
    parents = [succeeds(place) for _ in range(3)]
    place.turn()
    assert afters(place) == parents
    assert len(set(place.queued())) == 3


@shows("close", "STALE")
def test_a_success_that_is_told_twice_is_followed_once(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    place.end(place.job("extract"))
    with mock.patch.object(store, "run", wraps=store.run) as run:
        place.close()
    [sent] = [call for call in run.call_args_list if call.args[0] == "close"]
    for _ in range(2):
        assert store.run(*sent.args, **sent.kwargs) == [[b"STALE", b""]]
        place.turn()
    assert afters(place) == [place.job("extract")]
    assert len(place.queued()) == 1


def test_a_success_that_was_one_already_is_followed_no_more(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    job = place.job("extract")
    seen = place.client.hget("beat:records", job).decode()
    status = place.client.hget(f"rq:job:{job}", "status").decode()
    item = Closing("close", job, seen, sign=f"{status}||", id="extract", outcome="succeeded", was="succeeded")
    [reply] = Runs(store).close([item._replace(entry='{"type":"succeeded"')], token=TOKEN)
    assert reply == Reply("OK")
    assert not place.client.exists("beat:waiting:load")


@shows("fire", "STALE")
def test_a_tick_that_is_let_in_twice_becomes_one_job(store: Store) -> None:
    place = town(store)
    succeeds(place)
    with mock.patch.object(store, "fire", wraps=store.fire) as fire:
        place.turn()
    before = everything(store)
    [reply] = store.fire(fire.call_args_list[0].args[0], token=OTHER).replies
    assert reply.code == "STALE"
    assert changed(before, store) == set()


@pytest.mark.parametrize("status", ["failed", "stopped", "canceled"])
def test_what_did_not_succeed_is_not_followed(store: Store, status: str) -> None:
    place = town(store)
    place.fire("extract")
    place.end(place.job("extract"), status=status)
    place.close()
    assert not place.client.exists("beat:waiting:load", SLOTS)


def test_what_was_lost_and_then_succeeded_is_followed_once(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    place.lose(place.job("extract"))
    assert place.lines("extract", "lost")
    assert not place.client.exists("beat:waiting:load")
    place.end(place.job("extract"))
    place.look_again()
    place.look_again()
    place.turn()
    assert afters(place) == [place.job("extract")]


def test_what_failed_and_was_run_again_is_followed_when_it_has_succeeded(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    place.end(place.job("extract"), status="failed")
    place.close()
    place.client.hset(f"rq:job:{place.job('extract')}", "status", "queued")
    place.look_again()
    assert not place.client.exists("beat:waiting:load")
    place.succeed(place.job("extract"))
    place.turn()
    assert afters(place) == [place.job("extract")]


def test_a_run_that_somebody_asked_for_is_followed_too(store: Store, server: PrivateRedis) -> None:
    place = town(store)
    job = Client(server.url).trigger("extract").job_id
    place.succeed(job)
    place.turn()
    assert afters(place) == [job]


def test_somebody_may_ask_for_a_run_of_a_follower(store: Store, server: PrivateRedis) -> None:
    place = town(store)
    job = Client(server.url).trigger("load").job_id
    assert place.queued() == [job]
    assert succeeds(place) not in place.queued()
    place.turn()
    assert place.state("load")["run_count"] == "2"


def test_a_schedule_that_was_removed_and_came_again_is_not_followed_for_the_old_one(store: Store) -> None:
    place = town(store)
    place.fire("extract")
    place.client.hset("beat:schedule:extract", "created_at", "2020-01-01T00:00:00Z")
    place.succeed(place.job("extract"))
    assert not place.client.exists("beat:waiting:load")


# --- several ---------------------------------------------------------------------------------------------------------


def test_all_who_follow_do_so_once_each(store: Store) -> None:
    place = town(store, LOAD, following("mail", "extract"))
    parent = succeeds(place)
    place.turn()
    assert afters(place, "load") == afters(place, "mail") == [parent]
    assert len(place.queued()) == 2


def test_a_follower_is_followed(store: Store) -> None:
    place = town(store, LOAD, following("mail", "load"))
    parent = succeeds(place)
    place.turn()
    [load] = place.queued()
    assert afters(place, "mail") == []
    place.succeed(load)
    place.turn()
    assert (afters(place), afters(place, "mail")) == ([parent], [load])


def test_a_broadcast_is_followed_once_when_all_parts_have_succeeded(store: Store) -> None:
    place = town(store, queues=("x", "y"), route="broadcast")
    place.fire("extract")
    job = place.job("extract")
    place.succeed(f"{job}_s1")
    assert not place.client.exists("beat:waiting:load")
    place.end(f"{job}_s0", status="failed")
    place.close()
    assert not place.client.exists("beat:waiting:load")
    place.client.hset(f"rq:job:{job}_s0", "status", "queued")
    place.look_again()
    place.succeed(f"{job}_s0")
    place.turn()
    assert afters(place) == [job]


def test_a_follower_may_be_broadcast(store: Store) -> None:
    place = town(store, following("load", "extract", queues=("x", "y"), route="broadcast"))
    succeeds(place)
    place.turn()
    [line] = place.lines("load", "enqueued")
    assert (place.queued("x"), place.queued("y")) == ([f"{line['job']}_s0"], [f"{line['job']}_s1"])


# --- who does not run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken"])
def test_a_success_that_a_follower_may_not_follow_is_recorded(store: Store, state: str) -> None:
    place = town(store)
    place.client.hset("beat:schedule:load", "state", state)
    parent = succeeds(place)
    place.turn()
    assert (place.reasons("load"), afters(place, "load", "skipped")) == ([state], [parent])
    assert place.queued() == []
    assert place.state("load")["skip_count"] == "1"
    assert not place.client.exists("beat:waiting:load", SLOTS)


def test_a_follower_rests_on_the_days_that_it_excludes(store: Store) -> None:
    today = store.time().date()
    days = [str(today), str(today + timedelta(days=1))]  # midnight may come
    place = town(store, following("load", "extract", exclude=days))
    parent = succeeds(place)
    place.turn()
    assert (place.reasons("load"), afters(place, "load", "skipped")) == (["excluded"], [parent])


def test_a_follower_requires_what_it_says(store: Store) -> None:
    load = following("load", "extract", requires=Requires("other", within="1h"))
    place = Town(store, periodic("extract"), periodic("other"), load)
    parent = succeeds(place)
    place.turn()
    [line] = place.lines("load", "skipped")
    assert (line["reason"], line["why"], line["after"]) == ("dependency", "other has never succeeded", parent)
    succeeds(place, "other")
    parent = succeeds(place)
    place.turn()
    assert afters(place) == [parent]


def test_after_so_many_runs_a_follower_has_finished(store: Store) -> None:
    place = town(store, following("load", "extract", max_runs=2))
    parents = [succeeds(place) for _ in range(3)]
    place.turn()
    assert afters(place) == parents[:2]
    assert (place.state("load")["state"], place.reasons("load")) == ("finished", ["finished"])
    late = succeeds(place)
    place.turn()
    assert afters(place, "load", "skipped") == [parents[2], late]


# --- no room ---------------------------------------------------------------------------------------------------------


def test_where_runs_may_not_overlap_a_success_is_skipped(store: Store) -> None:
    place = town(store, following("load", "extract", overlap="skip"))
    first = succeeds(place)
    place.turn()
    second, third = succeeds(place), succeeds(place)
    place.turn()
    assert (afters(place), afters(place, "load", "skipped")) == ([first], [second, third])
    assert place.reasons("load") == ["overlap", "overlap"]


def test_a_success_waits_for_an_earlier_run_and_no_more_than_may(store: Store) -> None:
    place = town(store, following("load", "extract", overlap="wait", max_waiting=2))
    parents = []
    for _ in range(4):
        parents.append(succeeds(place))
        place.turn()
    assert place.waiting("load") == [f"load {each}" for each in parents[1:3]]
    assert afters(place, "load", "skipped") == parents[3:]
    while running := place.running("load"):
        assert len(running) == 1
        place.succeed(*running)
        place.turn()
    assert afters(place) == parents[:3]


def test_the_newest_success_takes_the_place_of_an_earlier_one(store: Store) -> None:
    place = town(store, following("load", "extract", overlap="replace"))
    first = succeeds(place)
    place.turn()
    second, third = succeeds(place), succeeds(place)
    place.turn()
    assert afters(place) == [first, third]
    assert (place.reasons("load"), afters(place, "load", "skipped")) == (["replaced"], [second])
    assert [line["job"] for line in place.lines("load", "stopped")] == [place.lines("load", "enqueued")[0]["job"]]


@pytest.mark.parametrize("limits", ["wait 1", "skip 1"])
def test_a_follower_needs_room_in_its_group(store: Store, limits: str) -> None:
    load = following("load", "extract", group="g")
    place = Town(store, periodic("extract"), periodic("busy", group="g"), load, g=limits)
    place.fire("busy")
    parent = succeeds(place)
    place.turn()
    if limits == "skip 1":
        assert (place.reasons("load"), afters(place, "load", "skipped")) == (["group"], [parent])
        assert not place.client.exists("beat:waiting:load", SLOTS)
        return
    assert place.waiting("load") == place.waiting("@g") == [f"load {parent}"]
    [line] = place.lines("load", "waiting")
    assert (line["group"], line["behind"]) == ("g", place.job("busy"))
    place.succeed(place.job("busy"))
    place.turn()
    assert afters(place) == [parent]
    assert place.running("@g") == place.queued()


def test_parent_and_follower_may_share_a_group(store: Store) -> None:
    load = following("load", "extract", group="g")
    place = Town(store, periodic("extract", group="g"), load, g="wait 1")
    ran = []
    place.fire("extract")
    place.fire("extract")
    while running := place.running("@g"):
        assert len(running) == 1
        ran += running
        place.succeed(*running)
        place.turn()
    assert len(ran) == 4
    assert sorted(afters(place)) == [place.job("extract"), place.job("extract", 1)]


# --- what changes meanwhile ------------------------------------------------------------------------------------------


def test_a_follower_that_is_removed_follows_nothing(store: Store) -> None:
    place = town(store, LOAD, following("mail", "extract"))
    succeeds(place)
    place.client.delete(*place.client.scan_iter("beat:announce*"))
    assert Operations(store).remove([("load", "")], by="ann") == [Reply("OK")]
    assert not place.client.exists("beat:waiting:load")
    succeeds(place)
    place.turn()
    assert len(afters(place, "mail")) == 2
    assert not place.client.exists("beat:waiting:load", "beat:schedule:load", "beat:runs:load")


def test_who_does_not_follow_any_more_is_taken_out_of_the_index(store: Store) -> None:
    place = town(store, LOAD, periodic("other"))
    place.client.sadd("beat:followers:extract", "other", "garbage", "a b")
    place.client.delete("beat:schedule:load")
    succeeds(place)
    place.turn()
    assert not place.client.exists("beat:followers:extract", "beat:waiting:other", "beat:waiting:garbage", SLOTS)


def test_who_follows_another_by_now_has_no_tick_for_the_first(store: Store) -> None:
    place = town(store, LOAD, periodic("other"))
    place.fire("extract")
    place.declare(following("load", "other"))
    place.succeed(place.job("extract"))
    place.turn()
    assert afters(place) == []


def test_a_success_that_waits_is_followed_though_somebody_deletes_the_index(store: Store) -> None:
    place = town(store)
    first = succeeds(place)
    place.client.delete(SLOTS)
    second = succeeds(place)
    place.turn()
    assert afters(place) == [first, second]


def test_a_success_that_waits_is_found_by_repair_though_no_other_comes(store: Store) -> None:
    place = town(store)
    parent = succeeds(place)
    place.client.delete(SLOTS)
    assert store.repair(["load"]) == [Reply("INDEXED")]
    place.turn()
    assert afters(place) == [parent]


def test_a_follower_whose_line_is_something_else_keeps_its_parent_from_nothing(store: Store) -> None:
    place = town(store)
    place.client.set("beat:waiting:load", "garbage", px=60_000)
    parent = succeeds(place)
    assert place.state("extract")["success_count"] == "1"
    [line] = place.lines("load", "skipped")
    assert (line["reason"], line["why"], line["after"]) == ("broken", "beat:waiting:load is a string", parent)
    assert place.state("load")["skip_count"] == "1"
    place.client.delete("beat:waiting:load")


@shows("close", "BADTYPE")
def test_a_success_that_cannot_be_handed_on_is_written_when_it_can(store: Store) -> None:
    place, key = town(store), SLOTS
    place.fire("extract")
    place.client.set(key, "garbage", px=60_000)
    place.end(place.job("extract"))
    place.close()
    assert "last_success" not in place.state("extract")
    assert place.lines("extract", "succeeded") == []
    assert place.client.get(key) == b"garbage"
    place.client.delete(key)
    place.close()
    place.turn()
    assert afters(place) == [place.job("extract")]
    assert place.state("extract")["success_count"] == "1"


def test_an_index_of_followers_that_is_something_else_is_made_anew(store: Store) -> None:
    place = town(store)
    place.client.delete("beat:followers:extract")
    place.client.set("beat:followers:extract", "garbage")
    store.repair(["extract", "load"])
    parent = succeeds(place)
    place.turn()
    assert afters(place) == [parent]


def test_what_keeps_a_success_from_being_followed_is_told_once(store: Store) -> None:
    place = town(store)
    parent = succeeds(place)
    place.client.set("rq:queue:default", "garbage", px=60_000)
    place.turn()
    assert [event.schedule_id for event in place.told("enqueue_failed")] == ["load"]
    place.client.delete("rq:queue:default")
    place.turn()
    assert afters(place) == [parent]


def test_hundreds_of_successes_that_waited_are_all_followed(store: Store) -> None:
    place = town(store)
    now = clock.to_ms(store.time()) - 1000
    line = {f"load {clock.text(clock.from_ms(now + n))} follows p{n:03}": now + n for n in range(250)}
    place.client.zadd("beat:waiting:load", line)
    place.client.zadd(SLOTS, {"load": 0})
    place.turn()
    assert afters(place) == [f"p{n:03}" for n in range(250)]
    assert json.loads(place.client.lindex("beat:runs:load", 0))["n"] == 250


def test_no_more_than_a_thousand_wait_for_one_that_cannot_be_read_and_the_others_are_recorded(store: Store) -> None:
    place = town(store)
    place.client.hset("beat:schedule:load", mapping={"definition": "garbage", "rev": "unknown"})
    now = clock.to_ms(store.time()) - 1000
    line = {f"load {clock.text(clock.from_ms(now + n))} follows p{n:03}": now + n for n in range(999)}
    place.client.zadd("beat:waiting:load", line)
    last, passed = succeeds(place), succeeds(place)
    place.turn()
    assert place.client.zcard("beat:waiting:load") == 1000
    assert f"load {last}" in place.waiting("load")
    [told] = place.lines("load", "skipped")
    assert (told["after"], told["reason"], told["why"]) == (passed, "overlap", "1000 wait already")
    assert (place.state("load")["skip_count"], place.state("extract")["success_count"]) == ("1", "2")
