"""What schedules say about each other is checked when all of them are known."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from beat import Group, Registry, Requires
from beat.errors import BadOption, DeclarationError
from beat.schedule import cross_checks, registry
from beat.schedule.follows import Follows
from beat.schedule.groups import Groups
from beat.schedule.schedule import Schedule
from beat.scheduler import Scheduler
from beat.testing import ManualBeat
from beat.timing.interval import Every
from tests.support.declared import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
numbers = itertools.count()
REPORTS = {"reports": Group("reports", 2)}


def schedule(name: str, *, follows: str | None = None, **given: Any) -> Schedule:
    timing = Follows(follows) if follows else Every("1h")
    return Schedule(id=name, func="app.f", timing=timing, **given)


def wrong(*schedules: Schedule, groups: dict[str, Group] | None = None, whole: bool = True) -> list[str]:
    return [error.message for error in cross_checks.check(schedules, groups or {}, whole=whole)]


def test_what_fits_together_is_not_spoken_of() -> None:
    extract, load = schedule("extract"), schedule("load", follows="extract", group="reports")
    report = schedule("report", requires=["extract", "load"], group="reports")
    assert wrong(report, load, extract, groups=REPORTS) == []


@pytest.mark.parametrize(
    ("given", "word"), [({"follows": "extrct"}, "follows"), ({"requires": "extrct"}, "requires")], ids=str
)
def test_an_id_that_nobody_declares_is_named_with_the_nearest(given: dict[str, Any], word: str) -> None:
    said = f"schedule 'load' {word} 'extrct', and there is no such schedule. Did you mean 'extract'?"
    assert wrong(schedule("extract"), schedule("load", **given)) == [said]
    assert wrong(schedule("extract"), schedule("load", **given), whole=False) == []


@pytest.mark.parametrize(
    ("schedules", "said"),
    [
        ([schedule("a", requires="b"), schedule("b", follows="a")], "a requires b, b follows a"),
        ([schedule("b", follows="a"), schedule("a", requires="b")], "b follows a, a requires b"),
        ([schedule("a", follows="b"), schedule("b", follows="c"), schedule("c", follows="a")],
         "a follows b, b follows c, c follows a"),
        ([schedule("x", requires="a"), schedule("a", requires=["y", "b"]), schedule("y"), schedule("b", requires="a")],
         "a requires b, b requires a"),
    ],
)  # fmt: skip
def test_a_circle_is_named_in_its_order(schedules: list[Schedule], said: str) -> None:
    assert wrong(*schedules) == [f"{said}: each waits for the other, and none would ever run: leave one of these out"]


def test_two_ways_to_the_same_are_no_circle() -> None:
    diamond = [schedule("d", requires=["b", "c"]), schedule("b", requires="a"), schedule("c", follows="a")]
    assert wrong(*diamond, schedule("a")) == []


def test_each_circle_is_told() -> None:
    pairs = [schedule(f"{n}{side}", follows=f"{n}{other}") for n in range(5) for side, other in ("ab", "ba")]
    assert len(wrong(*pairs)) == 5


def test_a_long_chain_is_no_trouble() -> None:
    chain = [schedule("s0"), *(schedule(f"s{n}", follows=f"s{n - 1}") for n in range(1, 5000))]
    assert wrong(*chain) == []
    assert wrong(*reversed(chain)) == []


def test_a_group_needs_a_limit() -> None:
    [said] = wrong(schedule("a", group="report"), groups=REPORTS)
    assert said == (
        "schedule 'a' is of the group 'report', which has no limit: write beat.group('report', max_running=5), "
        "or report = 5 under [tool.beat.groups]. Did you mean 'reports'?"
    )


@pytest.mark.parametrize(("queues", "fits"), [(["a", "b"], True), (["a", "b", "c"], False)])
def test_a_group_has_room_for_a_broadcast(queues: list[str], *, fits: bool) -> None:
    found = wrong(schedule("a", group="reports", queues=queues, route="broadcast"), groups=REPORTS)
    assert (found == []) == fits
    assert wrong(schedule("a", group="reports", queues=queues, route="first"), groups=REPORTS) == []
    if not fits:
        assert found[0].startswith("schedule 'a' sends every tick to 3 queues, and its group 'reports' has room for 2")


# --- where it is asked -----------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module, whose declarations are forgotten after the test."""
    monkeypatch.setattr(registry.default_registry, "_schedules", {})
    monkeypatch.setattr(registry.default_registry, "_groups", Groups(registry.default_registry._refusals))  # noqa: SLF001 (the one of the process)
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"relations_{next(numbers)}"
        (tmp_path / f"{name}.py").write_text(f"from beat import group, periodic\n{text}\n")
        return name

    return write


WRONG = """
@periodic('@daily')
def extract(): ...
@periodic(follows='extrct', group='reports')
def load(): ..."""


def test_loading_raises_the_first_problem_with_its_place(module: Callable[[str], str]) -> None:
    name = module(WRONG)
    said = rf"{name}\.py:5: schedule 'load' follows 'extrct', and there is no such schedule\. Did you mean 'extract'\?"
    with pytest.raises(BadOption, match=said):
        Registry().load(name)


def test_loading_can_collect_all_of_them(module: Callable[[str], str]) -> None:
    name, mine = module(WRONG), Registry()
    with mine.collecting() as problems:
        mine.load(name)
    assert [problem.message.split(",")[0] for problem in problems] == [
        "schedule 'load' follows 'extrct'",
        "schedule 'load' is of the group 'reports'",
    ]
    assert {problem.where for problem in problems} == {f"{problems[0].where}"}
    assert f"{name}.py:5" in str(problems[0].where)


def test_what_was_refused_is_not_missed_as_well(module: Callable[[str], str]) -> None:
    name = module(WRONG.replace("@daily", "@dialy").replace("extrct", "extract"))
    with registry.default_registry.collecting() as problems:
        registry.default_registry.load(name)
    assert [problem.message.split(" ")[0] for problem in problems] == ["cron", "schedule"]
    assert "is of the group" in problems[1].message


def test_groups_come_with_their_modules(module: Callable[[str], str]) -> None:
    name = module("group('reports', max_running=3)\n@periodic('@daily', group='reports')\ndef report(): ...")
    mine = Registry()
    mine.load(name)
    assert mine.groups == {"reports": Group("reports", 3)}


def test_groups_of_two_registries_must_agree(module: Callable[[str], str]) -> None:
    name, mine = module("group('reports', max_running=3)"), Registry()
    mine.group("reports", max_running=4)
    with pytest.raises(
        BadOption, match=rf"{name}\.py:2: group 'reports' is declared twice, first at .*test_cross_checks"
    ):
        mine.load(name)


def registry_of(**given: Any) -> Registry:
    found = Registry()
    found.register(plain, "@daily", **given)
    return found


@pytest.mark.parametrize("make", [Scheduler, lambda found: ManualBeat(MONDAY, registry=found)], ids=["beat", "by-hand"])
def test_no_beat_begins_with_what_cannot_be(make: Any) -> None:
    with pytest.raises(DeclarationError, match="schedule 'plain' requires 'extract', and there is no such schedule"):
        make(registry_of(requires=Requires("extract")))


def test_the_settings_of_a_beat_give_a_group_its_limit() -> None:
    found = registry_of(group="reports")
    with pytest.raises(DeclarationError, match="'plain' is of the group 'reports', which has no limit"):
        Scheduler(found)
    Scheduler(found, groups={"reports": 5})
    found.group("reports", max_running=3)
    assert cross_checks.agreed(found, {"reports": "skip 2 1000"}) == [Group("reports", 2, "skip")]
