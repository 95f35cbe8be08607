"""`H` in an expression: what an id chooses, how evenly, for how long, and who needs to know the id."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.client import schedule_info
from beat.config.sources import Defaults
from beat.errors import BadCron, BadOption
from beat.policies.lint import lint
from beat.schedule import serialize
from beat.schedule.registry import Registry
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.cron.fields import COMMON_DAY, DAY, SIX, Field

if TYPE_CHECKING:
    from collections.abc import Callable

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
HOUR, DAY_LONG = timedelta(hours=1), timedelta(days=1)
MANY = [f"job-{number}" for number in range(1000)]


def normalised(expression: str, seed: str = "report", *, seconds: bool = False) -> str:
    return Cron(expression, seconds=seconds, seed=seed).normalised


# --- what is chosen --------------------------------------------------------------------------------------------------

CHOSEN = [
    # pinned for ever: another choice would move the ticks of everybody who upgrades
    ("H H * * *", "16 21 * * *"),
    ("H/15 * * * *", "1-59/15 * * * *"),
    ("H(0-29) * * * *", "16 * * * *"),
    ("H(0-29)/10 * * * *", "6-29/10 * * * *"),
    ("H H H H H", "16 21 27 2 5"),
    ("H/60 H/24 H/28 H/12 H/7", "16 21 27 2 5"),
    ("45,H 9 * * *", "16,45 9 * * *"),
    ("H(0-9),H(30-39)/5,59 * * * *", "6,31-39/5,59 * * * *"),
    ("H(0-29),H(30-59) * * * *", "16,46 * * * *"),
    ("0 9 * * H(mon-fri)", "0 9 * * 1"),
    ("0 9 * * H(1-7)/2", "0 9 * * 0,1,3,5"),
    ("H(5-5) 9 * * THU", "5 9 * * 4"),
]


@pytest.mark.parametrize(("expression", "chosen"), CHOSEN)
def test_the_id_chooses_and_the_choice_is_for_ever(expression: str, chosen: str) -> None:
    cron = Cron(expression, seed="report")
    assert (cron.normalised, cron.expression, str(cron)) == (chosen, expression, expression)
    assert cron == Cron(chosen)
    assert cron.describe() == Cron(chosen).describe()


def test_seconds_have_their_hash() -> None:
    assert re.fullmatch(r"\d+ 0 9 \* \* \*", normalised("H 0 9 * * *", seconds=True))


def test_another_id_chooses_another_time() -> None:
    assert len({normalised("H H * * *", seed) for seed in MANY}) > 700
    assert Cron("H H * * *", seed="a") != Cron("H H * * *", seed="b")


def test_other_process_other_hash_seed_same_choice() -> None:
    code = "from beat import Cron; print([Cron('H H(3-9) H H H', seed=f'job-{n}').normalised for n in range(50)])"
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert said == {f"{[normalised('H H(3-9) H H H', seed) for seed in MANY[:50]]}\n".encode()}


@pytest.mark.parametrize(
    ("read", "number", "bound"),
    [  # 999 of 1,000 fair draws stay below the bound
        (lambda cron: cron.chosen.minutes[0], 60, 98.3),
        (lambda cron: cron.chosen.hours[0], 24, 49.7),
        (lambda cron: cron.chosen.days[0], 28, 55.5),
        (lambda cron: cron.chosen.hours[0] // 6 * 6 + cron.chosen.minutes[0] // 10, 24, 49.7),
    ],
    ids=["minutes", "hours", "days", "minutes by hours"],
)
def test_a_thousand_ids_spread_evenly(read: Callable[[Cron], int], number: int, bound: float) -> None:
    found = Counter(read(Cron("H H H * *", seed=seed)) for seed in MANY)
    expected = len(MANY) / number
    assert len(found) == number
    assert sum((count - expected) ** 2 / expected for count in found.values()) < bound


seeds = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="_-"), min_size=1, max_size=100)


@st.composite
def hashes(draw: st.DrawFn, column: Field) -> tuple[str, int, int, int | None]:
    """An H of a field: how it is written, its range and its step."""
    low, high = sorted(draw(st.tuples(*[st.integers(column.low, column.high)] * 2)))
    text = f"H({low}-{high})"
    if draw(st.booleans()):
        text, low, high = "H", column.low, column.high
    if high == low or draw(st.booleans()):
        return text, low, high, None
    step = draw(st.integers(2, high - low + 1))
    return f"{text}/{step}", low, high, step


@given(st.data(), seeds)
def test_what_is_chosen_lies_in_its_range_and_comes_as_often_as_it_should(data: st.DataObject, seed: str) -> None:
    number = data.draw(st.integers(0, 5))
    written, low, high, step = data.draw(hashes(COMMON_DAY if SIX[number] is DAY else SIX[number]))
    fields = ["0", "0", "0", "*", "*", "*"]
    fields[number] = written
    cron = Cron(" ".join(fields), seconds=True, seed=seed)
    values = cron.chosen[number]
    assert isinstance(values, tuple)
    if step is None:
        assert len(values) == 1
        assert low <= values[0] <= high
    else:
        assert low <= values[0] < low + step
        assert values == tuple(range(values[0], high + 1, step))
    assert Cron(cron.normalised, seconds=True) == cron, "an ordinary expression"


@given(st.sampled_from([step for step in range(2, 61) if 60 % step == 0]), seeds)
def test_an_even_step_fires_equally_often_in_every_hour_whatever_the_id(step: int, seed: str) -> None:
    cron = Cron(f"H/{step} * * * *", seed=seed)
    assert cron.count(NINE, NINE + HOUR) == 60 // step
    assert cron.count(NINE, NINE + DAY_LONG) == 24 * 60 // step


@given(st.sampled_from(["H H * * *", "H(0-29) H(1-5) * * *", "H H/24 * * *"]), seeds)
def test_once_a_day_is_once_a_day(expression: str, seed: str) -> None:
    assert Cron(expression, seed=seed).count(NINE, NINE + 28 * DAY_LONG) == 28


@given(seeds)
def test_once_a_month_is_in_every_month(seed: str) -> None:
    ticks = Cron("H H H * *", seed=seed).ticks(datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
    assert [tick.month for tick in ticks] == list(range(1, 13))


@given(st.text(st.sampled_from("HHHh()/-,0125 * THUmon"), max_size=24))
def test_any_text_is_accepted_or_refused_and_nothing_else(text: str) -> None:
    for expression in (text, f"{text.replace(' ', '')} * * * *"):
        try:
            cron = Cron(expression, seed="report")
        except BadCron:
            continue
        assert Cron(cron.normalised) == cron


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED = [
    # expression, words of the message, what the carets stand under
    ("H(29-0) * * * *", ["minute range 'H(29-0)' runs backwards", "'H(0-29)'"], "H(29-0)"),
    ("0 0 * * H(sat-sun)", ["runs backwards", "'H(6-7)'"], "H(sat-sun)"),
    ("0 0 * * H(7-2)", ["runs backwards", "'H(0-2)'"], "H(7-2)"),
    ("H(0-99) * * * *", ["minute 99 is out of range 0-59"], "99"),
    ("0 H(0-24) * * *", ["hour 24 is out of range 0-23", "after 23 is 0"], "24"),
    ("0 0 H(1-31) * *", ["day-of-month 31 is out of range 1-28 (the days that every month has)", "1 to 28"], "31"),
    ("0 0 H/29 * *", ["day-of-month step 29 is larger than its range 1-28"], "H/29"),
    ("H(mon-fri) * * * *", ["minute 'mon' is not a number"], "mon"),
    ("H/0 * * * *", ["minute step '0' is not a number", "'H/5'"], "0"),
    ("H/ * * * *", ["minute step ''", "'H/5'"], "/"),
    ("H/x * * * *", ["minute step 'x'"], "x"),
    ("H/99 * * * *", ["minute step 99 is larger than its range 0-59", "'H'"], "H/99"),
    ("H(0-9)/11 * * * *", ["minute step 11 is larger than its range 0-9", "'H(0-9)'"], "H(0-9)/11"),
    ("H/1 * * * *", ["does not say whether one minute or every one is meant", "'H' or '*'"], "H/1"),
    ("H(0-9)/1 * * * *", ["does not say", "'H(0-9)' or '0-9'"], "H(0-9)/1"),
    ("H() * * * *", ["minute 'H()': H stands alone or with a range in brackets, a step or both", "'H/2'"], "H()"),
    ("H(5) * * * *", ["minute 'H(5)': H stands alone"], "H(5)"),
    ("H(0-29 * * * *", ["minute 'H(0-29': H stands alone"], "H(0-29"),
    ("H0-29) * * * *", ["minute 'H0-29)': H stands alone"], "H0-29)"),
    ("H(0,29) * * * *", ["minute 'H(0': H stands alone"], "H(0"),
    ("H-5 * * * *", ["minute 'H': H stands alone"], "H"),
    ("5-H * * * *", ["minute 'H': H stands alone"], "H"),
    ("5H * * * *", ["minute '5H': H stands alone"], "5H"),
    ("*/H * * * *", ["minute step 'H' is not a number"], "H"),
    ("h * * * *", ["minute 'h': H is a capital letter", "'H'"], "h"),
    ("0 h(0-5) * * *", ["hour 'h(0-5)': H is a capital letter"], "h(0-5)"),
    ("HH * * * *", ["minute 'HH' is not a number"], "HH"),
    ("0 0 * * Hmon", ["day-of-week 'Hmon' is not a number", "Did you mean 'mon'?"], "Hmon"),
    ("0 0 * H-jan *", ["month 'H': H stands alone"], "H"),
    ("@H", ["H is for fields", "'H * * * *'"], "@H"),
    ("H 60 * * *", ["hour 60 is out of range"], "60"),
    ("H * * *", ["4 fields"], None),
    ("H H 30 2 *", ["never fires", "no month 2 has a day 30"], "30 2"),
]


@pytest.mark.parametrize("seed", [None, "report"])
@pytest.mark.parametrize(("expression", "words", "pointed"), REFUSED, ids=[repr(row[0]) for row in REFUSED])
def test_a_wrong_hash_is_refused_with_a_caret_and_a_way_out_whatever_the_id(
    expression: str, words: list[str], pointed: str | None, seed: str | None
) -> None:
    with pytest.raises(BadCron) as caught:
        Cron(expression, seed=seed)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    if pointed is not None:
        _, shown, carets, *_ = message.split("\n")
        assert "".join(s for s, c in zip(shown, carets.ljust(len(shown)), strict=True) if c == "^") == pointed


def test_whatever_a_refusal_suggests_is_accepted() -> None:
    bad = ["H()", "h", "H-3", "H(3-2)", "H/0", "H/99", "H(2-3)/3", "H/1", "H(2-3)/1", "3-H", "H(7-2)", "H(6-0)"]
    for column in range(5):
        for item in bad:
            fields = ["0", "0", "*", "*", "*"]
            fields[column] = item
            with pytest.raises(BadCron) as caught:
                Cron(" ".join(fields))
            for suggested in re.findall(r"'([^']+)'", caught.value.hint):
                fields[column] = suggested
                assert isinstance(Cron(" ".join(fields)), Cron), f"{item} → {caught.value.hint}"


def test_what_only_some_ids_make_impossible_is_refused_for_those_with_what_they_chose() -> None:
    refused = {}
    for seed in MANY[:100]:
        try:
            Cron("0 0 31 H *", seed=seed)
        except BadCron as e:
            refused[seed] = str(e)
    assert 20 < len(refused) < 60  # five months of twelve
    seed, message = refused.popitem()
    month = normalised("0 0 1 H *", seed).split()[3]
    assert f"no month H has a day 31 (for the id {seed!r} it is '0 0 31 {month} *')" in message


@pytest.mark.parametrize("seed", [5, b"report", ["report"], True])
def test_a_seed_is_text(seed: Any) -> None:
    with pytest.raises(BadOption, match="seed must be text, the id of a schedule"):
        Cron("H * * * *", seed=seed)


# --- without an id ---------------------------------------------------------------------------------------------------

QUESTIONS: dict[str, Callable[[Cron], Any]] = {
    "after": lambda cron: cron.after(NINE),
    "before": lambda cron: cron.before(NINE),
    "count": lambda cron: cron.count(NINE, NINE + HOUR),
    "ticks": lambda cron: next(cron.ticks(NINE)),
    "shifts": lambda cron: list(cron.shifts(NINE, NINE + HOUR)),
    "note": lambda cron: cron.note(NINE, NINE + HOUR),
    "meaning": lambda cron: cron.meaning,
    "describe": lambda cron: cron.describe(),
    "normalised": lambda cron: cron.normalised,
    "chosen": lambda cron: cron.chosen,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_nobody_can_say_when_without_an_id(question: str) -> None:
    with pytest.raises(BadCron) as caught:
        QUESTIONS[question](Cron("0 H * * thu"))
    assert str(caught.value) == (
        "cron '0 H * * thu': H needs a schedule's id: it has one in @periodic or in a Schedule\n"
        "    0 H * * thu\n"
        "      ^\n"
        "Alone, write Cron('0 H * * thu', seed='daily-report')."
    )


def test_without_an_id_it_is_still_a_value() -> None:
    cron = Cron("H H * * *", "Europe/Paris")
    assert cron == Cron("H H * * *", "Europe/Paris")
    assert hash(cron) == hash(Cron("H H * * *", "Europe/Paris"))
    assert cron not in (Cron("H H * * *"), Cron("H * * * *", "Europe/Paris"), Cron("16 21 * * *", "Europe/Paris"))
    assert (str(cron), repr(cron)) == ("H H * * *", "Cron('H H * * *', tz='Europe/Paris')")
    assert not hasattr(cron, "nonsense")


@pytest.mark.parametrize("cron", [Cron("H H * * *"), Cron("H H H * * *", "Asia/Tokyo", seconds=True, seed="report")])
def test_it_survives_copies_and_other_processes(cron: Cron) -> None:
    for twin in (copy.deepcopy(cron), pickle.loads(pickle.dumps(cron)), eval(repr(cron))):  # noqa: S301, S307 (our own)
        assert (twin, repr(twin), twin.seed) == (cron, repr(cron), cron.seed)


def test_an_ordinary_expression_does_not_care_about_ids() -> None:
    cron = Cron("0 9 * * THU", seed="report")
    assert (cron, cron.seed, repr(cron)) == (Cron("0 9 * * THU"), None, "Cron('0 9 * * THU', tz='UTC')")
    assert cron.seeded("other") is cron


# --- schedules -------------------------------------------------------------------------------------------------------


def schedule(name: str = "report", expression: str = "H H * * *", **given: Any) -> Schedule:
    return Schedule(id=name, func="app.tasks.report", timing=Cron(expression, **given))


def test_a_schedule_gives_its_id_and_keeps_what_was_written() -> None:
    made, plain = schedule(), schedule(expression="16 21 * * *")
    assert made.after(NINE) == datetime(2026, 11, 16, 21, 16, tzinfo=UTC)
    assert made.describe() == "at 21:16, every day, UTC"
    assert made.timing_rev == plain.timing_rev, "its ticks are what it chose"
    assert (made.definition()["timing"], made.definition()["meaning"]) == ("H H * * *", plain.timing.meaning)
    assert made.rev != plain.rev


def test_schedules_that_share_an_expression_differ_in_their_ticks() -> None:
    nightly = Cron("H H(0-5) * * *")
    one, other = (Schedule(id=name, func="app.tasks.report", timing=nightly) for name in ("one", "other"))
    assert one.timing_rev != other.timing_rev
    assert one.after(NINE) != other.after(NINE)


def test_another_id_chooses_anew() -> None:
    assert replace(schedule("a"), id="report").timing_rev == schedule().timing_rev
    assert pickle.loads(pickle.dumps(schedule())).timing_rev == schedule().timing_rev  # noqa: S301 (our own)


def test_the_decorator_and_presets_know_hashes() -> None:
    registry = Registry(lambda: Defaults(presets={"nightly": "H H(0-5) * * *"}))
    registry.periodic("H/15 * * * *", id="report")(test_seconds_have_their_hash)
    registry.periodic("nightly", tz="Asia/Tokyo")(test_another_id_chooses_anew)
    by_hash, by_preset = registry
    assert by_hash.describe() == "every 15 minutes from :01 to :46 of every hour, UTC"
    assert by_preset.timing == Cron("H H(0-5) * * *", "Asia/Tokyo", seed="test_another_id_chooses_anew")


def test_the_definition_is_readable_and_read_with_its_id() -> None:
    made = schedule(tz="Europe/Paris")
    text = serialize.write(made)
    assert json.loads(text)["cron"] == "H H * * *"
    back = serialize.read(text)
    assert (str(back.timing), back.timing_rev) == ("H H * * *", made.timing_rev)


@given(seeds, st.sampled_from(["H H * * *", "H/15 9-17 * * H(mon-fri)", "0 H H(1-9),15 * *"]))
def test_the_rule_of_the_ledger_has_the_same_ticks_without_the_id(seed: str, expression: str) -> None:
    made = schedule(seed, expression)
    rule = json.loads(serialize.ticks(made))
    assert rule == {"cron": made.timing.normalised, "tz": "UTC"}  # type: ignore[union-attr]
    assert serialize.ticking(rule).timing_rev == made.timing_rev
    assert serialize.ticking(json.loads(serialize.write(made))).timing_rev == made.timing_rev


def test_a_hash_without_a_rule_has_the_ticks_of_its_definition() -> None:
    found = schedule_info.read("report", {b"definition": serialize.write(schedule()).encode()})
    assert found.schedule is not None
    assert found.schedule.timing_rev == schedule().timing_rev


def test_lint_tells_of_the_times_that_were_chosen() -> None:
    early = next(seed for seed in MANY if normalised("H H * * *", seed) == normalised("H 2 * * *", seed))
    (found,) = lint([schedule(early, tz="Europe/Paris")], datetime(2026, 1, 15, tzinfo=UTC))
    minute = int(normalised("H 2 * * *", early).split()[0])
    assert found.message.startswith(f"02:{minute:02} does not exist in Europe/Paris on 2026-03-29")
