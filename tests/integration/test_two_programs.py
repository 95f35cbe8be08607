"""Two programs on one Redis: neither takes, moves, holds or retires a schedule of the other, and both are told."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from beat.doctor import Doctor
from beat.engine import conflicts
from beat.notify.alerts.status import Standing
from beat.schedule.source_location import Place
from beat.storage import announcements
from beat.storage.announcements import Declaration
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.builders import changed, everything, hash_of, shows
from tests.support.rq_versions import Code, schedule

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.doctor import Finding
    from beat.engine.events import Event
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

AT_ONCE = timedelta(0)
FILE = Path("app/tasks.py").absolute()
LONG_AGO = announcements.DEPLOY + timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _looks_at_every_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "LOOK_S", 0)


def nine(tz: str = "UTC", line: int = 3, **given: Any) -> Schedule:
    """The schedule of everybody's 9 o'clock report."""
    place = Place("app/tasks.py", line, "app.tasks")
    return schedule("report", **{"timing": Cron("0 9 * * *", tz), "declared": place, **given})


def beating(*programs: Code, times: int = 3) -> None:
    """All of them show their heartbeats in turn."""
    for _ in range(times):
        for program in programs:
            program.heartbeat()


def warnings(program: Code, name: str = "conflict") -> list[Event]:
    return [event for event in program.events if event.name == name]


# --- one id, two applications ----------------------------------------------------------------------------------------


@shows("register", "OWNED")
def test_the_application_that_declared_an_id_first_keeps_it_while_it_lives(store: Store) -> None:
    shop = Code(store, nine(), app="shop", host="web-1").start()
    before = hash_of(store, "report")
    till = Code(store, nine("Europe/Berlin", 7), schedule("own"), app="till", host="web-2").start()
    beating(shop, till)
    assert hash_of(store, "report") == before
    assert till.sync.refused == {"report"}
    assert store.client.smembers("beat:app:till") == {b"own"}


def test_both_applications_warn_once_with_both_rules_both_places_and_a_remedy(store: Store) -> None:
    shop = Code(store, nine(), app="shop", host="web-1").start()
    till = Code(store, nine("Europe/Berlin", 7), app="till", host="web-2").start()
    beating(shop, till)
    places = f"0 9 * * * UTC (shop on web-1, {FILE}:3)", f"0 9 * * * Europe/Berlin (till on web-2, {FILE}:7)"
    for program in (shop, till):
        [warning] = warnings(program)
        assert warning.schedule_id == "report"
        assert all(place in warning.fields["words"] for place in places)
        assert "BEAT_PREFIX" in warning.fields["remedy"]


def test_an_older_definition_of_another_application_is_not_taken_for_an_older_version(store: Store) -> None:
    Code(store, nine(), app="shop").start().end()
    till = Code(store, nine("Europe/Berlin"), app="till").start()
    before = hash_of(store, "report")
    shop = Code(store, nine(), app="shop").start()
    beating(till, shop)
    assert hash_of(store, "report") == before
    assert (shop.sync.older, shop.sync.refused) == (set(), {"report"})


def test_when_the_first_application_is_gone_the_other_takes_over_and_says_so_once(store: Store) -> None:
    shop = Code(store, nine(), schedule("common"), app="shop").start()
    till = Code(store, nine("Europe/Berlin"), schedule("common"), app="till").start()
    beating(shop, till)
    assert warnings(till, "taken_over") == []
    shop.end()
    beating(till)
    [event] = warnings(till, "taken_over")
    assert (event.fields["was"], event.fields["app"]) == ("shop", "till")
    assert sorted(event.fields["ids"]) == ["common", "report"]
    assert (hash_of(store, "report")["app"], hash_of(store, "report")["tz"]) == ("till", "Europe/Berlin")


def test_a_schedule_that_two_applications_declare_alike_is_no_conflict(store: Store) -> None:
    programs = [Code(store, nine(), app=app, age=LONG_AGO).start() for app in ("shop", "till")]
    beating(*programs)
    assert [event.name for program in programs for event in program.events if event.name != "registered"] == []


def test_an_announcement_that_outlives_its_scheduler_is_no_conflict(store: Store) -> None:
    shop = Code(store, nine(), app="shop", host="web-1").start()
    beating(shop)
    store.client.delete("beat:instances")  # it was killed
    till = Code(store, nine("Europe/Berlin"), app="till", host="web-2").start()
    beating(till)
    assert warnings(till) == []
    assert hash_of(store, "report")["tz"] == "UTC", "the scheduler may be restarting"
    beating(shop, till)
    assert len(warnings(till)) == 1


# --- one application -------------------------------------------------------------------------------------------------


def test_two_default_zones_are_a_conflict_at_once(store: Store) -> None:
    one = Code(store, nine(), host="web-1", tz="UTC").start()
    other = Code(store, nine("Europe/Berlin"), host="web-2", tz="Europe/Berlin").start()
    beating(one, other)
    for program in (one, other):
        [warning] = warnings(program)
        assert f"0 9 * * * UTC (default on web-1, {FILE}:3)" in warning.fields["words"]
        assert f"0 9 * * * Europe/Berlin (default on web-2, {FILE}:3)" in warning.fields["words"]
        assert "BEAT_TZ" in warning.fields["remedy"]


@pytest.mark.parametrize("change", [nine("Europe/Berlin"), nine(queue="slow"), nine(timing=Every("5m"))])
def test_a_rolling_deploy_is_silent(store: Store, change: Schedule) -> None:
    old = Code(store, nine(), schedule("other"), host="web-1", age=timedelta(days=9)).start()
    new = Code(store, change, schedule("other"), host="web-2", age=announcements.DEPLOY / 2).start()
    beating(old, new)
    assert [warnings(each, name) for each in (old, new) for name in ("conflict", "unrelated")] == [[]] * 4


def test_two_versions_that_both_stay_for_longer_than_a_deploy_are_a_conflict(store: Store) -> None:
    old = Code(store, nine(), schedule("b"), schedule("c"), host="web-1", age=timedelta(days=9)).start()
    new = Code(store, *(nine(queue="slow"), schedule("b", queue="slow"), schedule("c")), host="web-2", age=LONG_AGO)
    new.start()
    beating(old, new)
    for program in (old, new):
        [warning] = warnings(program)
        assert (warning.fields["ids"], warning.fields["count"]) == (["b", "report"], 2)
        assert "b and 1 more" in warning.fields["words"]
        assert "another option differs" in warning.fields["words"]
        assert "BEAT_APP" in warning.fields["remedy"]


def test_a_conflict_that_comes_back_is_news(store: Store) -> None:
    one = Code(store, nine(), app="shop").start()
    other = Code(store, nine(queue="slow"), app="till").start()
    beating(one, other)
    other.end()
    beating(one)
    other.start()
    beating(one, other)
    assert len(warnings(one)) == 2


def test_thousands_of_differences_are_one_warning(store: Store) -> None:
    one = Code(store, *(schedule(f"s{n}") for n in range(1200)), app="shop").start()
    few = Code(store, *(schedule(f"s{n}", queue="x") for n in range(1100)), app="till").start()
    beating(one, few, times=1)
    beating(one, few, times=1)
    assert [warning.fields["count"] for each in (one, few) for warning in warnings(each)] == [1100, 1100]


def test_a_key_that_is_no_announcement_is_passed_over(store: Store) -> None:
    one = Code(store, nine(), app="shop").start()
    store.client.set("beat:announced:till.x", "text", px=60_000)
    store.client.zadd("beat:announcements", {"till.x": clock.to_ms(store.time()) + 60_000})
    beating(one)
    assert warnings(one) == []


# --- no schedule in common -------------------------------------------------------------------------------------------


def test_two_programs_of_one_name_are_told_apart_and_neither_retires(store: Store) -> None:
    gone = Code(store, schedule("gone")).start()
    gone.end()
    one = Code(store, schedule("a"), after=AT_ONCE, host="web-1").start()
    other = Code(store, schedule("b"), after=AT_ONCE, host="web-2").start()
    beating(one, other)
    assert hash_of(store, "gone")["state"] == "active"
    assert "unannounced_at" not in hash_of(store, "gone")
    for program in (one, other):
        [warning] = warnings(program, "unrelated")
        assert "web-1" in warning.fields["words"]
        assert "web-2" in warning.fields["words"]
        assert "BEAT_APP" in warning.fields["remedy"]
    other.end()
    one.heartbeat()
    assert hash_of(store, "gone")["state"] == "retired"


def test_a_canary_of_one_schedule_is_no_second_program(store: Store) -> None:
    whole = Code(store, schedule("a")).start()
    canary = Code(store, schedule("new"), only="new").start()
    beating(whole, canary)
    assert warnings(whole, "unrelated") + warnings(canary, "unrelated") == []


def test_two_applications_have_nothing_to_share(store: Store) -> None:
    programs = [Code(store, schedule(app), app=app).start() for app in ("shop", "till")]
    settled = everything(store)
    beating(*programs)
    assert {event.name for program in programs for event in program.events} == {"registered"}
    heartbeats = "beat:instance", "beat:announce", "beat:meta"
    assert [key for key in changed(settled, store) if not key.startswith(heartbeats)] == []


# --- what the doctor says --------------------------------------------------------------------------------------------


def findings(server: PrivateRedis) -> dict[str, Finding]:
    checks = {"conflict", "unrelated", "undeclared"}
    return {each.check: each for each in Doctor(server.url).examine() if each.check in checks}


def test_the_doctor_names_both_rules_both_places_and_the_remedy(store: Store, server: PrivateRedis) -> None:
    shop = Code(store, nine(), schedule("alike"), app="shop", host="web-1").start()
    till = Code(store, nine("Europe/Berlin", 7), schedule("alike"), app="till", host="web-2").start()
    beating(shop, till)
    found = findings(server)
    assert list(found) == ["conflict"]
    assert found["conflict"].level == "problem"
    for place in (f"UTC (shop on web-1, {FILE}:3)", f"Europe/Berlin (till on web-2, {FILE}:7)"):
        assert f"0 9 * * * {place}" in found["conflict"].what
    assert "BEAT_PREFIX" in found["conflict"].remedy


def test_the_doctor_names_two_default_zones(store: Store, server: PrivateRedis) -> None:
    one = Code(store, nine(), host="web-1", tz="UTC").start()
    other = Code(store, nine("Europe/Berlin"), host="web-2", tz="Europe/Berlin").start()
    beating(one, other)
    found = findings(server)["conflict"]
    assert (found.level, "BEAT_TZ" in found.remedy) == ("problem", True)


@pytest.mark.parametrize(("age", "level"), [(announcements.DEPLOY / 2, "ok"), (LONG_AGO, "problem")])
def test_the_doctor_lets_a_deploy_take_its_time(store: Store, server: PrivateRedis, age: timedelta, level: str) -> None:
    old = Code(store, nine(), host="web-1", age=timedelta(days=9)).start()
    new = Code(store, nine(queue="slow"), host="web-2", age=age).start()
    beating(old, new)
    assert findings(server)["conflict"].level == level


def test_the_doctor_names_two_programs_of_one_name(store: Store, server: PrivateRedis) -> None:
    programs = [Code(store, schedule(each), host=f"web-{each}").start() for each in "ab"]
    beating(*programs)
    found = findings(server)["unrelated"]
    assert (found.level, "web-a" in found.what, "web-b" in found.what) == ("warning", True, True)
    assert "BEAT_APP" in found.remedy


def test_the_doctor_names_what_no_live_scheduler_declares(store: Store, server: PrivateRedis) -> None:
    Code(store, of("app.reports", "daily"), of("app.billing", "invoice")).start().end()
    part = Code(store, of("app.reports", "daily")).start()
    beating(part)
    found = findings(server)["undeclared"]
    assert (found.level, "invoice (app.billing, " in found.what) == ("note", True)
    assert "beat remove invoice" in found.remedy


# --- modules ---------------------------------------------------------------------------------------------------------


def of(module: str, schedule_id: str) -> Schedule:
    return schedule(schedule_id, declared=Place(f"{module.replace('.', '/')}.py", 1, module))


def test_a_scheduler_holds_and_retires_only_schedules_of_modules_that_it_has_loaded(store: Store) -> None:
    whole = Code(store, of("app.reports", "daily"), of("app.reports", "weekly"), of("app.billing", "invoice")).start()
    whole.end()
    assert [hash_of(store, each)["module"] for each in ("daily", "invoice")] == ["app.reports", "app.billing"]
    part = Code(store, of("app.reports", "daily"), after=AT_ONCE).start()
    beating(part)
    assert [hash_of(store, each)["state"] for each in ("weekly", "invoice")] == ["retired", "active"]
    assert "unannounced_at" not in hash_of(store, "invoice")
    rest = Code(store, of("app.reports", "daily"), after=AT_ONCE, modules={"app.reports", "app.billing"}).start()
    beating(rest)
    assert hash_of(store, "invoice")["state"] == "retired"


def test_what_moves_into_a_loaded_module_and_vanishes_is_retired(store: Store) -> None:
    Code(store, of("app.reports", "daily"), of("app.billing", "invoice")).start().end()
    part = Code(store, of("app.reports", "daily"), after=AT_ONCE).start()
    beating(part)
    moved = schedule("invoice", queue="x", declared=Place("app/reports.py", 9, "app.reports"))
    Code(store, of("app.reports", "daily"), moved).start().end()
    beating(part)
    assert hash_of(store, "invoice")["state"] == "retired"


def test_a_scheduler_that_only_exposes_functions_declares_nothing(store: Store, server: PrivateRedis) -> None:
    shop = Code(store, schedule("a"), host="web-1").start()
    beating(shop)
    settled = everything(store)
    data = Code(store, host="web-2", functions=["app.tasks.export"]).start()
    beating(shop, data)
    assert data.told() == shop.told() == []
    assert store.client.zrange("beat:functions", 0, -1) == [b"app.tasks.export"]
    assert {key.partition(":")[2].partition(":")[0] for key in changed(settled, store)} == {
        "functions", "announcements", "announced", "instance", "instances",
    }  # fmt: skip
    assert store.client.zrange("beat:announcements", 0, -1) == [shop.sync.digest.encode()]
    assert [(check, each.level) for check, each in findings(server).items()] == [("conflict", "ok")]
    assert data.heartbeat() == "OK", "it is not asked to announce again"


# --- an application without a name -----------------------------------------------------------------------------------


def at(file: str, schedule_id: str) -> Schedule:
    return schedule(schedule_id, declared=Place(file, 1, "tasks"))


ONE = [at("/srv/one/tasks.py", each) for each in ("a", "b")]


@pytest.mark.parametrize(
    ("file", "host", "app", "state"),
    [
        ("/srv/one/tasks.py", "web-1", "default", "retired"),
        ("/srv/one/others.py", "web-1", "default", "retired"),
        ("/srv/two/tasks.py", "web-1", "default", "active"),
        ("/srv/one/tasks.py", "web-2", "default", "active"),
        ("/srv/two/tasks.py", "web-2", "shop", "retired"),
    ],
)
def test_without_a_name_host_and_directory_say_whose_schedule_it_is(
    store: Store, file: str, host: str, app: str, state: str
) -> None:
    Code(store, *ONE, host="web-1", app=app).start().end()
    other = Code(store, at(file, "c"), host=host, app=app, modules={"tasks"}, after=AT_ONCE).start()
    beating(other)
    assert [hash_of(store, each)["state"] for each in "abc"] == [state, state, "active"]
    named = [event.fields for event in warnings(other, "nameless")]
    is_left = state == "active"
    assert named == [{"count": 2, "ids": ["a", "b"], "place": "tasks, /srv/one/tasks.py on web-1"}] * is_left


def test_what_a_live_scheduler_declares_is_nobodys_worry(store: Store) -> None:
    one = Code(store, *ONE, at("/srv/one/tasks.py", "both"), host="web-1").start()
    two = Code(store, at("/srv/two/tasks.py", "c"), at("/srv/two/tasks.py", "both"), host="web-2").start()
    beating(one, two)
    assert warnings(one, "nameless") + warnings(two, "nameless") == []
    one.end()
    beating(two)
    assert [event.fields["ids"] for event in warnings(two, "nameless")] == [["a", "b"]]


def test_what_an_earlier_version_of_beat_registered_is_retired_by_its_module(store: Store) -> None:
    Code(store, *ONE, host="web-1").start().end()
    for each in "ab":
        store.client.hdel(f"beat:schedule:{each}", "host", "file")
    beating(Code(store, at("/srv/two/tasks.py", "c"), host="web-2", after=AT_ONCE).start())
    assert [hash_of(store, each)["state"] for each in "ab"] == ["retired", "retired"]


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_a_declaration_is_kept_with_its_host_file_line_and_module(store: Store) -> None:
    code = Code(store, nine(), host="web-1").start()
    found = hash_of(store, "report")
    assert (found["host"], found["module"]) == ("web-1", "app.tasks")
    assert '"declared": "app/tasks.py:3"' in found["definition"]
    announced: Any = store.client.hget(f"beat:announced:{code.sync.digest}", "report")
    assert Declaration.read(announced.decode()) == (nine().rev, "0 9 * * *", "UTC", f"{FILE}:3")


def test_a_declaration_is_read_back_whatever_is_in_it() -> None:
    odd = Declaration("rev", "0 9 * * *", "UTC", "a\tb.py:1")
    assert Declaration.read(odd.write()) == ("rev", "0 9 * * *", "UTC", "a b.py:1")
    assert Declaration.read("rev") == ("rev", "", "", "")
    assert Declaration.read("") == ("", "", "", "")


# --- alerts ----------------------------------------------------------------------------------------------------------


def test_where_nothing_names_the_application_the_incidents_of_all_that_run_are_shown(
    store: Store, server: PrivateRedis
) -> None:
    shop = Code(store, nine(), app="shop").start()
    beating(shop)
    state = {"event": "failed", "count": 1, "since": "2026-11-16T09:00:00Z", "last": "2026-11-16T09:00:00Z"}
    state |= {"error": "E", "incident": "r1.run.report.1", "told": ["ops"]}
    store.client.hset("beat:incidents:shop", "r1:run:report", json.dumps(state))
    assert [each.subject for each in Standing(server.url, app="default").incidents()] == ["report"]
    assert [each.subject for each in Standing(server.url, app="shop").incidents()] == ["report"]
    assert Standing(server.url, app="till").incidents() == []
