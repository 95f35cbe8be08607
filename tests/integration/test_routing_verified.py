"""What the real scripts write of followers, groups and broadcasts agrees with itself, and what is missing is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat.config.groups import Group
from beat.engine.registrar import Sync
from beat.history.history import Fired, Waits
from beat.jobs import job_template
from beat.timing import clock
from tests.support.builders import schedule
from tests.support.schedulers_in_turn import BROKEN, Crew, follower, hourly

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.history.verify import Verification
    from beat.storage.store import Store

LOAD = "beat:runs:load"


@pytest.fixture
def crew(store: Store, server: PrivateRedis) -> Crew:
    return Crew(store, server, hourly("extract"), follower())


def verified(crew: Crew, schedule_id: str = "load") -> Verification:
    [found] = crew.client.verify(schedule_id)
    return found


def sound(crew: Crew, *ids: str) -> None:
    for each in ids:
        found = verified(crew, each)
        assert (found.missing, found.double, found.problems) == ((), (), ()), each


def counted(found: Verification) -> tuple[int, int, int]:
    return found.expected, found.accounted, found.waiting


# --- followers -------------------------------------------------------------------------------------------------------


def test_every_success_has_one_tick_of_who_follows(crew: Crew) -> None:
    for _ in range(3):
        crew.run("extract")
        crew.attend()
    crew.work()
    sound(crew, "extract", "load")
    assert counted(verified(crew)) == (3, 3, 0)


def test_a_tick_that_has_not_had_its_turn_waits(crew: Crew) -> None:
    crew.run("extract")
    assert counted(verified(crew)) == (0, 0, 1)
    sound(crew, "load")


def test_a_success_after_which_nothing_came_is_missing(crew: Crew) -> None:
    crew.run("extract")
    crew.store.client.delete("beat:waiting:load")
    found, run = verified(crew), crew.client.history("extract", outcome="succeeded")[0]
    assert isinstance(run, Fired)
    [missing] = found.missing
    assert (missing.first, missing.count, found.expected, found.accounted) == (run.closed_at, 1, 1, 0)


def test_a_tick_that_followed_one_success_twice_is_double(crew: Crew) -> None:
    crew.run("extract")
    crew.attend()
    line: Any = crew.store.client.lindex(LOAD, 0)
    told = json.loads(line) | {"n": 2}
    crew.store.client.lpush(LOAD, json.dumps(told))
    [double] = verified(crew).double
    assert double.first == clock.read(told["tick"])


def test_a_verdict_after_a_run_that_failed_is_named(store: Store, server: PrivateRedis) -> None:
    crew = Crew(store, server, hourly("extract", func=BROKEN), follower())
    run = crew.run("extract")
    assert run.state == "failed"
    line = {"type": "skipped", "tick": "2026-11-16T09:00:00Z", "last": "2026-11-16T09:00:00Z", "count": 1}
    line |= {"reason": "paused", "after": run.job_id, "n": 1, "at": clock.text(store.time()), "beat": "x"}
    store.client.lpush(LOAD, json.dumps(line))
    assert f"follows job {run.job_id} of extract, which has failed" in " ".join(verified(crew).problems)


def test_what_succeeded_before_it_was_followed_is_not_missed(store: Store, server: PrivateRedis) -> None:
    Crew(store, server, hourly("extract")).run("extract")
    crew = Crew(store, server, hourly("extract"), follower())
    assert counted(verified(crew)) == (0, 0, 0)
    crew.run("extract")
    crew.attend()
    sound(crew, "load")
    assert counted(verified(crew)) == (1, 1, 0)


def test_who_has_another_rule_meanwhile_is_judged_by_each_in_its_time(crew: Crew) -> None:
    crew.run("extract")
    crew.attend()
    deploy(crew.store, hourly("extract"), hourly("load"))
    crew.run("extract")
    crew.attend()
    deploy(crew.store, hourly("extract"), follower(description="once more"))
    crew.run("extract")
    crew.attend()
    sound(crew, "load")
    assert counted(verified(crew)) == (2, 2, 0)


def test_a_parent_that_was_removed_leaves_nothing_to_miss(crew: Crew) -> None:
    crew.run("extract")
    crew.attend()
    crew.store.client.delete("beat:schedule:extract", "beat:runs:extract")
    sound(crew, "load")


def test_what_waits_for_its_own_room_and_then_for_its_groups_is_told_once(store: Store, server: PrivateRedis) -> None:
    load = follower(group="reports", overlap="wait", max_waiting=5)
    crew = Crew(store, server, hourly("extract"), load, hourly("other", group="reports"), groups=[Group("reports", 1)])
    crew.client.trigger("other")
    for _ in range(3):
        crew.client.trigger("extract")
    move(crew, "extract")
    for _ in range(3):
        crew.attend()
        sound(crew, "load")
    assert counted(verified(crew)) == (0, 0, 3)
    for _ in range(4):
        crew.work()
        crew.attend()
    crew.work()
    sound(crew, "load", "other")
    assert counted(verified(crew)) == (3, 3, 0)


def test_a_tick_that_finds_its_group_full_is_skipped_or_waits(store: Store, server: PrivateRedis) -> None:
    schedules = [hourly(each, group="reports") for each in ("a", "b")]
    crew = Crew(store, server, *schedules, groups=[Group("reports", 1, "skip")])
    crew.client.trigger("a")
    crew.tick("b")
    assert '"reason":"group"' in crew.lines("b")[-1]
    crew.store.client.hset("beat:groups", "reports", "wait 1 10")
    crew.tick("b")
    assert '"group":"reports"' in crew.lines("b")[-1]
    [waits] = crew.client.history("b", outcome="waiting")
    assert isinstance(waits, Waits)
    assert (waits.group, waits.behind) == ("reports", crew.client.get("a").last_job)


# --- broadcasts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def everywhere(store: Store, server: PrivateRedis) -> Crew:
    wide = schedule("wide", timing=hourly("x").timing, start=hourly("x").start, queues=["a", "b"], route="broadcast")
    return Crew(store, server, wide, follower("load", "wide"))


def test_a_broadcast_is_one_verdict_and_its_parts_are_known(everywhere: Crew) -> None:
    job = everywhere.client.trigger("wide").job_id
    sound(everywhere, "wide")
    everywhere.work("a")
    sound(everywhere, "wide")
    assert counted(verified(everywhere, "load"))[2] == 0, "one part goes on"
    everywhere.work("b")
    sound(everywhere, "wide", "load")
    assert counted(verified(everywhere, "load"))[2] == 1
    assert everywhere.client.get("wide").success_count == 1
    everywhere.attend()
    sound(everywhere, "wide", "load")
    [run] = [line for line in everywhere.client.history("load") if isinstance(line, Fired)]
    assert run.after == job


def test_a_run_is_found_by_its_own_job_and_by_those_of_its_parts(everywhere: Crew) -> None:
    job = everywhere.client.trigger("wide").job_id
    run = everywhere.client.get_run(job)
    assert run
    assert (run.state, [part.state for part in run.parts]) == ("queued", ["queued", "queued"])
    everywhere.work("b")
    for each in (job, f"{job}_s0", f"{job}_s1"):
        found = everywhere.client.get_run(each)
        assert found
        assert (found.job_id, [part.state for part in found.parts]) == (job, ["queued", "succeeded"])
    everywhere.work("a")
    assert everywhere.client.get_run(f"{job}_s1") == everywhere.client.get_run(job)
    [listed] = [each for each in everywhere.client.schedules(runs=5) if each.standing.schedule_id == "wide"]
    assert [line.job_id for line in listed.runs if isinstance(line, Fired)] == [job]
    assert everywhere.client.show("wide").statistics.runs == 1


def test_a_part_that_nobody_enqueued_is_found(everywhere: Crew) -> None:
    job = everywhere.client.trigger("wide").job_id
    store = everywhere.store
    store.client.zrem("beat:open", f"{job}_s1")
    assert verified(everywhere, "wide").problems == (f"job {job}_s1 has no outcome, and nobody waits for one",)


def test_the_ticks_of_a_broadcast_that_failed_in_part_count_as_failed(store: Store, server: PrivateRedis) -> None:
    wide = schedule("wide", func=BROKEN, timing=hourly("x").timing, queues=["a", "b"], route="broadcast")
    crew = Crew(store, server, wide)
    crew.client.trigger("wide")
    store.client.hset(job_template.job_key(f"{crew.client.get('wide').last_job}_s0"), "data", good())
    crew.work("a")
    crew.work("b")
    sound(crew, "wide")
    standing, [run] = crew.client.get("wide"), crew.client.history("wide", outcome="failed")
    assert (standing.success_count, standing.failure_count) == (0, 1)
    assert isinstance(run, Fired)
    assert sorted(part.state for part in run.parts) == ["failed", "succeeded"]
    assert run.error


def deploy(store: Store, *schedules: Any) -> None:
    sync = Sync(store, schedules, beat="web-2", emit=lambda _: None)
    sync.announce()
    sync.register()


def good() -> bytes:
    """What a job needs that does not fail."""
    return job_template.data(schedule(), (), {})


def move(crew: Crew, schedule_id: str) -> None:
    """The runs of this one end, and no other does."""
    going: Any = crew.store.client.zrange("beat:open", 0, -1)
    for each in going:
        job = each.decode()
        if job.startswith(f"beat_{schedule_id}_"):
            ended: Any = {"status": "finished", "ended_at": clock.text(crew.store.time())}
            crew.store.client.lrem("rq:queue:default", 1, job)
            crew.store.client.hset(job_template.job_key(job), mapping=ended)
    crew.look()
