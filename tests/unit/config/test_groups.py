"""Groups: what may be said of them, in code, in settings and in Redis."""

from __future__ import annotations

from typing import Any

import pytest

import beat
from beat import Group, Registry
from beat.config import groups
from beat.config.sources import Defaults
from beat.errors import BadOption
from beat.schedule import registry
from tests.support.refusals import HOSTILE, refused


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (Group("reports", 5), "wait 5 1000"),
        (Group("reports", 1, "skip"), "skip 1 1000"),
        (Group("reports", 1000, "wait", 1), "wait 1000 1"),
    ],
)
def test_a_group_is_one_line(group: Group, line: str) -> None:
    assert str(group) == line
    assert Group.read("reports", line) == group


@pytest.mark.parametrize(
    "line",
    ["", "5", "wait", "wait 5 1000 1", "wait 0 5", "wait 5 0", "wait -1 5", "wait x 5", "hold 5 5",
     "wait 1001 5", "wait 5 1001", "wait ٣ 5", "wait 5.0 5", f"wait {'9' * 5000} 5"],
)  # fmt: skip
def test_a_line_that_is_no_group_is_refused(line: str) -> None:
    refused(BadOption, lambda: Group.read("reports", line))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_running": 0}, "max_running must be a whole number from 1 to 1,000, not 0"),
        ({"max_running": 1001}, "max_running must be a whole number from 1 to 1,000"),
        ({"max_running": True}, "max_running must be"),
        ({"max_running": "5"}, "max_running must be"),
        ({"max_running": None}, "max_running must be a whole number from 1 to 1,000, not None"),
        (
            {"max_running": 5, "when_full": "wiat"},
            "when_full 'wiat' must be one of 'wait', 'skip'. Did you mean 'wait'",
        ),
        ({"max_running": 5, "max_waiting": 0}, "max_waiting must be a whole number from 1 to 1,000, not 0"),
        ({"max_running": 5, "when_full": "skip", "max_waiting": 5}, "max_waiting=5 says nothing here"),
        ({"max_running": 5, "max_runing": 5}, "a group has no 'max_runing'. Did you mean 'max_running'?"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_where_it_is_written(given: dict[str, Any], said: str) -> None:
    message = refused(BadOption, lambda: Registry().group("reports", **given))
    assert said in message
    assert "test_groups.py:" in message


@pytest.mark.parametrize("name", ["", "a b", "a:b", None, 5, "x" * 101, *HOSTILE])
def test_a_name_that_cannot_be_is_refused(name: Any) -> None:
    with pytest.raises(BadOption):
        Registry().group(name, max_running=5)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (5, "wait 5 1000"),
        ("5", "wait 5 1000"),
        (" 5 ", "wait 5 1000"),
        ("skip 5 1000", "skip 5 1000"),
        ({"max_running": 5}, "wait 5 1000"),
        ({"max_running": 5, "when_full": "skip"}, "skip 5 1000"),
        ({"max_running": 5, "max_waiting": 20}, "wait 5 20"),
    ],
)
def test_settings_write_a_group_in_several_ways(value: object, line: str) -> None:
    assert str(groups.configured("reports", value)) == line


# --- in a registry ---------------------------------------------------------------------------------------------------


def test_a_registry_knows_its_groups() -> None:
    registry = Registry()
    assert registry.group("reports", max_running=5) == Group("reports", 5)
    registry.group("exports", max_running=1, when_full="skip")
    assert registry.groups == {"reports": Group("reports", 5), "exports": Group("exports", 1, "skip")}


def test_the_same_may_be_said_twice_and_nothing_else() -> None:
    registry = Registry()
    registry.group("reports", max_running=5)
    registry.group("reports", max_running=5, when_full="wait")
    message = refused(BadOption, lambda: registry.group("reports", max_running=6))
    assert "group 'reports' is declared twice, first at" in message
    assert "as 'wait 5 1000', here as 'wait 6 1000': say the same, or leave one of them out" in message
    assert registry.groups == {"reports": Group("reports", 5)}


def test_what_the_settings_say_holds() -> None:
    registry = Registry(lambda: Defaults(groups={"reports": "skip 2 1000", "more": "wait 1 1000"}))
    registry.group("reports", max_running=5)
    assert registry.groups == {"reports": Group("reports", 2, "skip"), "more": Group("more", 1)}


def test_wrong_groups_are_collected_with_their_places() -> None:
    registry = Registry()
    with registry.collecting() as problems:
        registry.group("a b", max_running=5)
        registry.group("reports", max_running=0)
    assert [str(problem).partition(": ")[2].split()[0] for problem in problems] == ["group", "max_running"]
    assert all("test_groups.py:" in (problem.where or "") for problem in problems)


def test_the_front_door_has_them() -> None:
    assert beat.group.__self__ is registry.default_registry  # type: ignore[attr-defined]  # a bound method
    assert {"Group", "Requires", "Follows", "group"} <= set(beat.__all__)
