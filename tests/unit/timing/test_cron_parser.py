from __future__ import annotations

import itertools
import pickle
import re
import string
import time
from datetime import UTC, datetime

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from beat.errors import BadCron, BadOption
from beat.timing.cron import Cron, parser
from beat.timing.cron.fields import FIVE

REFUSED = [
    # expression, words of the message, what the carets stand under
    ("", ["0 fields", "needs five (six with seconds=True)", "0 9 * * mon-fri"], None),
    ("   ", ["0 fields"], None),
    ("*", ["1 field,"], None),
    ("* * * *", ["4 fields", "minute hour day-of-month month day-of-week"], None),
    ("* * * * * *", ["6 fields", "say seconds=True"], None),
    ("1 2 3 4 5 6 7", ["7 fields"], None),
    ("60 * * * *", ["minute 60", "0-59", "after 59 is 0"], "60"),
    ("0 24 * * *", ["hour 24", "0-23", "after 23 is 0"], "24"),
    ("0 0 0 * *", ["day-of-month 0", "1-31"], "0"),
    ("0 0 32 * *", ["day-of-month 32", "1-31"], "32"),
    ("0 0 * 0 *", ["month 0", "1-12"], "0"),
    ("0 0 * 13 *", ["month 13", "1-12"], "13"),
    ("* * * * 8", ["day-of-week 8", "0-7", "Sunday"], "8"),
    ("0-60 * * * *", ["minute 60"], "60"),
    ("0 9,24 * * *", ["hour 24"], "24"),
    ("* * * * MON-FOO", ["day-of-week 'FOO'", "sun mon tue wed thu fri sat"], "FOO"),
    ("0 0 * * monday", ["day-of-week 'monday'", "Did you mean 'mon'?"], "monday"),
    ("0 0 * januar *", ["month 'januar'", "Did you mean 'jan'?"], "januar"),
    ("0 0 * * tus", ["day-of-week 'tus'", "Did you mean"], "tus"),
    ("mon * * * *", ["minute 'mon'"], "mon"),
    ("5-1 * * * *", ["'5-1' runs backwards", "'1-5'", "'5-59,0-1'"], "5-1"),
    ("0 22-6 * * *", ["hour range '22-6' runs backwards", "'22-23,0-6'"], "22-6"),
    ("0 0 * * fri-mon", ["'fri-mon' runs backwards", "'5-6,0-1'"], "fri-mon"),
    ("0 0 * * sat-sun", ["'sat-sun' runs backwards", "'6-7'"], "sat-sun"),
    ("*/61 * * * *", ["step 61 is larger than its range 0-59"], "*/61"),
    ("0 */25 * * *", ["hour step 25 is larger"], "*/25"),
    ("0-10/20 * * * *", ["step 20 is larger than its range 0-10"], "0-10/20"),
    ("0 0 * * 7-1", ["'7-1' runs backwards", "'0-1'"], "7-1"),
    ("0 0 * * 7-0", ["'7-0' runs backwards", "'0'"], "7-0"),
    ("january * * * *", ["minute 'january' is not a number"], "january"),
    ("0 0 * * 5/3", ["'5-7/3'"], "5/3"),
    ("0 0 * * 7/2", ["Write '7'"], "7/2"),
    ("0 0 * * 1/2", ["does not say whether Sunday is meant", "'1-6/2' or '1-7/2'"], "1/2"),
    ("5-5/3 * * * *", ["step 3 is larger"], "5-5/3"),
    ("*/0 * * * *", ["step '0'", "from 1 to 60"], "0"),
    ("*/ * * * *", ["step ''"], "/"),
    ("*/x * * * *", ["step 'x'"], "x"),
    ("*/5/5 * * * *", ["minute '*/5/5'"], "*/5/5"),
    ("1-2-3 * * * *", ["minute '1-2-3'"], "1-2-3"),
    ("*-5 * * * *", ["'*' is the whole range already"], "*-5"),
    ("-5 * * * *", ["minute '-5'"], "-5"),
    ("+5 * * * *", ["minute '+5'"], "+5"),
    ("5- * * * *", ["minute '5-'"], "5-"),
    ("1.5 * * * *", ["minute '1.5'"], "1.5"),
    ("1e1 * * * *", ["minute '1e1'"], "1e1"),
    ("0x5 * * * *", ["minute '0x5'"], "0x5"),
    ("1_0 * * * *", ["minute '1_0'"], "1_0"),
    ("** * * * *", ["minute '**'"], "**"),
    ("1,,2 * * * *", ["a comma needs a value on both sides"], ","),
    ("1, * * * *", ["a comma needs a value on both sides"], " "),
    (",1 * * * *", ["a comma needs a value on both sides"], ","),
    ("99999 * * * *", ["minute 99999 is out of range"], "99999"),
    ("000 * * * *", ["minute 000 is out of range"], "000"),
    ("0 0 30 2 *", ["never fires", "no month 2 has a day 30"], "30 2"),
    ("0 0 31 2,4,6,9,11 *", ["never fires"], "31 2,4,6,9,11"),
    ("0 0 31 feb *", ["never fires", "no month feb has a day 31"], "31 feb"),
    ("R * * * *", ["'R'", "differ from process to process"], "R"),
    ("R(0-5) * * * *", ["'R'"], "R(0-5)"),
    ("0 0 L * *", ["'L'", "28-31"], "L"),
    ("0 0 15W * *", ["'W'"], "15W"),
    ("0 0 ? * *", ["'?'", "'*'"], "?"),
    ("0 0 * * 5#3", ["'#'"], "5#3"),
    ("٣ * * * *", ["ARABIC-INDIC DIGIT THREE"], "٣"),
    ("\uff15 * * * *", ["FULLWIDTH DIGIT FIVE"], "\uff15"),
    ("0\u00a09 * * *", ["NO-BREAK SPACE"], "·"),
    ("0 9 * * mon\u2013fri", ["EN DASH"], "\u2013"),
    ("0\v9 * * *", ["U+000B"], "·"),
    ("0\t24 * * *", ["hour 24"], "24"),
    ("0 9 * * *\n", ["U+000A"], "·"),
    ("0 9 * * *\0", ["U+0000"], "·"),
    ("@dailyy", ["'@dailyy'", "Did you mean '@daily'?"], "@dailyy"),
    ("@hour", ["Did you mean '@hourly'?"], "@hour"),
    ("@", ["'@'", "@hourly"], "@"),
    ("@daily 5", ["@daily stands alone"], " 5"),
    ("@reboot", ["about time, not about starts"], "@reboot"),
    ("@every 5m", ["intervals are not cron", "every='5m'"], "@every"),
    ("@every", ["every='5m'"], "@every"),
]


@pytest.mark.parametrize(("expression", "words", "pointed"), REFUSED, ids=[repr(row[0]) for row in REFUSED])
def test_a_wrong_expression_is_refused_with_a_caret_and_a_way_out(
    expression: str, words: list[str], pointed: str | None
) -> None:
    with pytest.raises(BadCron) as caught:
        Cron(expression)
    message = str(caught.value)
    for word in words:
        assert word in message
    if pointed is None:
        assert "^" not in message
    else:
        _, shown, carets, *_ = message.split("\n")
        assert [s for s, c in zip(shown + " ", carets.ljust(len(shown) + 1), strict=True) if c == "^"] == list(pointed)


@pytest.mark.parametrize("expression", ["0\t9 * * mon", "0 9\t*\t* mon", "\t0 \t9 * *\t\tmon\t"])
def test_tabs_separate_fields_as_spaces_do(expression: str) -> None:
    cron = Cron(expression)
    assert cron == Cron("0 9 * * mon")
    assert cron.normalised == "0 9 * * 1"
    assert "\t" not in cron.expression


def test_a_tab_in_a_refused_expression_is_shown_as_a_space() -> None:
    with pytest.raises(BadCron) as caught:
        Cron("0\t24 * * *")
    assert "\n    0 24 * * *\n      ^^\n" in str(caught.value)


NEVER = [  # the hour that the clock skips, on the very day on which it does
    ("*/5 2 8-14 3 */7", "America/New_York"),
    ("* 1 25-31 3 */7", "Europe/London"),
    ("*/30 2 25-31 3 */7", "Europe/Paris"),
]


@pytest.mark.parametrize(("expression", "tz"), NEVER)
def test_what_the_clock_always_skips_never_fires_and_is_refused_at_once(expression: str, tz: str) -> None:
    started = time.process_time()
    with pytest.raises(BadCron, match=f"never fires: whenever it would, the clock of {tz} skips that hour"):
        Cron(expression, tz)
    assert time.process_time() - started < 5  # it took ten seconds to find out in the year 9990
    assert Cron(expression).after(datetime(2026, 1, 1, tzinfo=UTC)).month == 3  # in UTC no hour is skipped


def test_the_same_hour_on_another_day_is_fine() -> None:
    first_sunday = Cron("*/5 2 1-7 3 */7", "America/New_York")
    assert first_sunday.after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 3, 1, 7, tzinfo=UTC)


def _refusals() -> list[tuple[int, str, BadCron]]:
    """Every short item in every field: its column, and why it is refused."""
    values = [*map(str, range(9)), "23", "24", "31", "32", "59", "60", "sun", "fri", "jan", "dec", "*"]
    items = [*values, *(f"{a}-{b}" for a in values for b in values), *(f"{a}/{b}" for a in values for b in values)]
    found = []
    for column, item in itertools.product(range(5), items):
        fields = ["0", "0", "*", "*", "*"]
        fields[column] = item
        try:
            Cron(" ".join(fields))
        except BadCron as e:
            found.append((column, item, e))
    return found


def test_whatever_a_refusal_suggests_is_accepted() -> None:
    refused = _refusals()
    for column, item, error in refused:
        for suggested in re.findall(r"'([^']+)'", error.hint):
            fields = ["0", "0", "*", "*", "*"]
            fields[column] = suggested
            assert isinstance(Cron(" ".join(fields)), Cron), f"{item} → {error.hint}"
    assert len(refused) > 1000


@pytest.mark.parametrize("value", [None, 5, 5.0, True, b"* * * * *", ["*"] * 5, object(), Cron])
def test_what_is_not_text_is_refused(value: object) -> None:
    with pytest.raises(BadCron, match="an expression is text, not"):
        Cron(value)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("expression", ["*" * 1_000_000, "9" * 100_000 + " * * * *", "1," * 500_000 + " * * * *"])
def test_a_megabyte_is_refused_by_its_length_at_once(expression: str) -> None:
    started = time.process_time()
    with pytest.raises(BadCron, match="characters are too many; 256 is the most"):
        Cron(expression)
    assert time.process_time() - started < 0.1


SIX_REFUSED = [
    ("0 9 * * mon-fri", ["5 fields", "needs six with seconds=True", "second minute hour"]),
    ("60 0 9 * * *", ["second 60", "0-59"]),
    ("0 60 9 * * *", ["minute 60"]),
    ("0 0 0 30 2 *", ["never fires"]),
]


@pytest.mark.parametrize(("expression", "words"), SIX_REFUSED)
def test_six_fields_are_refused_in_the_same_way(expression: str, words: list[str]) -> None:
    with pytest.raises(BadCron) as caught:
        Cron(expression, seconds=True)
    for word in words:
        assert word in str(caught.value)


MEANS = [
    # two ways to write one meaning
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "@daily"),
    ("@weekly", "0 0 * * sun"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "@yearly"),
    ("@DAILY", "@daily"),
    ("*/1 * * * *", "* * * * *"),
    ("0 0 * * 7", "0 0 * * 0"),
    ("0 0 * * 5-7", "0 0 * * fri,sat,sun"),
    ("0 0 * * 1-7", "0 0 * * *"),
    ("0 0 * * 0-7", "0 0 * * 0-6"),
    ("0 0 * * 1-7/2", "0 0 * * sun,mon,wed,fri"),
    ("0 0 * JAN,Jul *", "0 0 * 1,7 *"),
    ("5/15 * * * *", "5-59/15 * * * *"),
    ("*/15 * * * *", "0,15,30,45 * * * *"),
    ("00 09 * * *", "0 9 * * *"),
    (" 0  9 * * * ", "0 9 * * *"),
    ("5-5 9 * * *", "5 9 * * *"),
    ("3,1,2,2 9 * * *", "1-3 9 * * *"),
    ("0 0 1-31 * mon", "0 0 1-31 * *"),  # either day: every day
]


@pytest.mark.parametrize(("one", "other"), MEANS)
def test_two_ways_to_write_one_meaning_are_equal(one: str, other: str) -> None:
    assert Cron(one) == Cron(other)
    assert hash(Cron(one)) == hash(Cron(other))


DIFFERS = [
    ("0 9 * * *", "0 10 * * *"),
    ("0-59 0-23 * * *", "* * * * *"),  # a fixed time and the wall clock part ways at DST
    ("5,* 9 * * *", "*,5 9 * * *"),  # only the second begins with a star
    ("0 0 */2 * mon", "0 0 1-31/2 * mon"),  # both days must match, or either
]


@pytest.mark.parametrize(("one", "other"), DIFFERS)
def test_expressions_of_different_meaning_are_not_equal(one: str, other: str) -> None:
    assert Cron(one) != Cron(other)


def test_zone_and_seconds_are_part_of_the_meaning() -> None:
    assert Cron("0 9 * * *") != Cron("0 9 * * *", "Europe/Paris")
    assert Cron("0 9 * * *") == Cron("0 0 9 * * *", seconds=True)
    assert Cron("0 9 * * *") != "0 9 * * *"


NORMALISED = [
    ("@weekly", "0 0 * * 0"),
    ("0 9 * * MON-fri", "0 9 * * 1-5"),
    ("5/15 */1 03 feb 7", "5-59/15 * 3 2 0"),
    ("3,1,2-2 9 * * *", "1,2,3 9 * * *"),
    ("5,*/20 9 * * *", "5,*/20 9 * * *"),
    ("*/20,5 9 * * *", "*/20,5 9 * * *"),
    ("5,* 9 * * *", "0-59 9 * * *"),
]


@pytest.mark.parametrize(("expression", "normalised"), NORMALISED)
def test_the_original_text_is_kept_beside_the_normalised_form(expression: str, normalised: str) -> None:
    cron = Cron(expression)
    assert (cron.expression, str(cron), cron.normalised) == (expression, expression, normalised)
    assert Cron(normalised) == cron


@pytest.mark.parametrize("seconds", [None, 1, "yes", []])
def test_seconds_is_a_yes_or_a_no(seconds: object) -> None:
    with pytest.raises(BadOption, match="seconds must be True or False"):
        Cron("0 9 * * *", seconds=seconds)  # type: ignore[arg-type]  # on purpose


def test_a_refusal_survives_the_way_to_another_process() -> None:
    with pytest.raises(BadCron) as caught:
        Cron("60 * * * *")
    caught.value.where = "tasks.py:7"
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own bytes)
    assert (str(copy), copy.span, copy.hint) == (str(caught.value), caught.value.span, caught.value.hint)


def test_the_representation_can_be_read_back() -> None:
    cron = Cron("*/10 0 9 * * *", "Europe/Paris", seconds=True)
    assert eval(repr(cron)) == cron  # noqa: S307 (our own repr)


@given(st.text(st.sampled_from(string.printable + "@*/,-٣\uff15\0"), max_size=40))
def test_any_text_is_accepted_or_refused_and_nothing_else(expression: str) -> None:
    try:
        cron = Cron(expression, seed="report")
    except BadCron as e:
        assert str(e)  # noqa: PT017 (either way is right; both are looked at)
    else:
        assert Cron(cron.normalised) == cron


VALUES = ["*/15 9-17 * * mon-fri", "0 0 1,15 * *", "5-50/15 1-23/2 * 2-12/3 *", "30 4 1-7 jan,jun 0", "7/9 * * * sat"]


@pytest.mark.parametrize("expression", VALUES)
def test_the_fields_choose_what_cronsim_chooses(expression: str) -> None:
    chosen, sim = Cron(expression).chosen, CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
    assert set(chosen.minutes) == sim.minutes
    assert set(chosen.hours) == sim.hours
    assert set(chosen.days) == sim.days
    assert set(chosen.months) == sim.months
    assert set(chosen.weekdays) == {day for day in sim.weekdays if isinstance(day, int) and day < 7}


@pytest.mark.parametrize("column", range(5), ids=[field.name for field in FIVE])
def test_numbers_and_ranges_choose_what_croniter_chooses(column: int) -> None:
    field = FIVE[column]
    for low, high in itertools.combinations_with_replacement(field.values, 2):
        text = str(low) if low == high else f"{low}-{high}"  # croniter reads `5-5` as `*`
        expression = " ".join(text if n == column else "*" for n in range(5))
        expanded = croniter.expand(expression)[0][column]
        assert parser.parse(expression).chosen[column + 1] == (field.values if "*" in expanded else tuple(expanded))
