"""Schedules that are alike but for their ids and arguments: the others are what they would be alone, for less."""

from __future__ import annotations

import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from beat.errors import BeatError, DeclarationError
from beat.every import Every
from beat.registry import Registry
from beat.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

START = datetime(2026, 11, 16, 9, tzinfo=UTC)


def work(*args: Any, **kwargs: Any) -> None: ...


def only(kind: str) -> None: ...


def done() -> None: ...


ALIKE: list[tuple[str | None, dict[str, Any]]] = [
    (None, {"every": "1h"}),
    (None, {"every": 90, "phase": 7}),
    (None, {"every": timedelta(minutes=5), "start": START, "end": START + timedelta(days=9)}),
    ("0 9 * * mon-fri", {"tz": "Europe/Paris", "queue": "reports", "job_timeout": "5m", "result_ttl": 60, "retry": 3}),
    ("H H * * *", {"tz": "America/New_York"}),
    ("H * * * * *", {"seconds": True}),
    ("@daily", {"misfire": "all", "overlap": "wait", "max_waiting": 3, "max_runs": 9, "jitter": "30s"}),
    ("@hourly", {"exclude": ["2026-12-25"], "group": "reports", "enabled": False, "description": "of its own"}),
    ("@hourly", {"queues": ["a", "b"], "route": "hash", "slow_queue": "slow"}),
    ("@hourly", {"requires": "another", "priority": "high", "at_front": True, "serializer": "json"}),
    ("@hourly", {"on_success": done, "on_failure": "app.hooks.failed", "ttl": 100, "renamed_from": "before"}),
    (None, {"follows": "another"}),
]
OWN: list[dict[str, Any]] = [
    {},
    {"args": ["a", 1]},
    {"kwargs": {"kind": "daily"}},
    {"meta": {"team": "data"}},
    {"args": [1], "kwargs": {"deep": {"er": [1, 2]}}, "meta": {"n": 1}},
    {},
]


def all_of(schedule: Schedule) -> dict[str, Any]:
    found = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
    found["declared"] = str(found["declared"]).rpartition(":")[0]
    return {**found, "kind": schedule.kind, "rev": schedule.rev, "timing_rev": schedule.timing_rev}


@pytest.mark.parametrize(("expression", "shared"), ALIKE)
def test_each_is_what_it_would_be_alone(expression: str | None, shared: Mapping[str, Any]) -> None:
    together = Registry()
    for n, own in enumerate(OWN):
        given: Any = {"id": f"s{n}", **shared, **own}
        alone = all_of(Registry().register(work, expression, **given))
        assert all_of(together.register(work, expression, **given)) == alone
        assert all_of(together.get(f"s{n}")) == alone  # what comes later changes nothing in it


def test_one_without_an_id_or_a_description_of_its_own_has_those_of_its_function() -> None:
    registry = Registry()
    assert registry.register(work, "@hourly").id == "work"
    assert registry.register(done, "@hourly").func.endswith(".done")
    assert [each.id for each in registry] == ["work", "done"]


WRONG: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"id": "a b"}),
    ({}, {"id": 7}),
    ({}, {"args": "text"}),
    ({}, {"args": [lambda: 0]}),
    ({}, {"kwargs": {7: 1}}),
    ({}, {"meta": {"beat": 1}}),
    ({"serializer": "json"}, {"kwargs": {"pair": (1, 2)}}),
    ({"renamed_from": "second"}, {"id": "second"}),
    ({"requires": "second"}, {"id": "second"}),
    ({"monitor": "sentry"}, {"id": "x" * 90}),
]


def said(error: DeclarationError) -> str:
    return str(error).partition(": ")[2]  # without the line


@pytest.mark.parametrize(("shared", "own"), WRONG)
def test_what_is_its_own_is_refused_as_it_would_be_alone(shared: dict[str, Any], own: dict[str, Any]) -> None:
    given: Any = {"id": "second", **shared, **own}
    with pytest.raises(DeclarationError) as alone:
        Registry().register(work, "@hourly", **given)
    registry = Registry()
    registry.register(work, "@hourly", **{"id": "first", **shared})
    with pytest.raises(type(alone.value)) as refused:
        registry.register(work, "@hourly", **given)
    assert said(refused.value) == said(alone.value)
    assert [each.id for each in registry] == ["first"]


def test_arguments_must_fit_whatever_fitted_the_first() -> None:
    registry = Registry()
    registry.register(only, "@hourly", id="first", args=["daily"])
    with pytest.raises(BeatError, match="do not fit"):
        registry.register(only, "@hourly", id="second")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"max_runs": 1}, {"max_runs": True}),
        ({"at_front": True}, {"at_front": 1}),
        ({"max_runs": 5}, {"max_runs": 5.0}),
        ({"retry": 1}, {"retry": True}),
    ],
)
def test_what_is_equal_and_of_another_type_is_not_alike(first: Any, second: Any) -> None:
    registry = Registry()
    registry.register(work, "@hourly", id="first", **first)
    with pytest.raises(DeclarationError):
        registry.register(work, "@hourly", id="second", **second)


def test_two_instants_of_a_repeated_hour_are_two() -> None:
    registry = Registry()
    starts = [datetime(2026, 11, 1, 1, 30, tzinfo=ZoneInfo("America/New_York"), fold=fold) for fold in (0, 1)]
    assert starts[0] == starts[1]
    found = [registry.register(work, every="1h", id=f"s{n}", start=start).start for n, start in enumerate(starts)]
    assert found == [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6)]


def test_an_expression_with_h_is_another_for_another_id() -> None:
    registry = Registry()
    found = [registry.register(work, "H H * * *", id=f"s{n}") for n in range(20)]
    assert len({str(each.timing.after(START)) for each in found}) > 10
    assert len({each.rev for each in found}) == len({each.kind for each in found}) == 20


def test_the_second_of_a_kind_costs_less_than_half_of_the_first() -> None:
    registry, calls = Registry(), [0]

    def called(_frame: object, event: str, _: object) -> None:
        calls[0] += event == "call"

    def cost(id_: str) -> int:
        calls[0] = 0
        sys.setprofile(called)
        try:
            registry.register(work, "0 9 * * *", id=id_, queue="reports", job_timeout="5m", max_runs=9, jitter="30s")
        finally:
            sys.setprofile(None)
        return calls[0]

    Registry().register(work, "0 9 * * *", job_timeout="5m", jitter="30s")  # what is remembered of words and functions
    first = cost("first")
    assert cost("second") < first / 2


def test_more_kinds_than_are_remembered_are_still_what_they_would_be_alone() -> None:
    registry = Registry()
    for turn in range(2):
        for n in range(1100):
            registry.register(work, every=n + 1, id=f"s{n}-{turn}")
    assert {str(registry.get(f"s{n}-1").timing) for n in range(1100)} == {str(Every(n + 1)) for n in range(1100)}
    assert len(registry) == 2200
