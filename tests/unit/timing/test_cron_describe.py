from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from beat.timing.cron import Cron
from beat.timing.cron.describe import describe
from beat.timing.cron.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Chosen

HALF_A_DAY = timedelta(hours=12)

FIVE_FIELDS = [
    # rates, which come out even at the end of the hour or of the day
    ("* * * * *", "every minute, UTC"),
    ("*/2 * * * *", "every 2 minutes, UTC"),
    ("*/15 * * * *", "every 15 minutes, UTC"),
    ("0,30 * * * *", "every 30 minutes, UTC"),
    ("0 * * * *", "every hour, UTC"),
    ("@hourly", "every hour, UTC"),
    ("5 * * * *", "every hour at :05, UTC"),
    ("0 */2 * * *", "every 2 hours, UTC"),
    ("5 */3 * * *", "every 3 hours at :05, UTC"),
    # steps that do not come out even, and steps in a part of the range
    ("*/7 * * * *", "every 7 minutes from :00 to :56 of every hour, UTC"),
    ("10-20 * * * *", "every minute from :10 to :20 of every hour, UTC"),
    ("*/7 9-17 * * *", "every 7 minutes from :00 to :56 of every hour from 09:00 to 17:59, UTC"),
    ("*/7 9 * * *", "every 7 minutes from 09:00 to 09:56, UTC"),
    ("0 1-23/2 * * *", "every 2 hours from 01:00 to 23:00, UTC"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00, UTC"),
    ("30 9-17 * * mon-fri", "every hour from 09:30 to 17:30, Monday to Friday, UTC"),
    ("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:59, UTC"),
    ("* 9 * * *", "every minute from 09:00 to 09:59, UTC"),
    ("* 9,12 * * *", "every minute in the hours of 09:00 and 12:00, UTC"),
    ("*/5 */2 * * *", "every 5 minutes in every 2nd hour from 00:00 to 22:59, UTC"),
    # clock times, one by one
    ("0 9 * * *", "at 09:00, every day, UTC"),
    ("@daily", "at 00:00, every day, UTC"),
    ("15,45 9 * * *", "at 09:15 and 09:45, every day, UTC"),
    ("0 9,12,15 * * *", "at 09:00, 12:00 and 15:00, every day, UTC"),
    ("0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00, every day, UTC"),
    (
        "0 1,3,4,7,9,15,20 * * *",
        "at 01:00, 03:00, 04:00, 07:00, 09:00, 15:00 and 20:00, every day, UTC",
    ),
    # lists of minutes
    ("5,35 * * * *", "at :05 and :35 of every hour, UTC"),
    ("0-5,30 * * * *", "at :00 to :05 and :30 of every hour, UTC"),
    ("5,35 9-17 * * *", "at :05 and :35 of every hour from 09:00 to 17:59, UTC"),
    ("5,35 9,10,12,15 * * *", "at :05 and :35 in the hours of 09:00, 10:00, 12:00 and 15:00, every day, UTC"),
    (
        "1,2,3,5,8,13,21,34,55 * * * *",
        "at :01 to :03, :05, :08, :13, :21, :34 and :55 of every hour, UTC",
    ),
    ("1,2,3,5,8,13,21 4 * * *", "at 04:01 to 04:03, 04:05, 04:08, 04:13 and 04:21, every day, UTC"),
    # days of the month and months
    ("@monthly", "at 00:00, on day 1 of the month, UTC"),
    ("0 0 1,15 * *", "at 00:00, on days 1 and 15 of the month, UTC"),
    ("0 9 1-5,10,20-25 * *", "at 09:00, on days 1 to 5, 10 and 20 to 25 of the month, UTC"),
    ("0 0 */2 * *", "at 00:00, on every 2nd day from 1 to 31 of the month, UTC"),
    ("0 0 */3 * *", "at 00:00, on every 3rd day from 1 to 31 of the month, UTC"),
    ("0 0 */5 3 *", "at 00:00, on every 5th day from 1 to 31 March, UTC"),
    ("@yearly", "at 00:00, on 1 January, UTC"),
    ("0 0 29 2 *", "at 00:00, on 29 February, UTC"),
    ("0 0 1,15 2 *", "at 00:00, on 1 and 15 February, UTC"),
    ("0 0 1 1,7 *", "at 00:00, on day 1 in January and July, UTC"),
    ("0 0 1,15 jan-mar *", "at 00:00, on days 1 and 15 in January to March, UTC"),
    ("0 0 * 6 *", "at 00:00, in June, UTC"),
    ("*/15 * * 6 *", "every 15 minutes, in June, UTC"),
    # days of the week
    ("@weekly", "at 00:00, every Sunday, UTC"),
    ("0 9 * * mon-fri", "at 09:00, Monday to Friday, UTC"),
    ("0 9 * * sat,sun", "at 09:00, Saturday and Sunday, UTC"),
    ("0 9 * * 7", "at 09:00, every Sunday, UTC"),
    ("0 9 * * sun-thu", "at 09:00, Monday to Thursday and Sunday, UTC"),
    ("0 9 * * 1,3,5", "at 09:00, Monday, Wednesday and Friday, UTC"),
    ("0 9 * 6 mon", "at 09:00, in June, every Monday, UTC"),
    # both: either is enough, or both must match
    ("0 0 13 * fri", "at 00:00, on day 13 of the month or on any Friday, UTC"),
    ("0 0 13 6 mon,fri", "at 00:00, in June, on day 13 of the month or on any Monday or Friday, UTC"),
    ("0 0 */2 * fri", "at 00:00, on every 2nd day from 1 to 31 of the month, if that is a Friday, UTC"),
    ("0 0 */2 * mon,fri", "at 00:00, on every 2nd day from 1 to 31 of the month, if that is Monday or Friday, UTC"),
    ("0 0 1-31 * fri", "at 00:00, every day, UTC"),
]
SIX_FIELDS = [
    ("* * * * * *", "every second, UTC"),
    ("*/10 * * * * *", "every 10 seconds, UTC"),
    ("*/7 * * * * *", "every 7 seconds from :00 to :56 of every minute, UTC"),
    ("30 * * * * *", "at :30 of every minute, UTC"),
    ("5,35 * * * * *", "at :05 and :35 of every minute, UTC"),
    ("5,35 * 9-17 * * *", "at :05 and :35 of every minute from 09:00 to 17:59, UTC"),
    ("0 0 9 * * *", "at 09:00, every day, UTC"),
    ("30 0 9 * * *", "at 09:00:30, every day, UTC"),
    ("*/10 0 * * * *", "every 10 seconds in the minute :00 of every hour, UTC"),
    ("*/10 0,1 * * * *", "every 10 seconds in the minutes :00 and :01 of every hour, UTC"),
    ("30 */15 * * * *", "at :30 in every 15th minute from :00 to :45 of every hour, UTC"),
    ("0 */15 * * * *", "every 15 minutes, UTC"),
]
IN_ZONES = [
    ("0 9 * * *", "America/New_York", "at 09:00, every day, America/New_York time"),
    ("30 2 * * *", "Europe/Paris", "at 02:30, every day, Europe/Paris time"),
    ("*/30 * * * *", "Europe/Paris", "every 30 minutes, Europe/Paris time"),
    # in Paris the hour of 02:00 is both skipped and repeated, in New York it is only skipped
    (
        "*/30 2 * * *",
        "Europe/Paris",
        (
            "at 02:00 and 02:30, every day, Europe/Paris time, "
            "not when the clock skips it and twice when the clock repeats it"
        ),
    ),
    (
        "*/30 2 * * *",
        "America/New_York",
        "at 02:00 and 02:30, every day, America/New_York time, not when the clock skips it",
    ),
    (
        "*/30 1 * * *",
        "America/New_York",
        "at 01:00 and 01:30, every day, America/New_York time, twice when the clock repeats it",
    ),
    ("*/30 2 * * mon", "Europe/Paris", "at 02:00 and 02:30, every Monday, Europe/Paris time"),
    ("*/30 2 * * *", "Asia/Tokyo", "at 02:00 and 02:30, every day, Asia/Tokyo time"),
    (
        "0 0-23 * * *",
        "Europe/Paris",
        "every hour, Europe/Paris time, made up for when the clock skips it and once when the clock repeats it",
    ),
    (
        "0 0-23 * * *",
        "America/New_York",
        "every hour, America/New_York time, made up for when the clock skips it and once when the clock repeats it",
    ),
    ("0 9-17 * * *", "Europe/Paris", "every hour from 09:00 to 17:00, Europe/Paris time"),
]


@pytest.mark.parametrize(("expression", "words"), FIVE_FIELDS)
def test_five_fields_in_words(expression: str, words: str) -> None:
    assert Cron(expression).describe() == words


@pytest.mark.parametrize(("expression", "words"), SIX_FIELDS)
def test_six_fields_in_words(expression: str, words: str) -> None:
    assert Cron(expression, seconds=True).describe() == words


@pytest.mark.parametrize(("expression", "tz", "words"), IN_ZONES)
def test_the_zone_is_named_and_so_is_what_its_changes_of_the_clock_do_unexpectedly(
    expression: str, tz: str, words: str
) -> None:
    assert Cron(expression, tz).describe() == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,2,3,5,8,13,21,34,55 * * * *", "1,2,3,6,9,14,22,34,55 * * * *"),  # long lists with the same ends
        ("0 1,3,4,7,9,15,20 * * *", "0 1,3,4,8,9,15,20 * * *"),
        ("0 0 1,3,5,8,11,20,23,30 * *", "0 0 1,3,5,9,11,20,23,30 * *"),
        ("*/7 * * * *", "0-49/7 * * * *"),
        ("0 0 13 * fri", "0 0 13 * */5"),  # either, both
        ("0 0 1 2,3 *", "0 0 2 1,3 *"),
        ("*/5 9 * * *", "0-50/5 9 * * *"),
    ],
)
def test_expressions_that_are_almost_the_same_get_words_of_their_own(one: str, other: str) -> None:
    assert Cron(one).describe() != Cron(other).describe()


def test_a_time_that_follows_the_clock_and_a_fixed_one_differ_in_words_where_they_differ_in_ticks() -> None:
    following, fixed = Cron("*/30 2 * * *", "Europe/Paris"), Cron("0,30 2 * * *", "Europe/Paris")
    day = datetime(2026, 3, 29, tzinfo=UTC)
    assert list(following.ticks(day, day + timedelta(hours=2))) != list(fixed.ticks(day, day + timedelta(hours=2)))
    assert following.describe() != fixed.describe()


# Words are a function of the values that an expression chose, and two different choices must not share them. Pairs that
# differ in one field alone are the likeliest to do so.


LIMITS: dict[str, tuple[int, ...]] = {
    "seconds": SECOND.values,
    "minutes": MINUTE.values,
    "hours": HOUR.values,
    "days": DAY.values,
    "months": MONTH.values,
    "weekdays": WEEKDAY.values,
}


def some(random: Random, values: tuple[int, ...]) -> tuple[int, ...]:
    """All values, steps, a run, or any of them."""
    start, step, size = random.randrange(len(values)), random.randint(1, 12), random.randint(1, 12)
    listed = tuple(sorted(random.sample(values, min(size, len(values)))))
    return random.choice([values, values[start % step :: step] or values, values[start : start + size], listed])


def draw(random: Random) -> Chosen:
    values: dict[str, Any] = {name: some(random, limits) for name, limits in LIMITS.items()}
    if random.random() < 2 / 3:
        values["seconds"] = (0,)
    return Chosen(**values, either=random.random() < 1 / 2, fixed=False)


def possible(chosen: Chosen) -> Chosen:
    """As the grammar makes it: a choice between two days needs two."""
    return chosen._replace(either=chosen.either and chosen.days != DAY.values and chosen.weekdays != WEEKDAY.values)


def changed(random: Random, chosen: Chosen) -> Chosen:
    """One value more or less in one field, or the other meaning of two days."""
    field = random.choice([*LIMITS, "either"])
    if field == "either":
        return chosen._replace(either=not chosen.either)
    toggled = set(getattr(chosen, field)) ^ {random.choice(LIMITS[field])}
    values: dict[str, Any] = {field: tuple(sorted(toggled)) or LIMITS[field]}
    return chosen._replace(**values)


@pytest.mark.parametrize("seed", range(4))
def test_different_choices_never_share_their_words(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (a sample, not a secret)
    meant: dict[str, Chosen] = {}
    for _ in range(1500):
        chosen = draw(random)
        for _ in range(4):
            chosen = possible(changed(random, chosen))
            assert meant.setdefault(describe(chosen, "UTC"), chosen) == chosen


# Every way to write some values that matter when clocks change, and every zone in which they change in its own way.
MINUTES = ["*", "0-59", "*/30", "0,30", "0", "*/20", "0-59/20", "15,45", "*/7", "0-56/7"]
HOURS = ["*", "0-23", "2", "1", "0-3", "*/2", "0-22/2", "1,2,3", "2-3", "23"]
WEEKDAYS = ["*", "sun", "mon"]


@pytest.mark.parametrize(
    "tz",
    ["America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Asia/Tokyo"],
)
def test_expressions_that_share_their_words_share_their_ticks_also_when_clocks_change(tz: str) -> None:
    years = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    changes = {shift.at for shift in Cron("* * * * *", tz).shifts(*years)}
    ticks_of: dict[str, list[datetime]] = {}
    shared = 0
    for minute, hour, weekday in itertools.product(MINUTES, HOURS, WEEKDAYS):
        rule = Cron(f"{minute} {hour} * * {weekday}", tz)
        near = [tick for at in sorted(changes) for tick in rule.ticks(at - HALF_A_DAY, at + HALF_A_DAY)]
        shared += rule.describe() in ticks_of
        assert ticks_of.setdefault(rule.describe(), near) == near, rule
    assert shared  # otherwise nothing was compared
