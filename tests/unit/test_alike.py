"""Schedules that are alike but for their ids and arguments: the others are what they would be alone, for less."""

from __future__ import annotations

import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from beat import declaring
from beat.errors import BeatError, DeclarationError
from beat.every import Every
from beat.registry import Registry
from beat.schedule import Schedule, another

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.place import Place

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
    ("@hourly", {"exclude": "2026-12-25", "group": "reports", "enabled": False, "description": "of its own"}),
    ("@hourly", {"slow_queue": "slow", "slow_after": "1m", "monitor": "sentry:reports"}),
    ("@hourly", {"requires": "another", "priority": "high", "at_front": True, "serializer": "json"}),
    ("@hourly", {"on_success": done, "on_failure": "app.hooks.failed", "ttl": 100}),
    (None, {"follows": "another"}),
]
COMPARED_BY_NOBODY: list[tuple[str | None, dict[str, Any]]] = [
    ("@hourly", {"queues": ["a", "b"], "route": "hash", "slow_queue": "slow"}),
    ("@hourly", {"exclude": ["2026-12-25"], "requires": ["another"]}),
    (None, {"every": "1h", "start": START.astimezone(ZoneInfo("Europe/Paris"))}),
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


@pytest.fixture
def likenesses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of those that were made like another."""
    made: list[str] = []

    def noted(like: Schedule, declared: Place, **own: Any) -> Schedule:
        made.append(own["id"])
        return another(like, declared, **own)

    monkeypatch.setattr(declaring, "another", noted)
    return made


@pytest.mark.parametrize(("expression", "shared"), [*ALIKE, *COMPARED_BY_NOBODY])
def test_each_is_what_it_would_be_alone(
    expression: str | None, shared: Mapping[str, Any], likenesses: list[str]
) -> None:
    together = Registry()
    for n, own in enumerate(OWN):
        given: Any = {"id": f"s{n}", **shared, **own}
        alone = all_of(Registry().register(work, expression, **given))
        assert all_of(together.register(work, expression, **given)) == alone
        assert all_of(together.get(f"s{n}")) == alone  # what comes later changes nothing in it
    compared = (expression, shared) in ALIKE
    assert likenesses == ([f"s{n}" for n in range(1, len(OWN))] if compared else [])


def test_one_without_an_id_of_its_own_has_that_of_its_function(likenesses: list[str]) -> None:
    registry = Registry()
    registry.register(work, "@hourly", id="first")
    assert registry.register(work, "@hourly").id == "work"
    assert likenesses == ["work"]
    assert registry.register(done, "@hourly").id == "done"


WRONG: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
    ("@hourly", {}, {"id": "a b"}),
    ("@hourly", {}, {"id": 7}),
    ("@hourly", {}, {"args": "text"}),
    ("@hourly", {}, {"args": None}),
    ("@hourly", {}, {"args": [lambda: 0]}),
    ("@hourly", {}, {"kwargs": {7: 1}}),
    ("@hourly", {}, {"meta": {"beat": 1}}),
    ("@hourly", {"serializer": "json"}, {"kwargs": {"pair": (1, 2)}}),
    ("@hourly", {"requires": "second"}, {"id": "second"}),
    ("@hourly", {"monitor": "sentry"}, {"id": "x" * 90}),
    (None, {"follows": "second"}, {"id": "second"}),
]


def said(error: DeclarationError) -> str:
    return str(error).partition(": ")[2]  # without the line


@pytest.mark.parametrize(("expression", "shared", "own"), WRONG)
def test_what_is_its_own_is_refused_as_it_would_be_alone(
    expression: str | None, shared: dict[str, Any], own: dict[str, Any], likenesses: list[str]
) -> None:
    given: Any = {"id": "second", **shared, **own}
    with pytest.raises(DeclarationError) as alone:
        Registry().register(work, expression, **given)
    registry = Registry()
    registry.register(work, expression, **{"id": "first", **shared})
    with pytest.raises(type(alone.value)) as refused:
        registry.register(work, expression, **given)
    assert said(refused.value) == said(alone.value)
    assert [each.id for each in registry] == ["first"]
    assert likenesses == [given["id"]]


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
    lengths: Any = {
        "job_timeout": "5m",
        "result_ttl": "1h",
        "failure_ttl": "1d",
        "jitter": "30s",
        "misfire_after": "9s",
    }

    def called(_frame: object, event: str, _: object) -> None:
        calls[0] += event == "call"

    def cost(id_: str) -> int:
        calls[0] = 0
        sys.setprofile(called)
        try:
            registry.register(work, "0 9 * * *", id=id_, queue="reports", max_runs=9, retry=3, **lengths)
        finally:
            sys.setprofile(None)
        return calls[0]

    Registry().register(work, "0 9 * * *", **lengths)  # words and functions are remembered, too
    first = cost("first")
    assert cost("second") < first / 2


def test_no_more_kinds_are_remembered_than_a_program_has(likenesses: list[str]) -> None:
    registry = Registry()
    for n in range(1100):
        for twin in "ab":
            registry.register(work, every=n + 1, id=f"s{n}{twin}")
    assert [str(registry.get(f"s{n}b").timing) for n in range(1100)] == [str(Every(n + 1)) for n in range(1100)]
    assert len(likenesses) == 1100
    registry.register(work, every=1, id="again")  # it was forgotten long since
    assert len(likenesses) == 1100
