"""The options of place: what each may be, which say something together, and what a schedule makes of them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat.config.sources import Defaults
from beat.errors import BadOption, DeclarationError
from beat.schedule import overrides
from beat.schedule.follows import Follows
from beat.schedule.from_options import declare
from beat.schedule.requires import Requires
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every
from tests.support.declared import Queues
from tests.support.refusals import refused

if TYPE_CHECKING:
    from beat.schedule.options import Options

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
DEFAULTS = Defaults(queues={"high": "urgent", "normal": "usual", "low": "low"}, presets={"nightly": "0 3 * * *"})


def schedule(**given: Any) -> Schedule:
    return Schedule(**{"id": "report", "func": "app.tasks.report", "timing": Every("1h"), **given})


def follower(**given: Any) -> Schedule:
    return schedule(timing=Follows("extract"), **given)


def declared(expression: str | None = None, **given: Any) -> Schedule:
    options: Options = given  # type: ignore[assignment]  # as a table has them
    return declare("app.tasks.report", expression, options, DEFAULTS, id="report")


# --- one value -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queues": "fast", "route": "first"}, "queues must be a list, not str: write queues=['one', 'two']"),
        ({"queues": {"a", "b"}, "route": "first"}, "queues must be a list, not set"),
        ({"queues": ["fast"], "route": "first"}, "queues must be at least two, among which route= chooses"),
        ({"queues": [f"q{n}" for n in range(101)], "route": "first"}, "queues has 101 names, and may have 100"),
        ({"queues": ["a", "b", "a"], "route": "first"}, "queues has 'a' twice: leave one of them out"),
        ({"queues": ["a", " b"], "route": "first"}, "queues: ' b' must be a queue's name"),
        ({"queues": ["a", None], "route": "first"}, "queues: None must be a queue's name"),
        ({"queues": ["a", "b"], "route": "shortes"}, "route 'shortes' must be one of 'first', 'last', 'round_robin'"),
        ({"queues": ["a", "b"], "route": "shortes"}, "Did you mean 'shortest'?"),
        ({"queues": ["a", "b"], "route": 1}, "route 1 must be one of"),
        ({"group": "a b"}, "group 'a b' must be 1 to 100 of the characters"),
        ({"group": ""}, "group '' must be"),
        ({"group": 5}, "group 5 must be"),
        ({"slow_queue": ""}, "slow_queue '' must be a queue's name"),
        ({"slow_queue": "slow", "slow_after": 0}, "slow_after 0 must be a length of time from 1ms to 52w2d"),
        ({"slow_queue": "slow", "slow_after": "soon"}, "slow_after 'soon' must be a length of time"),
        ({"slow_queue": "slow", "slow_times": 0}, "slow_times must be a whole number from 1 to 1,000, not 0"),
        ({"slow_queue": "slow", "slow_times": 1001}, "slow_times must be a whole number from 1 to 1,000"),
        ({"slow_queue": "slow", "slow_times": True}, "slow_times must be a whole number"),
        ({"slow_queue": "slow", "slow_window": "25h"}, "slow_window '25h' must be a length of time from 1ms to 1d"),
        ({"requires": 5}, "requires 5 must be an id, a beat.Requires('extract', within='1h'), or a list of them"),
        ({"requires": {"extract": "1h"}}, "must be an id"),
        ({"requires": [5]}, "requires 5 must be 1 to 100 of the characters"),
        ({"requires": ["a b"]}, "requires 'a b' must be 1 to 100 of the characters"),
        ({"requires": ["a", "a"]}, "requires has 'a' twice"),
        ({"requires": ["a", Requires("a", within="1h")]}, "requires has 'a' twice"),
        ({"requires": [f"a{n}" for n in range(11)]}, "requires has 11 entries, and may have 10"),
        ({"requires": "extract within soon"}, "within 'soon' must be a length of time"),
    ],
)
def test_a_value_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    assert said in refused(BadOption, lambda: schedule(**given))


@pytest.mark.parametrize("within", [0, -1, "soon", True, "367d", timedelta(microseconds=1)])
def test_a_span_that_cannot_be_is_refused(within: Any) -> None:
    assert "within" in refused(BadOption, lambda: Requires("extract", within=within))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("extract", (Requires("extract"),)),
        (["extract"], (Requires("extract"),)),
        (Requires("extract", within="1h"), (Requires("extract", timedelta(hours=1)),)),
        (("load", "extract within 90s"), (Requires("load"), Requires("extract", within=90))),
        ((), ()),
        ([], ()),
        (None, ()),
    ],
    ids=str,
)
def test_what_is_required_is_kept_in_one_form(given: Any, found: tuple[Requires, ...]) -> None:
    assert schedule(requires=given).requires == found


@pytest.mark.parametrize("one", [Requires("extract"), Requires("extract", within="1h30m"), Requires("within-x", "5ms")])
def test_a_requirement_is_read_from_its_own_words(one: Requires) -> None:
    assert Requires.read(str(one)) == one
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 (our own)


def test_members_of_an_enum_are_plain_text_afterwards() -> None:
    made = schedule(queues=[Queues.REPORTS, "other"], route="first", slow_queue="slow")
    assert made.queues == ("reports", "other")
    assert {type(each) for each in made.queues} == {str}


# --- values together -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"queues": ["a", "b"]},
            "queues=['a', 'b'] says nothing here: write route='shortest' or another way to choose among them",
        ),
        ({"route": "first"}, "route='first' says nothing here: write queues=['one', 'two'], among which it chooses"),
        (
            {"queue": "x", "queues": ["a", "b"], "route": "first"},
            "queue='x' says nothing here: route= chooses among queues=: leave queue out",
        ),
        ({"slow_after": "1s"}, "slow_after='1s' says nothing here: write slow_queue='slow'"),
        ({"slow_times": 3}, "slow_times=3 says nothing here: write slow_queue='slow'"),
        ({"slow_window": "1h"}, "slow_window='1h' says nothing here: write slow_queue='slow'"),
        (
            {"slow_queue": "slow", "queues": ["a", "b"], "route": "broadcast"},
            "slow_queue='slow' says nothing here: route='broadcast' sends every tick to all of its queues",
        ),
        ({"slow_queue": "default"}, "slow_queue='default' says nothing here: its jobs go there already"),
        ({"slow_queue": "b", "queues": ["a", "b"], "route": "first"}, "slow_queue='b' says nothing here"),
        ({"requires": "report"}, "requires names the schedule itself, 'report': name another, or leave it out"),
    ],
)
def test_options_that_say_nothing_together_are_refused(given: dict[str, Any], said: str) -> None:
    assert said in refused(BadOption, lambda: schedule(**given))


@pytest.mark.parametrize(
    "given",
    [
        {"start": MONDAY},
        {"end": MONDAY},
        {"misfire": "all"},
        {"misfire": "skip"},
        {"misfire_after": "5s"},
        {"catchup_window": "1h"},
        {"jitter": "5s"},
    ],
    ids=str,
)
def test_a_follower_has_nothing_to_say_about_times(given: dict[str, Any]) -> None:
    message = refused(BadOption, lambda: follower(**given))
    assert message.startswith(f"{next(iter(given))}=")
    assert "says nothing here: follows='extract' ticks when that schedule has succeeded" in message
    assert message.endswith(": leave it out")


def test_a_follower_has_no_tick_before_since_which_something_could_be_required() -> None:
    message = refused(BadOption, lambda: follower(requires="load"))
    assert message.endswith("write Requires('load', within='1h')")
    assert follower(requires=Requires("load", within="1h")).requires


def test_a_follower_of_itself_is_refused() -> None:
    assert "follows is the id itself, 'report'" in refused(BadOption, lambda: schedule(timing=Follows("report")))


@pytest.mark.parametrize(
    "given",
    [
        {"overlap": "wait", "max_running": 2, "max_waiting": 5},
        {"overlap": "replace"},
        {"max_runs": 5, "exclude": ["2026-12-25"], "group": "reports"},
        {"queues": ["a", "b"], "route": "broadcast"},
        {"slow_queue": "slow", "slow_times": 3},
        {"tz": "Europe/Paris", "enabled": False},
    ],
    ids=str,
)
def test_all_else_may_be_said_of_a_follower(given: dict[str, Any]) -> None:
    assert follower(**given).follows == "extract"


# --- what a schedule makes of them -----------------------------------------------------------------------------------


def test_the_first_of_the_queues_stands_for_them() -> None:
    made = schedule(queues=["a", "b"], route="last")
    assert made.queue == "a"
    assert replace(made, description="again").queue == "a"
    assert replace(made, queues=["c", "d"], queue="default").queue == "c"


def test_a_follower_has_no_ticks_that_can_be_foretold() -> None:
    made = follower()
    assert (made.follows, schedule().follows) == ("extract", None)
    assert (made.after(MONDAY), made.before(MONDAY)) == (None, None)
    assert made.count(MONDAY, MONDAY + timedelta(days=1)) == 0
    assert list(made.ticks(MONDAY)) == []
    assert (str(made.timing), made.describe()) == ("follows extract", "after every success of extract")
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 (our own)


@pytest.mark.parametrize("value", ["", "a b", None, 5, "x" * 101])
def test_only_an_id_can_be_followed(value: Any) -> None:
    assert refused(BadOption, lambda: Follows(value)).startswith("follows ")


# --- as people write it ----------------------------------------------------------------------------------------------


def test_follows_is_a_rule_as_an_expression_is() -> None:
    made = declared(follows="extract")
    assert (made.follows, made.queue, made.tz) == ("extract", "usual", "UTC")


@pytest.mark.parametrize(
    ("expression", "given", "said"),
    [
        ("@daily", {"follows": "extract"}, "a schedule needs one rule, this has both an expression and follows="),
        (None, {"follows": "extract", "every": "1h"}, "this has both every= and follows="),
        (None, {"follows": "extract", "seconds": True}, "seconds=True says nothing here: follows='extract' has no"),
        (None, {"follows": "extract", "phase": "5m"}, "phase='5m' says nothing here: follows='extract' has no times"),
        (
            "@daily",
            {"queue": "a", "queues": ["b", "c"], "route": "first"},
            "pass either queue='a' or queues=, not both",
        ),
        (
            "@daily",
            {"queue": "default", "queues": ["b", "c"], "route": "first"},
            "pass either queue='default' or queues=, not both",
        ),
        ("@daily", {"followed": "extract"}, "there is no option 'followed'. Did you mean 'follows'?"),
    ],
)
def test_what_contradicts_itself_is_refused(expression: str | None, given: dict[str, Any], said: str) -> None:
    assert said in refused(BadOption, lambda: declared(expression, **given))


def test_queues_that_are_no_list_are_refused_in_their_own_words() -> None:
    wrong = {"queue": "a", "queues": {"a", "b"}, "route": "first"}
    assert "queues must be a list, not set" in refused(BadOption, lambda: declared("@daily", **wrong))


def test_the_first_of_the_queues_may_be_named_as_a_document_does() -> None:
    assert declared("@daily", queue="b", queues=["b", "c"], route="first").queue == "b"


def test_the_queue_of_the_priority_is_for_those_that_name_none() -> None:
    assert declared("@daily", priority="high").queue == "urgent"
    assert declared("@daily", priority="high", queues=["a", "b"], route="first").queue == "a"


# --- an operator's rule ----------------------------------------------------------------------------------------------


def test_no_rule_can_be_laid_over_a_follower() -> None:
    rule = overrides.written({"every": "5m"})
    with pytest.raises(DeclarationError, match="'report' follows 'extract' and has no times of its own"):
        overrides.laid_over(follower(), rule)
    assert overrides.in_force(follower(), rule) == (follower(), follower().rev)
