"""A schedule's hash is read as values, whatever it holds."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.client import schedule_info
from beat.client.schedule_info import Bound
from beat.timing import clock
from tests.support.lines import NINE

WHOLE = {
    b"state": b"active",
    b"next_run": b"2026-11-16T09:00:00Z",
    b"due_at": b"2026-11-16T09:00:00Z",
    b"run_count": b"12",
    b"success_count": b"8",
    b"failure_count": b"2",
    b"stopped_count": b"1",
    b"last_duration": b"3.142",
    b"rule": b'{"cron": "0 9 * * *", "tz": "Europe/Berlin"}',
    b"definition": b'{"cron": "0 9 * * *", "tz": "Europe/Berlin", "func": "app.report"}',
    b"tz": b"Europe/Berlin",
}


def test_what_the_hash_says_is_read() -> None:
    found = schedule_info.read("report", WHOLE)
    assert (found.state, found.next_run, found.run_count, found.last_duration) == ("active", NINE, 12, 3.142)
    assert (found.tz, found.definition["func"]) == ("Europe/Berlin", "app.report")
    assert found.schedule is not None
    assert found.schedule.describe() == "at 09:00, every day, Europe/Berlin time"


def test_the_runs_that_have_not_ended_are_the_rest() -> None:
    assert schedule_info.read("report", WHOLE).open_count == 1
    assert schedule_info.read("report", {**WHOLE, b"run_count": b"x"}).open_count is None


def test_a_hash_from_before_the_ledger_has_its_rule_in_the_definition() -> None:
    found = schedule_info.read("report", {name: value for name, value in WHOLE.items() if name != b"rule"})
    assert found.schedule is not None
    assert found.schedule.after(NINE) == clock.read("2026-11-17T08:00:00Z")


def with_policies(**policies: object) -> dict[bytes, bytes]:
    definition = {"cron": "0 9 * * *", "tz": "Europe/Berlin", "func": "app.report", "id": "report", **policies}
    return {**WHOLE, b"definition": json.dumps(definition).encode(), b"rule": json.dumps(definition).encode()}


@pytest.mark.parametrize(
    ("due", "jittered"),
    [("09:00:00", False), ("09:00:14", True), ("09:00:30", True), ("09:00:31", False), ("08:59:59", False)],
)
def test_a_tick_is_put_off_by_no_more_than_its_jitter(due: str, jittered: bool) -> None:  # noqa: FBT001
    at = f"2026-11-16T{due}Z"
    found = schedule_info.read("report", {**with_policies(jitter="30s"), b"due_at": at.encode()})
    assert found.jittered == (clock.read(at) if jittered else None)
    assert schedule_info.read("report", {**with_policies(), b"due_at": at.encode()}).jittered is None


@pytest.mark.parametrize(
    ("policies", "finished"),
    [
        ({"max_runs": 10}, Bound(max_runs=10)),
        ({"end": "2026-11-17T00:00:00Z"}, Bound(end=NINE + timedelta(hours=15))),
        ({"max_runs": 10, "end": "2026-11-17T00:00:00Z"}, Bound(max_runs=10)),
        ({"max_runs": 11, "end": "2026-11-17T00:00:00Z"}, Bound(end=NINE + timedelta(hours=15))),
        ({}, None),
    ],
)
def test_what_finished_a_schedule_is_known(policies: dict[str, object], finished: Bound | None) -> None:
    over = {**with_policies(**policies), b"state": b"finished", b"manual_count": b"2"}
    assert schedule_info.read("report", over).finished == finished
    assert schedule_info.read("report", {**over, b"state": b"active"}).finished is None


def test_runs_that_somebody_asked_for_are_no_ticks() -> None:
    assert schedule_info.read("report", {**WHOLE, b"manual_count": b"2"}).ticked == 10


def test_policies_that_cannot_be_read_are_none() -> None:
    assert schedule_info.read("report", with_policies(overlap="dance")).policies is None
    assert schedule_info.read("report", with_policies(overlap="wait")).policies


def test_of_an_empty_hash_nothing_is_known() -> None:
    found = schedule_info.read("report", {})
    assert (found.state, found.next_run, found.run_count, found.tz, found.schedule) == ("", None, None, "UTC", None)


garbage = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([b"", b"-1", b"9" * 40, b"NaN", b"inf", b"[]", b"[" * 5000, b'{"tz": 3}', b"\xff", b"\xd9\xa1"]),
)


@given(st.dictionaries(st.sampled_from([*WHOLE, b"skip_count", b"last_success", b"created_at", b"\xff"]), garbage))
def test_whatever_the_hash_holds_it_is_read(found: dict[bytes, bytes]) -> None:
    read = schedule_info.read("report", {**WHOLE, **found})
    assert read.open_count is None or read.open_count >= 0
    assert read.schedule is None or read.schedule.tz
