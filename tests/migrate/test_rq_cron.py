"""`rq cron`: what each call of `register` becomes, and when it ticks."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from croniter import CroniterError
from hypothesis import given
from hypothesis import strategies as st
from rq.cron import CronJob

from beat.errors import BadSource, NoSource
from beat.migrate import cron_fields, rq_cron
from beat.timing.cron import Cron, expansion
from beat.timing.cron.fields import FIVE
from tests.migrate.house import House, only, why
from tests.migrate.shapes import ITEMS

if TYPE_CHECKING:
    from beat.migrate import Reading

HEAD = """
from rq import cron
from rq.cron import register
from app.tasks import Jobs, add, report
import app.tasks as tasks
"""


def read(house: House, text: str, **options: Any) -> Reading:
    return rq_cron.read(house.write("cron_config.py", HEAD + text), **options)


@pytest.mark.parametrize("importing", [False, True])
def test_a_registered_job_becomes_a_schedule(house: House, *, importing: bool) -> None:
    text = """
register(add, 'default', interval=30, args=(1, 2))
cron.register(tasks.report, queue_name='reports', cron='0 9 * * mon-fri', kwargs={'kind': 'daily'},
              job_timeout='10m', result_ttl=60, ttl=120, failure_ttl=3600, meta={'by': 'me'}, name='The report')
"""
    first, second = read(house, text, importing=importing).found
    assert (first.id, first.func, first.every, first.args, first.queue) == (
        "add", "app.tasks.add", "30s", (1, 2), "default",
    )  # fmt: skip
    assert (first.tz, first.options, first.notes) == (None, {}, ())
    assert (second.id, second.func, second.cron, second.tz) == (
        "The-report", "app.tasks.report", "0 9 * * mon-fri", "UTC",
    )  # fmt: skip
    assert (second.kwargs, second.queue) == ({"kind": "daily"}, "reports")
    assert second.options == {
        "job_timeout": "10m", "result_ttl": 60, "ttl": 120, "failure_ttl": 3600, "meta": {"by": "me"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        "register(add, 'q', interval=60)",
        "cron.register(add, 'q', None, None, 60)",
        "register(func=tasks.add, queue_name='q', interval=MINUTE)",
        "import rq.cron\nrq.cron.register(tasks.add, 'q', interval=60)",
        "import rq.cron as rc\njob = rc.register(tasks.add, 'q', interval=60, cron=None, webhooks=None)",
        "from rq.cron import register as r\nr(add, 'q', interval=30 * 2)",
        "import app.tasks\nregister(app.tasks.add, 'q', interval=60, result_ttl=500)",
        "try:\n    register(add, 'q', interval=60)\nexcept ValueError:\n    pass",
    ],
)
def test_register_is_known_by_any_name(house: House, call: str) -> None:
    found = only(read(house, f"MINUTE = 60\n{call}\n"))
    assert (found.func, found.queue, found.every, found.options) == ("app.tasks.add", "q", "1m", {})


def test_a_function_of_the_file_itself_is_found_by_the_name_of_the_file(house: House) -> None:
    house.write("jobs/__init__.py", "")
    place = house.write("jobs/cron.py", "from rq.cron import register\ndef f(): ...\nregister(f, 'q', interval=5)")
    assert only(rq_cron.read(place)).func == "jobs.cron.f"
    assert only(rq_cron.read("jobs.cron")).func == "jobs.cron.f"


def test_a_static_method_is_a_function_of_its_class(house: House) -> None:
    [declared] = house.declared(read(house, "register(Jobs.run, 'q', interval=5)")).values()
    assert declared.func == "app.tasks.Jobs.run"


def test_other_calls_of_that_name_are_not_rq_s(house: House) -> None:
    place = house.write("cron_config.py", "from atexit import register\nregister(print, 'q', interval=5)")
    reading = rq_cron.read(place)
    assert (reading.found, reading.left) == ((), ())


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("for q in 'ab': register(add, q, interval=5)", "a loop, a condition or a function"),
        ("if x: register(add, 'q', interval=5)", "a loop, a condition or a function"),
        ("def f(): register(add, 'q', interval=5)", "a loop, a condition or a function"),
        ("[register(add, q, interval=5) for q in 'ab']", "a loop, a condition or a function"),
        ("register(lambda: 1, 'q', interval=5)", "neither imported by name nor defined"),
        ("register(*x)", "unpacked with a star"),
        ("register(add, **x)", "unpacked with a star"),
        ("register('q', interval=5)", "neither imported by name"),
        ("register(add, 'q')", "one of interval= and cron="),
        ("register(add, 'q', interval=5, cron='* * * * *')", "one of interval= and cron="),
        ("register(add, 'q', interval=0.5)", "whole seconds"),
        ("register(add, 'q', interval=get())", "get() is known only when the file runs"),
        ("register(add, 'q', every=5)", "no argument 'every'"),
        ("register(add, 'q', cron='0 0 * * * 0 2027')", "a field for the year"),
        ("register(add, 'q', cron='0 0 l * *')", "beat does not take it"),
        ("register(add, 'q', cron='0 25 * * *')", "hour 25 is out of range"),
        ("register(add, 'q', cron='0 22-4/3 * * *')", "runs backwards in steps"),
        ("register(add, 'q', cron=5)", "its cron expression is 5, not text"),
        ("register(add, 'q', cron='hourly')", "beat does not take it"),
        ("register(add, 'q', interval=5, args=5)", "args is 5, not a list"),
        ("register(add, 'q', interval=5, ttl=0)", "ttl 0"),
        ("register(add, 'q', interval=5, meta={'beat': 1})", "meta['beat']"),
    ],
)
def test_a_job_that_cannot_move_in_is_left_with_the_reason(house: House, call: str, reason: str) -> None:
    assert reason in why(read(house, call))


def test_webhooks_are_not_carried_over_and_it_is_said(house: House) -> None:
    found = only(read(house, "register(add, 'q', interval=5, webhooks=[Webhook('https://x')])"))
    assert found.notes == ("its webhooks were not carried over: beat sends none",)


def test_a_file_that_runs_tells_all(house: House) -> None:
    text = """
print('importing')
for seconds in (5, 10):
    register(add, 'q', interval=seconds, args=(seconds,))
register(lambda: 1, 'q', interval=5)
"""
    reading = read(house, text, importing=True)
    assert [(each.id, each.every, each.args) for each in reading.found] == [
        ("add", "5s", (5,)),
        ("add-2", "10s", (10,)),
    ]
    assert ["not a dotted path" in each.why for each in reading.left] == [True]


@pytest.mark.parametrize(
    ("place", "error", "sentence"),
    [
        ("nowhere.py", NoSource, "there is no file 'nowhere.py'"),
        ("bad.py", BadSource, "bad.py:1: this is not Python"),
        ("app", NoSource, None),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    house: House, place: str, error: type[BadSource], sentence: str | None
) -> None:
    house.write("bad.py", "register(")
    if sentence is None:  # a package is its __init__.py
        assert rq_cron.read(place).found == ()
        return
    with pytest.raises(error, match=sentence):
        rq_cron.read(place)


# --- the ticks of rq cron itself -----------------------------------------------------------------------------------


def runs(expression: str, start: datetime, count: int) -> list[datetime]:
    """The next times by RQ's own class."""
    job = CronJob("q", func_name="app.tasks.add", cron=expression)
    found = []
    for _ in range(count):
        job.set_enqueue_time(start)
        assert job.next_enqueue_time
        found.append(start := job.next_enqueue_time)
    return found


RULES = [
    "0 9 * * mon-fri",
    "*/15 * * * *",
    "0 0 1 * mon",
    "0 0 */2 * mon",
    "0 0 1 * */2",
    "0 0 1-31 * mon",
    "0 0 1-31 * */2",
    "0 0 */1 * 0-6",
    "0 0 ? * fri-mon",
    "0 22-4 * * *",
    "* * * * * */20",
    "0 0 * * sat-sun 30",
    "@daily",
    "@weekly",
]


@pytest.mark.parametrize("rule", RULES)
def test_the_printed_python_ticks_as_rq_cron_does(house: House, rule: str) -> None:
    [declared] = house.declared(read(house, f"register(add, 'q', cron={rule!r})")).values()
    start = datetime(2026, 10, 22, tzinfo=UTC)  # UTC has no change of the clocks
    expected = runs(rule, start, 40)
    assert list(declared.ticks(start + timedelta(seconds=1), expected[-1] + timedelta(seconds=1))) == expected


def corpus() -> list[str]:
    """Every shape of an item in every field, with the other fields fixed, and the two days beside each other."""
    fixed = ["17", "4", "*", "*", "*"]
    alone = [
        " ".join([*fixed[:place], item, *fixed[place + 1 :]])
        for place, column in enumerate(FIVE)
        for item in ITEMS[column]
    ]
    days = ["5-5", "1-31", "31-1", "7,7-7", "*/2", "?", "13"]
    both = [
        f"17 4 {day} * {weekday}"
        for day in days
        for weekday in ["mon-mon", "0-6", "0-7", "5-5/2", "*/2", "mon,sun-sun"]
    ]
    return [
        *alone,
        *both,
        "*,5 4 * * *",
        "17 4 *,5 * mon",
        "17 4 5 * *,mon",
        "17 4 31 2 mon",
        "17 4 * * * 9-9",
        "17 4 * * * 5-7",
    ]


def test_every_shape_of_every_field_keeps_the_ticks_of_croniter_or_is_left(house: House) -> None:
    """A range of one value, as in `5-5` and `mon-mon`, is every value to croniter."""
    starts = [datetime(2026, 2, 27, 23, 59, tzinfo=UTC), datetime(2027, 10, 30, tzinfo=UTC)]
    calls = "".join(
        f"register(add, 'q', cron={expression!r}, name='n{number}')\n" for number, expression in enumerate(corpus())
    )
    reading = read(house, calls)
    found = {each.name: each for each in reading.found}
    left = {each.name for each in reading.left}
    moved = 0
    for number, expression in enumerate(corpus()):
        try:
            expected = [runs(expression, start, 25) for start in starts]
        except CroniterError:
            assert f"n{number}" in left, expression
            continue
        if f"n{number}" in left:
            assert re.search(r"(\w+)-(\w+)/\d", expression), expression  # backwards in steps
            continue
        ticks = found[f"n{number}"].schedule().ticks
        assert [list(itertools.islice(ticks(start + timedelta(seconds=1)), 25)) for start in starts] == expected, (
            expression
        )
        moved += 1
    assert moved > 250


@pytest.mark.parametrize(
    ("rule", "cron"),
    [
        ("5-5 * * * *", "* * * * *"),
        ("0 9 * * mon-mon", "0 9 * * *"),
        ("0 9-9/2 * * *", "0 0-22/2 * * *"),
        ("0 9 1-5 * mon-fri", "0 9 1-5 * mon-fri"),
        ("* * * * * 9-9", "* * * * * *"),
    ],
)
def test_what_beat_reads_otherwise_is_written_out(house: House, rule: str, cron: str) -> None:
    assert only(read(house, f"register(add, 'q', cron={rule!r})")).cron == cron


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("R * * * *", "'R', which beat does not know"),
        ("H * * * *", "minute 'h' is not the same in every process"),
        ("0 9 15w * *", "'W', which beat does not know"),
        ("0 9 * * fri#1", "day-of-week 'fri#1'"),
    ],
)
def test_what_croniter_reads_as_no_set_of_values_is_left(house: House, rule: str, reason: str) -> None:
    assert reason in why(read(house, f"register(add, 'q', cron={rule!r})"))


def test_a_job_that_croniter_never_runs_is_left(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """`0 9 31 2 mon` is one in croniter 6, and runs on Mondays in croniter 7."""
    monkeypatch.setattr(expansion, "ticks", lambda *_: [])
    reason = why(read(house, "register(add, 'q', cron='0 9 31 2 mon')"))
    assert reason.startswith("rq cron finds no run of '0 9 31 2 mon', and beat would run")


def test_a_difference_of_the_walks_is_named_with_an_instant(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cron_fields, "kept", lambda text, _column, _values: text)
    reason = why(read(house, "register(add, 'q', cron='5-5 * * * *')"))
    assert reason == (
        "rq cron runs '5-5 * * * *' at 2026-01-01T00:01:00Z, and beat would run '5-5 * * * *' at 2026-01-01T00:05:00Z"
    )


FIELDS = (
    ("0", "30", "5-5", "*/15", "0,30", "5-20/5", "*", "7/20", "50-10"),
    ("*", "2", "*/4", "9-17", "22-4", "0"),
    ("*", "1-7", "1", "31", "*/2", "15", "?", "1,29", "28-3", "*/1", "1-31"),
    ("*", "3,10", "mar", "*/2", "nov-feb"),
    ("*", "mon-fri", "mon-mon", "sun", "sat-sun", "0", "7", "1,3", "5-7", "*/2", "fri-mon", "6-2", "0-6"),
)


@given(st.tuples(*(st.sampled_from(field) for field in FIELDS)))
def test_every_expression_ticks_as_croniter_says(texts: tuple[str, ...]) -> None:
    expression = " ".join(texts)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    try:
        expected = runs(expression, start, 12)
    except CroniterError:
        return  # rq cron has no such job
    written, seconds = rq_cron._expression(expression)  # noqa: SLF001 (what is read, alone)
    ticks = Cron(written, "UTC", seconds).ticks(start + timedelta(seconds=1))
    assert list(itertools.islice(ticks, len(expected))) == expected
