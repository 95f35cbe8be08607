"""No pair of options is without an answer: how they go together, or why they do not."""

from __future__ import annotations

import functools
import os
from dataclasses import fields
from typing import TYPE_CHECKING, get_args

import pytest

from beat.schedule.options import Misfire, Overlap
from beat.schedule.schedule import Schedule
from tests.resilience.policies import pairs
from tests.resilience.policies.pairs import OPTIONS, PAIRS, Option, options, outcome, refusal, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.resilience.policies.clients import Connect

NO_POLICY = {
    "monitor",
    *("id", "func", "tz", "args", "kwargs", "description", "priority", "queue", "job_timeout", "result_ttl"),
    *(
        "failure_ttl",
        "ttl",
        "retry",
        "at_front",
        "meta",
        "on_success",
        "on_failure",
        "on_stopped",
        "serializer",
        "declared",
    ),
}
EITHER = {("end=05:30", "max_runs=3"), *((first, f'group="{group}"') for first, group in pairs.SMALLER)}
"""Whichever comes first: the other one makes no difference."""
EXPECTED = {
    ('misfire="once"', 'exclude="2026-11-16"'): (
        "21:00 to 22:00 skipped (excluded); 23:00 to 02:00 skipped (misfire); 03:00 caught up 30 min later; "
        "04:00 to 10:00 enqueued"
    ),
    ('misfire="skip"', "max_runs=3"): (
        "21:00 to 22:00 enqueued; 23:00 to 03:00 skipped (misfire); 04:00 enqueued; finished"
    ),
    ('misfire="all"', 'overlap="skip"'): (
        "21:00 enqueued; 22:00 skipped (overlap); 23:00 caught up 4 h 30 min later; 00:00 to 05:00 skipped (overlap); "
        "06:00 enqueued; 07:00 to 08:00 skipped (overlap); 09:00 enqueued; 10:00 skipped (overlap)"
    ),
    ('misfire="all"', 'overlap="wait"'): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 waited 7 h 00 min later; "
        "00:00 to 05:00 skipped (overlap); 06:00 waited 3 h 00 min later; "
        "07:00 to 08:00 skipped (overlap); 09:00 waits; 10:00 skipped (overlap)"
    ),
    ('misfire="all"', "max_runs=3"): "21:00 to 22:00 enqueued; 23:00 caught up 4 h 30 min later; finished",
    ('catchup_window="3h"', 'overlap="wait"'): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 to 00:00 skipped (too_old); "
        "01:00 to 02:00 skipped (misfire); 03:00 waited 3 h 00 min later; 04:00 to 05:00 skipped (overlap); "
        "06:00 waited 3 h 00 min later; 07:00 to 08:00 skipped (overlap); 09:00 waits; 10:00 skipped (overlap)"
    ),
    ('overlap="wait"', "max_runs=3"): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 to 02:00 skipped (misfire); 03:00 waits; finished"
    ),
    ('overlap="wait"', "end=05:30"): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 to 02:00 skipped (misfire); 03:00 waits; "
        "04:00 to 05:00 skipped (overlap); finished"
    ),
    ('overlap="replace"', "end=05:30"): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 to 02:00 skipped (misfire); 03:00 skipped (replaced); "
        "04:00 waited 1 h 00 min later; 05:00 waited; finished"
    ),
    ("start=22:30", 'every="50m"'): (
        "22:30 to 23:20 enqueued; 00:10 to 03:30 skipped (misfire); 04:20 caught up 30 min later; "
        "05:10 to 10:10 enqueued"
    ),
    ("end=05:30", "max_runs=3"): (
        "21:00 to 22:00 enqueued; 23:00 to 02:00 skipped (misfire); 03:00 caught up 30 min later; finished"
    ),
    ('overlap="allow"', 'group="reports"'): (
        "21:00 enqueued; 22:00 waited 5 h 30 min later; 23:00 to 02:00 skipped (misfire); "
        "03:00 waited 3 h 00 min later; 04:00 waited 5 h 00 min later; 05:00 to 10:00 waits"
    ),
    ("max_runs=3", 'group="alerts"'): (
        "21:00 enqueued; 22:00 skipped (group); 23:00 to 02:00 skipped (misfire); 03:00 caught up 30 min later; "
        "04:00 to 05:00 skipped (group); 06:00 enqueued; finished"
    ),
    ('overlap="skip"', 'route="round_robin"'): (
        "21:00 enqueued at a; 22:00 skipped (overlap); 23:00 to 02:00 skipped (misfire); "
        "03:00 caught up 30 min later at b; 04:00 to 05:00 skipped (overlap); 06:00 enqueued at a; "
        "07:00 to 08:00 skipped (overlap); 09:00 enqueued at b; 10:00 skipped (overlap)"
    ),
    ("max_runs=3", 'route="broadcast"'): (
        "21:00 to 22:00 enqueued at a and b; 23:00 to 02:00 skipped (misfire); "
        "03:00 caught up 30 min later at a and b; finished"
    ),
    ('exclude="2026-11-16"', 'slow_queue="slow"'): (
        "21:00 to 22:00 skipped (excluded); 23:00 to 02:00 skipped (misfire); 03:00 caught up 30 min later; "
        "04:00 to 06:00 enqueued; 07:00 to 10:00 enqueued at slow"
    ),
    ('overlap="skip"', 'requires="y"'): (
        "21:00 enqueued; 22:00 skipped (overlap); 23:00 to 02:00 skipped (misfire); 03:00 skipped (dependency); "
        "04:00 enqueued; 05:00 to 06:00 skipped (overlap); 07:00 enqueued; 08:00 skipped (overlap); "
        "09:00 skipped (dependency); 10:00 enqueued"
    ),
    (
        "max_running=2",
        'follows="y"',
    ): "21:00, 22:00, 04:00, 05:00 enqueued; 06:00 waited 1 h 00 min later; 10:00 enqueued",
    ('slow_queue="slow"', 'follows="y"'): "21:00, 22:00 enqueued; 04:00, 05:00, 06:00, 10:00 enqueued at slow",
    ("enabled=False", 'follows="y"'): "21:00, 22:00, 04:00, 05:00, 06:00, 10:00 skipped (disabled); disabled",
    ('group="reports"', 'route="broadcast"'): (
        "refused: schedule 'x' sends every tick to 2 queues, and its group 'reports' has room for 1: "
        "give it more, or the schedule fewer queues"
    ),
    ('jitter="40m"', 'follows="y"'): (
        "refused: jitter='40m' says nothing here: follows='y' ticks when that schedule has succeeded, "
        "and has no times of its own: leave it out"
    ),
    ('misfire="skip"', 'catchup_window="3h"'): (
        "refused: catchup_window='3h' says nothing here: with misfire='skip' no late tick fires, however old"
    ),
    ('overlap="allow"', "max_waiting=2"): (
        "refused: max_waiting=2 says nothing here: ticks wait only with overlap='wait'"
    ),
    ('"H * * * *"', 'every="50m"'): (
        "refused: a schedule needs one rule, this has both an expression and every=: "
        "write @periodic('0 9 * * *') or @periodic(every='15m')"
    ),
}
"""Written by hand."""


def named(pair: tuple[Option, Option]) -> str:
    return " with ".join(each.name for each in pair)


@pytest.fixture(scope="session")
def alone(connect: Connect) -> Callable[[Option, Option], str]:
    """What becomes of the ticks with one option, without another."""

    @functools.cache
    def play(other: str, without: str) -> str:
        named = {option.name: option for option in OPTIONS}
        said = {**options(named[other]), **(named[without].instead if without else {})}
        return refusal(said) or told(said, connect)

    return lambda other, without: play(other.name, without.name if without.instead else "")


EVERY = 1 if os.environ.get("LONG_TESTS") else 10  # `make survive` has all of them
TODAY = [pair for n, pair in enumerate(PAIRS) if n % EVERY == 0 or (pair[0].name, pair[1].name) in EXPECTED]


@pytest.mark.parametrize("pair", TODAY, ids=lambda pair: " with ".join(each.name for each in pair))
def test_a_pair_does_what_is_expected_and_each_of_the_two_makes_a_difference(
    pair: tuple[Option, Option], connect: Connect, alone: Callable[[Option, Option], str]
) -> None:
    names = (pair[0].name, pair[1].name)
    found = outcome(pair, connect)
    assert found == EXPECTED.get(names, found)
    if found.startswith("refused") or names in EITHER:
        return
    for one, other in (pair, pair[::-1]):
        idle = other.says == {"enabled": False} or one.says.items() <= other.needs.items()
        assert idle or alone(other, one) != found, f"the pair shows nothing of {one.name}"


def test_no_policy_is_missing() -> None:
    said = {name for option in OPTIONS for name in option.says}
    assert {each.name for each in fields(Schedule)} - NO_POLICY == said - {"every", "cron", "follows"} | {"timing"}
    for name, kind in (("misfire", Misfire), ("overlap", Overlap)):
        assert {option.says[name] for option in OPTIONS if name in option.says} == {*get_args(kind)}
    names = {(first.name, second.name) for first, second in PAIRS}
    assert {*pairs.TOGETHER, *EITHER, *EXPECTED} <= names
