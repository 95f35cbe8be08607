"""The plan says what a beat with that code then does, and writes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beat import Client
from beat.client.plan import KINDS, Difference, OtherId
from beat.engine.registrar import Sync
from beat.engine.retirement import Retirement
from beat.schedule.schedule import Schedule
from beat.schedule.source_location import Place
from beat.storage.keys import Keys
from beat.storage.operations import Operations, Stretch
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.builders import Calls, changed, everything, hash_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.client.plan import Plan, Step
    from beat.dev.embedded import PrivateRedis


def schedule(schedule_id: str = "report", **given_options: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": "app.tasks.report", "timing": Every("1h"), **given_options})


class Desk:
    """Plans and deploys of one application, one after another."""

    def __init__(self, store: Store, url: str, app: str = "default") -> None:
        self.store, self.client, self.app = store, Client(url, app=app, by="ann"), app

    def plan(self, *schedules: Schedule) -> Plan:
        """Nothing is written."""
        before = everything(self.store)
        found = self.client.plan(schedules)
        assert not changed(before, self.store)
        return found

    def deploy(self, *schedules: Schedule, lives: bool = False) -> Sync:
        sync = Sync(self.store, schedules, beat="tests", emit=lambda _: None, app=self.app)
        sync.announce()
        sync.register()
        if not lives:
            self.store.client.delete(self.store.keys.announced(sync.digest))
        return sync


@pytest.fixture
def desk(store: Store, server: PrivateRedis) -> Desk:
    return Desk(store, server.url)


def kinds(found: Plan) -> dict[str, list[str]]:
    return {kind: [each.schedule_id for each in found.of(kind)] for kind in KINDS if found.of(kind)}


def only(found: Plan) -> Step:
    [each] = found.steps
    return each


def options(each: Step) -> dict[str, tuple[Any, Any]]:
    return {option: (was, becomes) for option, was, becomes in each.differences}


# --- each kind -------------------------------------------------------------------------------------------------------


def test_what_redis_does_not_know_is_added(desk: Desk) -> None:
    found = desk.plan(schedule("b"), schedule("a"))
    assert (kinds(found), found.same, found.changes) == ({"added": ["b", "a"]}, 0, True)
    assert len(found.steps[0].after) == 3
    assert found.steps[0].before == ()


def test_what_is_there_is_counted(desk: Desk) -> None:
    desk.deploy(*(schedule(f"s{n}", jitter="10m" if n % 2 else None) for n in range(7)))
    found = desk.plan(*(schedule(f"s{n}", jitter="10m" if n % 2 else None) for n in range(7)))
    assert (found.steps, found.same, found.changes) == ((), 7, False)


def test_a_change_is_told_option_by_option_with_the_ticks_before_and_after(desk: Desk) -> None:
    desk.deploy(schedule(timing=Cron("0 9 * * *", "Europe/Berlin"), kwargs={"kind": "daily", "n": 1}, retry=3))
    new = schedule(timing=Every("15m"), kwargs={"kind": "weekly", "n": 1, "m": [2]}, overlap="skip", description="New.")
    step = only(desk.plan(new))
    assert (step.kind, step.state) == ("changed", "active")
    assert options(step) == {
        "kwargs.kind": ("daily", "weekly"),
        "kwargs.m": (None, [2]),
        "description": ("", "New."),
        "overlap": ("allow", "skip"),
        "cron": ("0 9 * * *", None),
        "every": (None, "15m"),
        "tz": ("Europe/Berlin", "UTC"),
        "retry.max": (3, None),
        "retry.intervals": ([0], None),
        "retry.enqueue_at_front": (False, None),
    }
    assert [tick - step.before[0] for tick in step.before] == [timedelta(days=n) for n in range(3)]
    assert [tick - step.after[0] for tick in step.after] == [timedelta(minutes=15 * n) for n in range(3)]
    assert clock.text(step.before[0]) == hash_of(desk.store)["next_run"]


def test_arguments_that_cannot_be_shown_are_still_seen_to_differ(desk: Desk) -> None:
    desk.deploy(schedule(args=[{1}]))
    assert options(only(desk.plan(schedule(args=[{2}])))) == {"args": ("[{1}]", "[{2}]")}
    desk.store.client.hset("beat:schedule:report", "rev", "abc")
    assert only(desk.plan(schedule(args=[{1}]))).differences == (
        Difference("definition", "abc", schedule(args=[{1}]).rev),
    )
    desk.store.client.hset("beat:schedule:report", "definition", "garbled")
    assert "args" in options(only(desk.plan(schedule(args=[{2}]))))


def test_a_tick_that_is_due_is_not_moved(desk: Desk) -> None:
    desk.deploy(schedule())
    due = clock.text(desk.store.time().replace(microsecond=0) - timedelta(hours=5))
    desk.store.client.hset("beat:schedule:report", mapping={"next_run": due, "due_at": due})
    step = only(desk.plan(schedule(timing=Every("7m"))))
    assert clock.text(step.after[0]) == due
    assert step.after[1] - step.after[0] <= timedelta(minutes=7)


@pytest.mark.parametrize("how", ["disabled", "over"])
def test_what_ticks_no_more_has_no_ticks(desk: Desk, how: str) -> None:
    desk.deploy(schedule())
    past = datetime(2026, 1, 1, tzinfo=UTC)
    step = only(desk.plan(schedule(enabled=False) if how == "disabled" else schedule(end=past)))
    assert (len(step.before), step.after) == (3, ())
    wanted = {"enabled": (True, False)} if how == "disabled" else {"end": (None, clock.text(past))}
    assert wanted.items() <= options(step).items()


def test_what_the_code_no_longer_declares_is_removed(desk: Desk) -> None:
    desk.deploy(schedule("a"), schedule("b"))
    found = desk.plan(schedule("a"))
    assert (kinds(found), found.same) == ({"removed": ["b"]}, 1)
    step = only(found)
    assert (step.retire_after, step.held_since, len(step.before)) == (timedelta(minutes=15), None, 3)
    desk.store.client.hset("beat:schedule:b", "unannounced_at", "2026-11-17T04:00:00Z")
    assert only(desk.plan(schedule("a"))).held_since == datetime(2026, 11, 17, 4, tzinfo=UTC)


def test_nothing_is_removed_by_code_without_schedules_or_of_another_application(
    desk: Desk, store: Store, server: PrivateRedis
) -> None:
    desk.deploy(schedule("a"))
    assert desk.plan().steps == ()
    assert kinds(Desk(store, server.url, "billing").plan(schedule("b"))) == {"added": ["b"]}


def test_schedules_from_data_are_left_out_and_their_ids_are_taken(desk: Desk) -> None:
    desk.store.announce({}, ["app.tasks.report"], digest="d", ttl=60_000)
    desk.client.add("customer", func="app.tasks.report", cron="@daily")
    desk.deploy(schedule("a"))
    assert kinds(desk.plan(schedule("a"))) == {}
    found = desk.plan(schedule("a"), schedule("customer"))
    assert (kinds(found), found.changes) == ({"taken": ["customer"]}, True)


def test_another_id_for_the_same_function_is_noticed(desk: Desk) -> None:
    desk.deploy(schedule("report_daily", func="app.tasks.report"), schedule("other", func="app.tasks.other"))
    found = desk.plan(schedule("report_nightly", func="app.tasks.report"), schedule("new", func="app.tasks.new"))
    assert kinds(found) == {"added": ["report_nightly", "new"], "removed": ["other", "report_daily"]}
    assert found.other_ids() == (OtherId("app.tasks.report", "report_daily", "report_nightly"),)


def test_among_several_ids_of_a_function_none_is_taken_for_another(desk: Desk) -> None:
    desk.deploy(*(schedule(f"customer_{n}") for n in (1, 2)))
    assert desk.plan(*(schedule(f"customer_{n}") for n in (3, 4))).other_ids() == ()
    assert desk.plan(schedule("customer_3")).other_ids() == ()
    assert desk.plan(schedule("customer_1")).other_ids() == ()


@pytest.mark.parametrize("after", [3600, 0])
def test_what_was_held_or_retired_returns(desk: Desk, after: int) -> None:
    desk.deploy(schedule())
    Operations(desk.store).retire([Stretch("report")], beat="x", app="default", retire_after=after * 1000)
    step = only(desk.plan(schedule()))
    assert (step.kind, step.state) == ("returning", "active" if after else "retired")
    assert (step.held_since is not None) == bool(after)
    assert len(step.after) == 3
    desk.deploy(schedule())
    assert desk.plan(schedule()).steps == ()


def test_an_override_stays_in_force_and_the_code_is_told_beside_it(desk: Desk) -> None:
    desk.deploy(schedule())
    desk.client.reschedule("report", "0 4 * * *", tz="Europe/Berlin")
    same = desk.plan(schedule())
    assert (kinds(same), same.changes, same.same) == ({"overridden": ["report"]}, False, 0)
    found = desk.plan(schedule(timing=Every("2h")))
    step = only(found)
    assert (found.changes, options(step), step.before) == (True, {"every": ("1h", "2h")}, step.after)
    told = step.overridden
    assert told is not None
    assert (told.by, told.rule, told.code) == ("ann", "0 4 * * * Europe/Berlin", "every 2h")
    assert told.ticks[1] - told.ticks[0] == timedelta(hours=2)
    desk.deploy(schedule(timing=Every("2h")))
    assert not desk.plan(schedule(timing=Every("2h"))).changes


def test_what_another_live_application_declares_just_so_is_the_same(
    desk: Desk, store: Store, server: PrivateRedis
) -> None:
    shop = Desk(store, server.url, "shop")
    shop.deploy(schedule("common"), lives=True)
    assert desk.plan(schedule("common")).steps == ()
    step = only(desk.plan(schedule("common", queue="x")))
    assert (step.kind, step.owner, step.changes) == ("taken", "shop", True)
    before = hash_of(store, "common")
    desk.deploy(schedule("common", queue="x"), lives=True)
    assert hash_of(store, "common") == before
    store.client.delete("beat:announcements")  # its beats are gone
    assert options(only(desk.plan(schedule("common")))) == {"application": ("shop", "default")}


def test_of_modules_that_the_code_does_not_include_nothing_is_removed(desk: Desk) -> None:
    places = {each: Place(f"app/{each}.py", 1, f"app.{each}") for each in ("reports", "billing")}
    daily = schedule("daily", declared=places["reports"])
    desk.deploy(daily, schedule("weekly", declared=places["reports"]), schedule("invoice", declared=places["billing"]))
    assert kinds(desk.plan(daily)) == {"removed": ["weekly"]}
    desk.deploy(daily)
    Retirement(desk.store, beat="x", app="default", after=timedelta(0), emit=lambda _: None).turn(
        Sync(desk.store, [daily], beat="x", emit=lambda _: None), at_once=True
    )
    assert [hash_of(desk.store, each)["state"] for each in ("weekly", "invoice")] == ["retired", "active"]


# --- the plan and the beats agree ------------------------------------------------------------------------------------

TIMINGS = st.sampled_from([Every("1h"), Every("1d"), Cron("0 9 * * *"), Cron("30 4 1 * *", "Europe/Berlin")])
DEFINITIONS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    timing=TIMINGS,
    queue=st.sampled_from(["default", "x"]),
    enabled=st.booleans(),
    jitter=st.sampled_from([None, "10m"]),
    end=st.sampled_from([None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)]),
    max_runs=st.sampled_from([None, 3]),
)
HARM = st.sampled_from(["nothing", "late", "held", "retired", "paused", "overridden", "finished", "template"])


def harm(desk: Desk, what: str) -> None:
    client: Any = desk.store.client
    state = hash_of(desk.store)["state"]
    if what == "late" and state == "active":
        due = clock.text(desk.store.time().replace(microsecond=0) - timedelta(hours=30))
        client.hset("beat:schedule:report", mapping={"next_run": due, "due_at": due})
    elif what in {"held", "retired"}:
        after = 3_600_000 if what == "held" else 0
        Operations(desk.store).retire([Stretch("report")], beat="x", app="default", retire_after=after)
    elif what == "paused" and state == "active":
        desk.client.pause("report")
    elif what == "overridden":
        desk.client.reschedule("report", every="3h")
    elif what == "finished":
        client.hset("beat:schedule:report", mapping={"run_count": "3", "last_run": "2026-01-01T00:00:00Z"})
    elif what == "template":
        client.delete("beat:template:report")


@given(was=DEFINITIONS, becomes=DEFINITIONS, what=HARM)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_beat_does_what_the_plan_says(
    store: Store, server: PrivateRedis, was: dict[str, Any], becomes: dict[str, Any], what: str
) -> None:
    store.client.flushall()
    desk = Desk(store, server.url)
    desk.deploy(schedule(**was))
    harm(desk, what)
    before, code = hash_of(store), schedule(**becomes)
    found = desk.plan(code)
    desk.deploy(code)
    after = hash_of(store)
    step = found.steps[0] if found.steps else None
    assert (before != after) == (step is not None and step.changes), (step, before, after)
    if step:
        ticks = [clock.read(after["next_run"])] if after["state"] == "active" and "next_run" in after else []
        assert list(step.after[:1]) == ticks, (step, before, after)
    assert not desk.plan(code).changes


# --- many ------------------------------------------------------------------------------------------------------------


def many(number: int, **given_options: Any) -> Iterable[Schedule]:
    return [schedule(f"s{n:05}", **given_options) for n in range(number)]


def test_two_thousand_schedules_are_a_few_questions(desk: Desk) -> None:
    desk.deploy(*many(2_000))
    calls = Calls(desk.store)
    found = desk.client.plan(many(2_000))
    assert (found.steps, found.same) == ((), 2_000)
    asked = calls.count()
    assert asked["time"] < 20  # one in each script
    assert asked["sscan"] <= 20
    found = desk.client.plan(many(1_990, queue="x"))
    assert {kind: len(found.of(kind)) for kind in KINDS if found.of(kind)} == {"changed": 1_990, "removed": 10}


def test_a_plan_knows_keys_of_another_prefix(server: PrivateRedis, store: Store) -> None:
    other = Store(store.client, Keys("other:"))
    Sync(other, [schedule()], beat="tests", emit=lambda _: None).register()
    assert kinds(Client(server.url, prefix="other:", app="default").plan([schedule()])) == {}
    assert kinds(Client(server.url).plan([schedule()])) == {"added": ["report"]}
    for key in store.client.scan_iter("other:*"):
        store.client.delete(key)
