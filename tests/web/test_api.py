"""The JSON API: what it tells is what the command line prints, and what it changes bears a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat.client.describe import after_change, decisions, export, show
from beat.schedule import functions
from tests.support import declared
from tests.web.program import V1, get, post, told

if TYPE_CHECKING:
    from tests.support.schedulers_in_turn import Crew
    from tests.web.visitor import Visitor

# --- looking ---------------------------------------------------------------------------------------------------------


def test_a_page_of_schedules_says_after_which_the_next_begins(program: Visitor) -> None:
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        found = get(program, "/schedules", limit=3, **after)
        seen += [each["id"] for each in found["schedules"]]
        if found["next"] is None:
            break
        after = {"after": found["next"]}
    assert seen == ["fragile", "held", "load", "moved", "nightly", "report", "single"]
    assert found["counts"]["schedules"] == 7
    assert [each["name"] for each in found["beats"]] == ["web-1"]


FILTERS = [
    ({"state": "paused"}, ["held"]),
    ({"failing": "true"}, ["fragile"]),
    ({"overridden": "true"}, ["moved"]),
    ({"match": "re*"}, ["report"]),
    ({"match": "igh"}, ["nightly"]),
    ({"queue": "slow"}, ["single"]),
    ({"func": "*.fail"}, ["fragile"]),
    ({"source": "api"}, []),
    ({"sort": "failures", "limit": "1"}, ["fragile"]),
]


@pytest.mark.parametrize(("query", "ids"), FILTERS, ids=[str(query) for query, _ in FILTERS])
def test_every_filter_is_there(program: Visitor, query: dict[str, str], ids: list[str]) -> None:
    assert [each["id"] for each in get(program, "/schedules", **query)["schedules"]] == ids


def test_a_row_is_what_the_command_line_lists_and_has_as_many_runs_as_were_asked_for(
    program: Visitor, crew: Crew
) -> None:
    [row] = get(program, "/schedules", match="fragile", runs=5)["schedules"]
    [found] = crew.client.schedules(match="fragile", runs=5)
    runs = row.pop("runs")
    assert row == export.row(found)
    assert runs == [decisions.plain(line) for line in found.runs]
    assert runs[0]["error"]["type"].endswith("Error")


def test_one_schedule_is_told_whole(program: Visitor, crew: Crew) -> None:
    found, own = get(program, "/schedules/nightly", ticks=100), crew.client.show("nightly")
    assert found["schedule"] == json.loads(json.dumps(show.plain(own.standing)))
    assert found["statistics"] == show.measured(own.statistics)
    assert found["queues"][0]["name"] == "default"
    assert "02:30" in found["words"]["when"]
    assert len(found["ticks"]) == 100


def test_the_days_of_a_schedule_are_those_of_its_calendar(program: Visitor, crew: Crew) -> None:
    today = next(line.at for line in crew.client.history("fragile", outcome=["failed"])).date().isoformat()
    nothing = {"succeeded": 0, "lost": 0, "stopped": 0, "skipped": 0, "open": 0}
    assert get(program, "/schedules/fragile")["days"] == [{"day": today, "failed": 1, **nothing}]
    assert get(program, "/schedules/nightly")["days"] == []


def test_the_next_ticks_say_what_a_change_of_the_clocks_does_to_them(program: Visitor) -> None:
    query = {"cron": "30 2 * * *", "tz": "Europe/Berlin", "from": "2026-03-28T00:00Z", "n": 3}
    found = get(program, "/preview", **query)
    assert [each["utc"] for each in found["ticks"]] == [
        "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z",
    ]  # fmt: skip
    assert "does not exist" in found["ticks"][1]["note"]
    assert found["description"]


def test_a_preview_knows_intervals_and_what_an_id_makes_of_a_hash(program: Visitor) -> None:
    assert get(program, "/preview", every="90m", n=1)["normalised"] == "1h30m"
    assert "give the id" in get(program, "/preview", 400, cron="H 3 * * *")["error"]
    assert get(program, "/preview", cron="H 3 * * *", id="report")["normalised"].endswith("3 * * *")


def test_a_history_has_lines_of_all_kinds_and_can_be_asked_for_some(program: Visitor, crew: Crew) -> None:
    lines = get(program, "/history")["lines"]
    assert {"run", "registered", "paused", "rescheduled"} <= {line["type"] for line in lines}
    failed = get(program, "/history", outcome="failed,lost")["lines"]
    assert [line["schedule"] for line in failed] == ["fragile"]
    own = get(program, "/schedules/fragile/history", limit=2)["lines"]
    assert own == [decisions.plain(line) for line in crew.client.history("fragile", limit=2)]
    assert get(program, "/history", until="1h")["lines"] == []
    assert get(program, "/history", since="1h", limit=500)["lines"] == lines


def test_a_run_is_found_by_its_job(program: Visitor, crew: Crew) -> None:
    [line] = crew.client.history("fragile", outcome="failed")
    found = get(program, f"/runs/{line.job_id}")  # type: ignore[union-attr]
    assert found["run"] == decisions.plain(line)
    assert found["arguments"] == {"args": [], "kwargs": {}, "problem": None}
    assert "failed" in found["sentence"]
    assert "the history has no job" in get(program, "/runs/nothing_of_the_kind", 404)["error"]


def test_why_is_answered_in_a_sentence(program: Visitor) -> None:
    found = get(program, "/schedules/nightly/why", time="12:00")
    assert found["answer"] in {"not_a_tick", "not_registered"}
    assert found["sentence"]
    assert "is not a time" in get(program, "/schedules/nightly/why", 400, time="soon")["error"]
    assert "time is missing" in get(program, "/schedules/nightly/why", 400)["error"]


def test_the_timeline_is_looked_at_once_and_kept_for_a_while(program: Visitor, crew: Crew) -> None:
    found = get(program, "/timeline", hours=2, slices=50, tz="Europe/Berlin")
    assert found["schedules"] == 7
    assert sum(each["failed"] for each in found["slices"]) == 1
    crew.client.trigger("report")
    assert get(program, "/timeline", hours=2, slices=50, tz="Europe/Berlin") == found


# --- changing --------------------------------------------------------------------------------------------------------


def test_a_run_that_is_asked_for_is_made_once_and_says_where_it_is(program: Visitor, crew: Crew) -> None:
    body = {"kwargs": {"copies": 3}, "request": "a81bc81bdead4e5d"}
    first = program.ask("POST", f"{V1}/schedules/report/trigger", json=body)
    again = program.ask("POST", f"{V1}/schedules/report/trigger", json=body)
    run = told(first, 201)["run"]
    assert told(again, 201)["run"]["job"] == run["job"]
    assert (run["beat"], run["triggered_by"]) == ("web", "manual")
    found = told(program.get(first.headers["location"]))
    assert found["arguments"]["kwargs"] == {"copies": 3, "api_token": "•••"}
    before = len(crew.client.history("report", outcome="succeeded"))
    crew.work()
    assert len(crew.client.history("report", outcome="succeeded")) == before + 1


def test_a_run_with_arguments_that_the_function_does_not_take_is_refused(program: Visitor, crew: Crew) -> None:
    path = crew.client.get("report").definition["func"]
    crew.store.announce({}, [path], {path: functions.signature(declared.report)}, digest="d", ttl=60_000)
    crew.store.client.hset("beat:schedule:report", "app", "")
    error = post(program, "/schedules/report/trigger", 400, kwargs={"copie": 3})["error"]
    assert "as its scheduler declares it: got an unexpected keyword argument" in error


def test_a_run_that_may_not_overlap_is_refused_unless_it_is_forced(program: Visitor) -> None:
    assert "may not overlap" in post(program, "/schedules/single/trigger", 409)["error"]
    assert post(program, "/schedules/single/trigger", 201, force=True)["run"]["schedule"] == "single"


def test_a_pause_and_its_end(program: Visitor, crew: Crew) -> None:
    version = crew.client.get("report").version
    found = post(program, "/schedules/report/pause", until="2h", reason="rain", expected_version=version)
    assert found["schedule"] == after_change.plain(crew.client.get("report"))
    assert found["schedule"]["pause"]["reason"] == "rain"
    assert found["passing"]["count"] >= 0
    assert "version" in post(program, "/schedules/report/resume", 409, expected_version=version)["error"]
    assert post(program, "/schedules/report/resume", catch_up=True)["schedule"]["state"] == "active"
    assert "not paused" in post(program, "/schedules/report/resume", 409)["error"]


def test_another_rule_can_be_tried_laid_over_and_taken_back(program: Visitor, crew: Crew) -> None:
    tried = post(program, "/schedules/nightly/reschedule", cron="0 4 * * *", dry_run=True)
    assert (tried["dry_run"], tried["before"] != tried["after"]) == (True, True)
    assert crew.client.get("nightly").override is None
    done = post(program, "/schedules/nightly/reschedule", cron="0 4 * * *", tz="Europe/Berlin")
    assert done["schedule"]["overridden"]
    moved = post(program, "/schedules/nightly/reschedule", at="1m")
    assert moved["schedule"]["due_at"] < done["schedule"]["due_at"]
    assert not post(program, "/schedules/nightly/reschedule", reset=True)["schedule"]["overridden"]
    assert "give one of" in post(program, "/schedules/nightly/reschedule", 400)["error"]
    assert "give one of" in post(program, "/schedules/nightly/reschedule", 400, at="1m", reset=True)["error"]


CHANGES: dict[str, dict[str, Any]] = {
    "trigger": {"kwargs": {"copies": 3}},
    "pause": {"reason": "rain"},
    "resume": {},
    "reschedule": {"cron": "0 4 * * *"},
    "reschedule at": {"at": "90s"},
    "reschedule back": {"reset": True},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_expects_another_version_is_a_409(program: Visitor, crew: Crew, change: str) -> None:
    schedule_id = "held" if change == "resume" else "moved"
    before = crew.client.get(schedule_id)
    path = f"/schedules/{schedule_id}/{change.partition(' ')[0]}"
    for version in (before.version - 1, before.version + 1):
        error = post(program, path, 409, **CHANGES[change], expected_version=version)["error"]
        assert f"has version {before.version} by now" in error
    assert crew.client.get(schedule_id) == before
    status = 201 if change == "trigger" else 200
    post(program, path, status, **CHANGES[change], expected_version=before.version)


def test_everything_can_be_paused_and_resumed(program: Visitor) -> None:
    assert post(program, "/pause_all", until="2h", reason="moving house")["paused"] == 6
    assert get(program, "/schedules", state="active")["schedules"] == []
    assert post(program, "/resume_all")["resumed"] == 6
    assert [each["id"] for each in get(program, "/schedules", state="paused")["schedules"]] == ["held"]


# --- the whole -------------------------------------------------------------------------------------------------------


def test_the_overview_says_in_a_sentence_what_it_tells_in_numbers(program: Visitor) -> None:
    found = get(program, "/overview")
    assert found["sentence"].startswith("1 of 7 schedules is failing")
    assert found["level"] == "bad"
    assert found["counts"]["failing"] == 1
    assert [(each["name"], each["fresh"], each["stuck"]) for each in found["beats"]] == [("web-1", True, False)]
    assert found["coming"][0]["id"] in {"moved", "nightly"}
    assert {run["schedule"] for run in found["latest"]} == {"report", "fragile", "single"}


def test_the_system_tells_of_beats_redis_queues_and_workers(program: Visitor) -> None:
    found = get(program, "/system")
    assert found["beats"][0]["clock_offset_ms"] == 3
    assert {each["group"] for each in found["redis"]} == {"redis", "state"}
    assert {each["name"]: each["queued"] for each in found["queues"]} == {"default": 0, "slow": 1}
    assert found["groups"] == []


def test_who_did_what_is_told_newest_first(program: Visitor) -> None:
    post(program, "/schedules/report/pause", reason="rain")
    found = get(program, "/actions", limit=3)
    assert [(each["by"], each["type"], each["schedule"]) for each in found["actions"]] == [
        ("web", "paused", "report"), ("ann", "manual", "single"), ("ann", "rescheduled", "moved"),
    ]  # fmt: skip
    assert found["actions"][0]["line"]["reason"] == "rain"
    assert {"ann", "web"} <= set(found["people"])
    assert {each["by"] for each in get(program, "/actions", by="ann")["actions"]} == {"ann"}


def test_alerts_are_those_of_the_command_line(program: Visitor) -> None:
    assert get(program, "/alerts") == {"schema_version": 1, "rules": [], "channels": [], "incidents": []}
