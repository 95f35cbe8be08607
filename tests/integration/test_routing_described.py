"""Where ticks went, whom they follow, who was in their way: told by the commands, from what the scripts wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from click.testing import CliRunner

from beat.cli import (
    add,
    backfill,
    common_options,
    history,
    next,  # noqa: A004 (a command)
    pause,
    plan,
    reschedule,
    resume,
    show,
    timeline,
    trigger,
    why,
)
from beat.cli import list as listing
from beat.config.groups import Group
from beat.errors import Refused
from beat.history.history import Fired, Passed
from beat.schedule.requires import Requires
from beat.timing import clock
from tests.support.schedulers_in_turn import DONE, Crew, follower, hourly

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.dev.embedded import PrivateRedis
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

COMMANDS: dict[str, Any] = {
    "add": add, "backfill": backfill, "resume": resume, "history": history, "list": listing, "next": next,
    "pause": pause, "plan": plan,
    "reschedule": reschedule, "show": show, "timeline": timeline, "trigger": trigger, "why": why,
}  # fmt: skip


@pytest.fixture
def make(store: Store, server: PrivateRedis) -> Callable[..., Crew]:
    def made(*schedules: Schedule, **named: Any) -> Crew:
        return Crew(store, server, *schedules, **named)

    return made


BACKFILL = ["backfill", "load", "--from", "1h", "--to", "1m"]


def says(crew: Crew, command: str, *words: str, given: str | None = None) -> str:
    """What the command prints, as one line."""
    with mock.patch.object(common_options, "client", return_value=crew.client):
        done = CliRunner().invoke(COMMANDS[command].command, words, standalone_mode=False, input=given)
    if done.exception:
        raise done.exception
    return " ".join(done.stdout.split())


def document(crew: Crew, command: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(says(crew, command, *words, "--json"))
    return found


def at(line: Any) -> str:
    """When the tick of a line was, to the second."""
    tick: Any = line.tick if isinstance(line, Fired) else line.first
    return clock.text(tick.replace(microsecond=0))


# --- followers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def crew(make: Callable[..., Crew]) -> Crew:
    return make(hourly("extract"), follower())


def followed(crew: Crew) -> tuple[Fired, Fired]:
    """A success, and what follows it."""
    parent = crew.run("extract")
    crew.attend()
    [run] = [line for line in crew.client.history("load") if isinstance(line, Fired)]
    return parent, run


def test_why_says_after_which_success_a_follower_fired(crew: Crew) -> None:
    parent, run = followed(crew)
    told = says(crew, "why", "load", at(run))
    assert f"follows extract: fired because {parent.job_id} succeeded at" in told
    assert f"enqueued by web-1 on time after {parent.job_id} had succeeded" in told or "late after" in told
    found = document(crew, "why", "load", at(run))
    assert (found["answer"], found["runs"][0]["after"]) == ("enqueued", parent.job_id)


def test_a_minute_is_enough_to_find_what_followed(crew: Crew) -> None:
    parent, run = followed(crew)
    assert run.tick
    minute = clock.text(run.tick.replace(second=0, microsecond=0))
    assert crew.client.why("load", clock.read(minute)).runs[0].after == parent.job_id


def test_why_says_when_the_parent_last_succeeded_where_nothing_followed(crew: Crew) -> None:
    soon = clock.text(clock.at(clock.floor(crew.store.time()) + 600))
    assert "no tick: it follows extract: it has never succeeded" in says(crew, "why", "load", soon)
    followed(crew)
    told = says(crew, "why", "load", soon)
    assert "no tick: it follows extract: it last succeeded at" in told
    assert "its nearest tick was" in told
    found = document(crew, "why", "load", soon)
    assert (found["answer"], found["parent"]["id"], found["parent"]["state"]) == ("no_success", "extract", "active")


@pytest.mark.parametrize(
    ("state", "words"), [("retired", "it is retired"), ("paused", "it is paused"), ("", "no such schedule any more")]
)
def test_why_says_what_is_wrong_with_the_parent(crew: Crew, state: str, words: str) -> None:
    if state:
        crew.store.client.hset("beat:schedule:extract", "state", state)
    else:
        crew.store.client.delete("beat:schedule:extract")
    soon = clock.text(clock.at(clock.floor(crew.store.time()) + 600))
    assert words in says(crew, "why", "load", soon)
    assert words.removeprefix("it is ") in says(crew, "show", "load")


def test_why_says_that_a_pause_held_what_was_to_follow(crew: Crew) -> None:
    crew.client.pause("load", reason="migration")
    crew.run("extract")
    crew.attend()
    [line] = [line for line in crew.client.history("load") if isinstance(line, Passed)]
    assert "paused: ann had paused the schedule (migration)" in says(crew, "why", "load", at(line))


def test_why_says_that_a_tick_waits_for_its_turn(crew: Crew) -> None:
    crew.run("extract")
    [(tick, _)] = crew.client._archive.snapshot("load").in_line  # noqa: SLF001 (nobody has decided yet)
    told = says(crew, "why", "load", clock.text(tick.replace(microsecond=0)))
    assert "waits for its turn, after a success of extract" in told


def test_show_says_whom_it_follows_and_who_follows(crew: Crew) -> None:
    followed(crew)
    told = says(crew, "show", "load")
    assert "after every success of extract" in told
    assert "next after the next success of extract" in told
    assert "follows extract: it last succeeded at" in told
    assert "followers load" in says(crew, "show", "extract")
    assert document(crew, "show", "extract")["places"]["followers"] == ["load"]
    found = document(crew, "show", "load")
    assert (found["places"]["follows"]["id"], found["schedule"]["next_ticks"]) == ("extract", [])


def test_list_says_after_whom(crew: Crew) -> None:
    told = says(crew, "list")
    assert "load follows extract after extract" in told


def test_history_says_after_which_job(crew: Crew) -> None:
    parent, run = followed(crew)
    assert f"after {parent.job_id}" in says(crew, "history", "load")
    line = document(crew, "history", "load")["lines"][0]
    assert (line["job"], line["after"], line["triggered_by"], line["parts"]) == (
        run.job_id, parent.job_id, "follows", [],
    )  # fmt: skip
    assert "registered" in says(crew, "history", "load", "-v")


def test_pictures_of_what_is_to_come_leave_followers_out(crew: Crew) -> None:
    followed(crew)
    assert "1 job" in says(crew, "timeline") or "2 jobs" in says(crew, "timeline")
    with pytest.raises(Exception, match="no times of its own"):
        says(crew, "next", "follows extract")


def test_commands_that_mean_times_refuse_in_a_sentence(crew: Crew) -> None:
    for words in (["reschedule", "load", "--every", "1h"], ["trigger", "load", "--skip-next"], BACKFILL):
        with pytest.raises(Refused, match="load follows extract: it has no times of its own"):
            says(crew, *words)


def test_pauses_are_told_without_ticks(crew: Crew) -> None:
    assert "paused" in says(crew, "pause", "load", "--until", "2h")
    assert "paused until" in says(crew, "list")
    assert "paused by ann" in says(crew, "show", "load")
    assert "load" in says(crew, "resume", "load")
    assert crew.client.get("load").state == "active"
    says(crew, "pause", "load")
    assert "none until an operator resumes it" in says(crew, "show", "load")


# --- groups, requirements, routes, the slow lane ---------------------------------------------------------------------


def test_a_full_group_is_named(make: Callable[..., Crew]) -> None:
    crew = make(hourly("a", group="reports"), hourly("b", group="reports"), groups=[Group("reports", 1, "skip")])
    job = crew.client.trigger("a").job_id
    crew.tick("b")
    [line] = [line for line in crew.client.history("b") if isinstance(line, Passed)]
    assert f"the group reports was full: behind {job}" in says(crew, "why", "b", at(line))
    assert f"group, behind {job}" in says(crew, "history", "b")
    assert "group reports: 1 of 1 run; when it is full, ticks are skipped" in says(crew, "show", "b")
    crew.store.client.hset("beat:groups", "reports", "wait 1 10")
    crew.tick("b")
    assert "reports: 1 of 1 run, 1 of 10 wait; when it is full, ticks wait" in says(crew, "show", "b")
    assert document(crew, "show", "b")["places"]["group"] == {
        "name": "reports", "max_running": 1, "when_full": "wait", "max_waiting": 10, "running": 1, "waiting": 1,
    }  # fmt: skip
    assert document(crew, "history", "b")["lines"][0]["group"] == "reports"


def test_who_asks_for_a_run_in_a_full_group_is_told_which(make: Callable[..., Crew]) -> None:
    crew = make(hourly("a", group="reports"), hourly("b", group="reports"), groups=[Group("reports", 1)])
    job = crew.client.trigger("a").job_id
    with pytest.raises(Refused, match=f"b has no room: the group reports is full, and {job} has not ended"):
        crew.client.trigger("b")
    assert crew.client.trigger("b", force=True).state == "queued"


def test_what_was_missing_is_named(make: Callable[..., Crew]) -> None:
    crew = make(hourly("extract"), hourly("publish", requires=[Requires("extract", "1h")]))
    crew.tick("publish")
    [line] = [line for line in crew.client.history("publish") if isinstance(line, Passed)]
    assert "dependency: extract has never succeeded" in says(crew, "why", "publish", at(line))
    assert "dependency, extract has never succeeded" in says(crew, "history", "publish")
    assert document(crew, "history", "publish")["lines"][0]["why"] == "extract has never succeeded"
    assert "requires a success of extract within 1h: it has never succeeded" in says(crew, "show", "publish")


def test_a_route_says_where_and_why(make: Callable[..., Crew]) -> None:
    crew = make(hourly("resize", queues=["fast", "spare"], route="shortest"))
    crew.store.client.rpush("rq:queue:spare", "x")
    crew.tick("resize")
    [run] = [line for line in crew.client.history("resize") if isinstance(line, Fired)]
    assert "went to fast: shortest, 0 in line" in says(crew, "why", "resize", at(run))
    assert "fast (shortest: 0 in line)" in says(crew, "history", "resize")
    assert "one of fast, spare (shortest)" in says(crew, "show", "resize")
    line = document(crew, "history", "resize")["lines"][0]
    assert (line["queue"], line["why"]) == ("fast", "shortest: 0 in line")


def test_the_slow_lane_is_told(make: Callable[..., Crew]) -> None:
    crew = make(hourly("resize", slow_queue="slow", slow_times=2))
    assert "slow, after 2 runs over 500ms within 1m: none of them was" in says(crew, "show", "resize")
    now = clock.to_ms(crew.store.time())
    crew.store.client.zadd("beat:slow:resize", {"a": now, "b": now})
    crew.store.client.expire("beat:slow:resize", 60)
    crew.tick("resize")
    [run] = [line for line in crew.client.history("resize") if isinstance(line, Fired)]
    assert "went to slow, its slow lane: 2 runs over 500ms within 1m" in says(crew, "why", "resize", at(run))
    assert "within 1m: in use now" in says(crew, "show", "resize")


def test_a_broadcast_is_told_part_by_part(make: Callable[..., Crew]) -> None:
    crew = make(hourly("wide", queues=["a", "b"], route="broadcast"))
    crew.tick("wide")
    crew.work("a")
    [run] = [line for line in crew.client.history("wide") if isinstance(line, Fired)]
    told = says(crew, "why", "wide", at(run))
    assert "went to all of its 2 queues" in told
    assert f"part 0 {run.job_id}_s0: succeeded after" in told
    assert f"part 1 {run.job_id}_s1: queued" in told
    assert "2 queues: 1 succeeded, 1 queued" in says(crew, "history", "wide")
    assert "all of a, b (broadcast)" in says(crew, "show", "wide")
    [line] = [line for line in document(crew, "history", "wide")["lines"] if line["type"] == "run"]
    assert (line["shards"], [(part["shard"], part["state"]) for part in line["parts"]]) == (
        2, [(0, "succeeded"), (1, "queued")],
    )  # fmt: skip


# --- from data, and planned ------------------------------------------------------------------------------------------


def exposed(crew: Crew) -> None:
    crew.store.client.zadd("beat:functions", {DONE: clock.to_ms(crew.store.time())})


def test_what_list_prints_add_takes(make: Callable[..., Crew]) -> None:
    crew = make(groups=[Group("reports", 5)])
    exposed(crew)
    options = {"func": DONE, "slow_queue": "slow", "slow_times": 3, "group": "reports"}
    crew.client.add("extract", every="1h", **options)  # type: ignore[arg-type]  # as documents have them
    crew.client.add("load", func=DONE, follows="extract", requires="extract within 1h", overlap="wait")
    crew.client.add("wide", func=DONE, every="1h", queues=["a", "b"], route="broadcast")
    printed = json.dumps(document(crew, "list"))
    before = {each: crew.client.get(each) for each in ("extract", "load", "wide")}
    for each in before:
        crew.client.remove(each)
    crew.look()
    assert "load: added" in says(crew, "add", "--file", "-", given=printed)
    after = {each: crew.client.get(each) for each in before}
    assert {each: found.rev for each, found in after.items()} == {each: found.rev for each, found in before.items()}


def test_add_says_policies_of_place(make: Callable[..., Crew]) -> None:
    crew = make(groups=[Group("reports", 5)])
    exposed(crew)
    says(crew, "add", "extract", "--func", DONE, "--every", "1h", "--queue", "a", "--queue", "b", "--route", "shortest")
    says(
        crew, "add", "load", "--func", DONE, "--follows", "extract", "--group", "reports", "--slow-queue", "slow",
        "--requires", "extract within 1h",
    )  # fmt: skip
    extract, load = crew.client.get("extract").policies, crew.client.get("load").policies
    assert extract
    assert load
    assert (extract.queues, extract.route) == (("a", "b"), "shortest")
    assert (load.follows, load.group, load.slow_queue, load.requires) == (
        "extract", "reports", "slow", (Requires("extract", "1h"),),
    )  # fmt: skip
    with pytest.raises(Exception, match="Give one of --cron"):
        says(crew, "add", "x", "--func", DONE, "--follows", "extract", "--every", "1h")


def test_a_plan_shows_changes_of_place_and_of_parents(crew: Crew) -> None:
    becomes = [hourly("extract", queues=["a", "b"], route="shortest"), follower(parent="wide"), hourly("wide")]
    told = crew.client.plan(becomes)
    found = {
        step.schedule_id: {each.option: (each.was, each.becomes) for each in step.differences} for step in told.steps
    }
    assert found["extract"]["route"] == (None, "shortest")
    assert found["load"]["follows"] == ("extract", "wide")
    [step] = [step for step in told.steps if step.schedule_id == "load"]
    assert (step.when, step.after, step.follows) == ("after every success of wide", (), "wide")
    assert list(plan._ticks(step)) == [("next", "after wide")]  # noqa: SLF001 (the command imports an application)
