"""`rq cron`: what each call of `register` becomes, and when it ticks."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from croniter import CroniterError
from hypothesis import given
from hypothesis import strategies as st
from rq.cron import CronJob

from beat.cron import Cron
from beat.errors import BadSource, NoSource
from beat.moving import rq_cron
from tests.moving.house import House, only, why

if TYPE_CHECKING:
    from beat.moving import Reading

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


FIELDS = (
    ("0", "30", "*/15", "0,30", "5-20/5", "*", "7/20", "50-10"),
    ("*", "2", "*/4", "9-17", "22-4", "0"),
    ("*", "1-7", "1", "31", "*/2", "15", "?", "1,29", "28-3", "*/1", "1-31"),
    ("*", "3,10", "mar", "*/2", "nov-feb"),
    ("*", "mon-fri", "sun", "sat-sun", "0", "7", "1,3", "5-7", "*/2", "fri-mon", "6-2", "0-6"),
)


@given(st.tuples(*(st.sampled_from(field) for field in FIELDS)))
def test_every_expression_ticks_as_croniter_says(fields: tuple[str, ...]) -> None:
    expression = " ".join(fields)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    try:
        expected = runs(expression, start, 12)
    except CroniterError:
        return  # rq cron has no such job
    written, seconds = rq_cron._expression(expression)  # noqa: SLF001 (what is read, alone)
    ticks = Cron(written, "UTC", seconds).ticks(start + timedelta(seconds=1))
    assert list(itertools.islice(ticks, len(expected))) == expected
