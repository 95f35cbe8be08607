"""Celery's `beat_schedule`, read without Celery: what each entry becomes, and when it ticks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from beat.errors import BadSource, LoadError, NoSource
from beat.migrate import celery
from beat.migrate.celery import schedules
from beat.migrate.result import NotCarried
from beat.timing.cron import Cron
from beat.timing.cron.fields import FIVE, MONTH
from tests.migrate.house import House, local, only, why

if TYPE_CHECKING:
    from beat.migrate import Reading
    from beat.timing.cron.fields import Field

HEAD = """
from datetime import timedelta
from celery.schedules import crontab, schedule, solar
import app.tasks
"""
FAKE_CELERY = """
class BaseSchedule:
    def __init__(self, nowfun=None, app=None): self.nowfun = nowfun
class crontab(BaseSchedule):
    def __init__(self, minute='*', hour='*', day_of_week='*', day_of_month='*', month_of_year='*', **kwargs):
        self._orig_minute, self._orig_hour, self._orig_day_of_week = minute, hour, day_of_week
        self._orig_day_of_month, self._orig_month_of_year = day_of_month, month_of_year
        super().__init__(**kwargs)
class schedule(BaseSchedule):
    def __init__(self, run_every=None, relative=False, nowfun=None, app=None):
        self.run_every, self.relative = run_every, relative
        super().__init__(nowfun)
class solar(BaseSchedule):
    def __init__(self, event, lat, lon, **kwargs):
        self.event = event
        super().__init__(**kwargs)
"""


def read(house: House, text: str, attribute: str = "", **options: Any) -> Reading:
    return celery.read(house.write("celeryconfig.py", HEAD + text) + attribute, **{"tz": "UTC", **options})


def entry(house: House, schedule: str, more: str = "", **options: Any) -> Reading:
    text = f"beat_schedule = {{'it': {{'task': 'app.tasks.add', 'schedule': {schedule}, {more}}}}}"
    return read(house, text, **options)


# --- when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "every"),
    [
        ("30", "30s"),
        ("30.0", "30s"),
        ("60 * 60", "1h"),
        ("timedelta(hours=1, minutes=30)", "1h30m"),
        ("2 * timedelta(days=1)", "2d"),
        ("schedule(timedelta(seconds=10))", "10s"),
        ("schedule(run_every=90)", "1m30s"),
        ("schedule(timedelta(hours=2), relative=True)", "2h"),
    ],
)
def test_an_interval_becomes_every(house: House, schedule: str, every: str) -> None:
    found = only(entry(house, schedule))
    assert (found.every, found.cron, found.tz) == (every, None, None)


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ("crontab()", "* * * * *"),
        ("crontab(minute=30, hour=7, day_of_week=1)", "30 7 * * 1"),
        ("crontab(0, 0)", "0 0 * * *"),
        ("crontab('*/15')", "*/15 * * * *"),
        ("crontab(minute='*/90')", "0 * * * *"),
        ("crontab(minute=0, hour=[8, 9, 10, 12])", "0 8-10,12 * * *"),
        ("crontab(minute=[0, 15, 30, 45])", "0,15,30,45 * * * *"),
        ("crontab(minute='5-55/10')", "5-55/10 * * * *"),
        ("crontab(minute='50-10')", "0-10,50-59 * * * *"),
        ("crontab(0, 9, day_of_week='mon-fri')", "0 9 * * 1-5"),
        ("crontab(0, 9, day_of_week='saturday,Sunday')", "0 9 * * 0,6"),
        ("crontab(0, 9, day_of_week='fri-mon')", "0 9 * * 0,1,5,6"),
        ("crontab(0, 9, day_of_month='*/2')", "0 9 */2 * *"),
        ("crontab(0, 9, month_of_year='jan,jul')", "0 9 * 1,7 *"),
        ("crontab(0, 9, day_of_month='1-31', day_of_week='mon')", "0 9 * * 1"),
        ("crontab(0, 9, day_of_month='1', day_of_week='0-6')", "0 9 1 * *"),
        ("crontab.from_string('0 9 1 * *')", "0 9 1 * *"),
        ("schedule(timedelta(days=1), relative=True)", "0 0 * * *"),
        ("schedule(timedelta(hours=1), True)", "0 * * * *"),
    ],
)
def test_a_crontab_becomes_an_expression_in_the_zone_of_the_application(house: House, schedule: str, cron: str) -> None:
    found = only(entry(house, schedule, tz="Europe/Paris"))
    assert (found.cron, found.every, found.tz, found.notes) == (cron, None, "Europe/Paris", ())


ANSWERS = json.loads((Path(__file__).parent / "celery_5_7_0.json").read_text("utf-8"))
"""Each shape of an item → its values by Celery's own crontab_parser, null for what it refuses."""


@pytest.mark.parametrize("column", FIVE, ids=[column.name for column in FIVE])
def test_every_shape_of_every_field_is_read_as_celery_reads_it(column: Field) -> None:
    """Of a name Celery reads three letters, so that `SAT/2` is Saturday."""
    parameter = column.name.replace("-", "_").replace("month", "month_of_year" if column is MONTH else "month")
    for item, answer in ANSWERS[column.name].items():
        try:
            rule = schedules.Crontab(**{parameter: item}).rule()
        except NotCarried:
            assert answer is None, item
        else:
            chosen: Any = Cron(rule.cron or "").chosen[FIVE.index(column) + 1]
            assert answer == list(chosen), item


def test_a_step_behind_the_name_of_a_day_is_ignored_as_celery_ignores_it(house: House) -> None:
    assert only(entry(house, "crontab(0, 9, day_of_week='SAT/2')")).cron == "0 9 * * 6"


@pytest.mark.parametrize(
    ("days", "weekdays", "cron"),
    [
        ("'1-7'", "'mon'", "0 9 */31,2-7 * 1"),
        ("1", "'mon'", "0 9 */31 * 1"),
        ("'8-14'", "'sun'", "0 9 8-14 * */7"),
        ("'8-14'", "'sat,sun'", "0 9 8-14 * */7,6"),
    ],
)
def test_where_both_days_must_match_a_field_begins_with_a_star(
    house: House, days: str, weekdays: str, cron: str
) -> None:
    found = only(entry(house, f"crontab(0, 9, day_of_month={days}, day_of_week={weekdays})"))
    assert found.cron == cron
    assert "both days" in found.notes[0]
    ticks = list(found.schedule().ticks(datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)))
    assert ticks
    assert all(_matches(tick, days, weekdays) for tick in ticks)


def _matches(tick: datetime, days: str, weekdays: str) -> bool:
    first, _, last = days.strip("'").partition("-")
    return int(first) <= tick.day <= int(last or first) and f"{tick:%a}".lower() in weekdays


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("0.5", "whole seconds"),
        ("0", "between 1 second and 366 days"),
        ("timedelta(days=1000)", "between 1 second and 366 days"),
        ("True", "neither seconds, nor a timedelta, nor a crontab"),
        ("'hourly'", "neither seconds, nor a timedelta, nor a crontab"),
        ("None", "neither seconds, nor a timedelta, nor a crontab"),
        ("solar('sunset', -37.81753, 144.96715)", "it follows the sun (sunset)"),
        ("crontab(0, 9, day_of_month='8-14', day_of_week='mon')", "both to match"),
        ("crontab(0, 9, day_of_month=31, month_of_year=2)", "never fires"),
        ("crontab(minute=60)", "its minute 60 is not within 0 to 59"),
        ("crontab(minute='5/15')", "nothing that Celery reads"),
        ("crontab(minute='*/0')", "nothing that Celery reads"),
        ("crontab(minute='a,b')", "is no number, and the name of no day or month"),
        ("crontab(minute='')", "nothing that Celery reads"),
        ("crontab(minute=1.5)", "neither a number, nor text, nor a list of numbers"),
        ("crontab(minute=['5'])", "is not within 0 to 59"),
        ("crontab(day_of_week=7)", "is not within 0 to 6"),
        ("crontab(nowfun=now)", "is known only when the file runs"),
        ("crontab(nowfun=1)", "a clock of its own"),
        ("schedule(5, nowfun=1)", "a clock of its own"),
        ("crontab(minutes=5)", "unexpected keyword"),
        ("timedelta(minutes='5')", "unsupported type"),
        ("timedelta(days=10**9)", "known only when the file runs"),
        ("1 / 0", "division by zero"),
        ("2 ** 100", "known only when the file runs"),
        ("crontab(*FIELDS)", "known only when the file runs"),
        ("crontab(**5)", "crontab(**5): "),
        ("1" + " + 1" * 400, "an expression is known only when the file runs"),
        ("my_schedule()", "my_schedule() is known only when the file runs"),
        ("settings.EVERY", "settings.EVERY is known only when the file runs"),
        ("-5", "between 1 second"),
    ],
)
def test_a_schedule_that_beat_cannot_keep_is_left_with_the_reason(house: House, schedule: str, reason: str) -> None:
    assert reason in why(entry(house, schedule))


# --- what ----------------------------------------------------------------------------------------------------------


def test_arguments_and_options_come_along(house: House) -> None:
    more = """'args': (16, [1]), 'kwargs': {'a': None, 'b': b'x'},
        'options': {'queue': 'q', 'expires': 60.0, 'time_limit': 300, 'priority': 5, 'countdown': 3, 'x': None}"""
    found = only(entry(house, "30", more))
    assert (found.func, found.args, found.kwargs) == ("app.tasks.add", (16, [1]), {"a": None, "b": b"x"})
    assert (found.queue, found.options) == ("q", {"ttl": 60, "job_timeout": 300})
    assert [note.partition(" ")[0] for note in found.notes] == ["priority=5", "countdown=3"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("'args': 5", "args is 5, not a list"),
        ("'args': (timedelta(days=1),)", "args[0] is a timedelta"),
        ("'kwargs': {'x': {1, 2}}", "kwargs['x'] is a frozenset"),
        ("'args': [1e999]", "args[0] is inf"),
        ("'kwargs': [1]", "not a dict whose keys are text"),
        ("'kwargs': {1: 2}", "not a dict whose keys are text"),
        ("'options': [1]", "options is [1], not a dict"),
        ("5: 1", "it has an entry '5', which Celery does not know"),
        ("'args': (USER,)", "USER is known only when the file runs"),
        ("'arg': 1", "it has an entry 'arg', which Celery does not know"),
        ("'options': {'queue': ''}", "queue ''"),
        ("'task': 'add'", "not the path of a function"),
        ("'task': 5", "not the path of a function"),
        ("'task': 'app.tasks.class'", "'class' is a word of Python's own"),
        ("'task': 'app tasks.add'", "not a dotted path"),
        ("'task': 'app.tasks.add()'", "not a dotted path"),
    ],
)
def test_an_entry_that_cannot_come_along_is_left_with_the_reason(house: House, more: str, reason: str) -> None:
    assert reason in why(entry(house, "30", more))


def test_options_that_are_no_whole_seconds_are_said(house: House) -> None:
    found = only(entry(house, "30", "'options': {'expires': 0.5, 'time_limit': 'soon', 'queue': None}"))
    assert found.options == {}
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    "text",
    [
        "beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': 5}}",
        "beat_schedule: dict = {'it': {'task': 'app.tasks.add', 'schedule': 5}}",
        "CELERY_BEAT_SCHEDULE = {'it': {'task': 'app.tasks.add', 'schedule': 5}}",
        "CELERYBEAT_SCHEDULE = dict(it={'task': 'app.tasks.add', 'schedule': 5})",
        "app.conf.beat_schedule = {'it': dict(task='app.tasks.add', schedule=5)}",
        "app.conf.update(timezone='UTC', beat_schedule={'it': {'task': 'app.tasks.add', 'schedule': 5}})",
        "app.conf.beat_schedule.update({'it': {'task': 'app.tasks.add', 'schedule': 5}})",
        "app.conf.beat_schedule['it'] = {'task': 'app.tasks.add', 'schedule': 5}",
        "ENTRY = {'task': 'app.tasks.add', 'schedule': 5}\nbeat_schedule = {'it': ENTRY}",
        "ALL = {'it': {'task': 'app.tasks.add', 'schedule': 5}}\nbeat_schedule = ALL",
        "MORE = {'it': {'task': 'app.tasks.add', 'schedule': 5}}\nbeat_schedule = {**MORE}",
        "BASE = {'task': 'app.tasks.add'}\nbeat_schedule = {'it': {**BASE, 'schedule': 5}}",
        "beat_schedule = {'it': {'task': app.tasks.add.name, 'schedule': 5}}",
        "from app.tasks import add as plus\nbeat_schedule = {'it': {'task': plus.name, 'schedule': 5}}",
        "app.add_periodic_task(5, app.tasks.add.s(), name='it')",
        "@app.on_after_configure.connect\ndef f(s):\n    s.add_periodic_task(5, app.tasks.add.si(), name='it')",
        "app.add_periodic_task(schedule=5, sig=app.tasks.add, name='it')",
        "class Config:\n    beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': 5}}",
        "get_app().conf.beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': 5}}",
        "try:\n    beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': 5}}\nfinally:\n    pass",
    ],
)
def test_the_schedule_is_found_wherever_celery_would_find_it(house: House, text: str) -> None:
    found = only(read(house, text))
    assert (found.id, found.func, found.every) == ("it", "app.tasks.add", "5s")


def test_a_periodic_task_has_the_arguments_of_its_signature(house: House) -> None:
    text = """
def hello(*words): ...
app.add_periodic_task(10.0, hello.s('a', b=1), args=('c',), queue='q')
app.add_periodic_task(crontab(0, 9), hello)
"""
    first, second = read(house, text).found
    assert (first.func, first.args, first.kwargs, first.queue) == ("celeryconfig.hello", ("a", "c"), {"b": 1}, "q")
    assert (first.id, second.id) == ("celeryconfig-hello", "celeryconfig-hello-2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("if DEBUG:\n    beat_schedule = {'it': 1}", "a condition, a loop or a function"),
        ("def f():\n    app.conf.beat_schedule['x'] = {}", "a condition, a loop or a function"),
        ("for x in y:\n    app.add_periodic_task(5, app.tasks.add)", "a condition, a loop or a function"),
        ("app.add_periodic_task(5)", "takes a schedule and a task"),
        ("app.add_periodic_task(*x)", "takes a schedule and a task"),
        ("app.add_periodic_task(5, app.tasks.add, **x)", "takes a schedule and a task"),
        ("app.add_periodic_task(5, app.tasks.add.s(**x))", "write app.tasks.add.s(…)"),
        ("app.add_periodic_task(5, app.tasks.add, args=5)", "args is 5, not a list"),
        ("app.add_periodic_task(5, app.tasks.add.s(1), kwargs=[1])", "not a dict whose keys are text"),
        ("app.add_periodic_task(5, make())", "neither imported by name nor defined"),
        ("app.add_periodic_task(5, app.tasks.add.signature((1,)))", "write app.tasks.add.s(…)"),
        ("beat_schedule = {'it': 5}", "it is 5, not a dict"),
        ("beat_schedule = {'it': make()}", "known only when the file runs"),
        ("beat_schedule = {NAME: {}}", "its task is None"),
    ],
)
def test_what_only_running_the_file_could_tell_is_left(house: House, text: str, reason: str) -> None:
    assert reason in why(read(house, text))


def test_a_name_that_is_changed_somewhere_is_not_taken_for_its_first_value(house: House) -> None:
    text = "ARGS = [1]\nARGS.append(2)\nbeat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': 5, 'args': ARGS}}"
    assert "ARGS is known only when the file runs" in why(read(house, text))


def test_relative_schedules_of_other_lengths_say_what_changes(house: House) -> None:
    assert "relative=True" in only(entry(house, "300", "'relative': True")).notes[0]
    assert only(entry(house, "60", "'relative': True")).cron == "* * * * *"


def test_strange_names_become_ids(house: House) -> None:
    text = "beat_schedule = {n: {'task': 'app.tasks.add', 'schedule': 5} for n in ()}"
    with pytest.raises(BadSource, match="not a dict that can be read without running the file"):
        read(house, text)
    names = ["every day at nine!", "every-day-at-nine", "tâche", "日本", "x" * 120]
    pairs = ", ".join(f"{name!r}: {{'task': 'app.tasks.add', 'schedule': 5}}" for name in names)
    found = read(house, f"beat_schedule = {{{pairs}}}").found
    assert [each.id for each in found] == [
        "every-day-at-nine",
        "every-day-at-nine-2",
        "tache",
        "schedule",
        "x" * 100,
    ]
    assert [each.name for each in found] == names


# --- where, and in which zone --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "zone", "note"),
    [
        ("timezone = 'Europe/Paris'", "Europe/Paris", ""),
        ("app.conf.timezone = 'Europe/Paris'", "Europe/Paris", ""),
        ("app.conf.update(timezone='Europe/Paris', enable_utc=False)", "Europe/Paris", ""),
        ("TIME_ZONE = 'Europe/Paris'\nCELERY_TIMEZONE = TIME_ZONE", "Europe/Paris", ""),
        ("", "UTC", "sets no timezone, so it is UTC"),
        ("enable_utc = True", "UTC", "sets no timezone, so it is UTC"),
        ("enable_utc = False", "Asia/Tokyo", "follows its host's clock, here taken to be in Asia/Tokyo"),
    ],
)
def test_expressions_are_in_the_zone_of_the_application(
    house: House, monkeypatch: pytest.MonkeyPatch, text: str, zone: str, note: str
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    schedule = "beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': crontab(0, 9)}}"
    reading = read(house, f"{text}\n{schedule}", tz=None)
    assert only(reading).tz == zone
    assert (note in reading.notes[0]) if note else not any("zone" in each for each in reading.notes)


def test_a_zone_that_only_running_the_file_could_tell_is_refused_unless_it_is_said(house: House) -> None:
    text = "timezone = get()\nbeat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': crontab(0, 9)}}"
    with pytest.raises(BadSource, match=r"timezone: line 5: get\(\) is known only when the file runs.* or say --tz"):
        read(house, text, tz=None)
    assert only(read(house, text, tz="Asia/Tokyo")).tz == "Asia/Tokyo"


@pytest.mark.parametrize("place", ["proj/celery.py", "proj.celery", "proj/celery.py:app", "proj.celery:app"])
def test_a_module_is_found_by_its_name_and_not_imported(house: House, place: str) -> None:
    house.write("proj/__init__.py", "1 / 0")
    house.write("proj/celery.py", "from .tasks import add\nraise SystemExit\napp.add_periodic_task(5, add.s())")
    assert only(celery.read(place, tz="UTC")).func == "proj.tasks.add"


def test_an_attribute_names_one_of_several(house: House) -> None:
    text = """
A = {'a': {'task': 'app.tasks.add', 'schedule': 5}}
B = {'b': {'task': 'app.tasks.add', 'schedule': 5}}
one.conf.beat_schedule = {'c': {'task': 'app.tasks.add', 'schedule': 5}}
"""
    assert [only(read(house, text, f":{name}")).id for name in ("A", "B", "one", "one.conf.beat_schedule")] == [
        "a", "b", "c", "c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "error", "sentence"),
    [
        ("nowhere.py", NoSource, "there is no file 'nowhere.py'"),
        ("no.where", NoSource, "there is no module 'no.where' in the current directory or on sys.path"),
        ("bad.py", BadSource, "bad.py:2: this is not Python: "),
        ("nul.py", BadSource, "nul.py"),
        ("empty.py", NoSource, "empty.py has no beat_schedule"),
        ("some.py:Schedul", NoSource, "some.py has no Schedul. Did you mean 'SCHEDULE'?"),
        ("calls.py", BadSource, "calls.py:1: beat_schedule is load(), not a dict that can be read without running"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    house: House, place: str, error: type[BadSource], sentence: str
) -> None:
    house.write("bad.py", "x = 1\ny = = 2")
    house.write("nul.py", "x = '\0'")
    house.write("empty.py", "")
    house.write("some.py", "SCHEDULE = {}")
    house.write("calls.py", "beat_schedule = load()")
    with pytest.raises(error) as refused:
        celery.read(place)
    assert sentence in str(refused.value)
    assert type(refused.value) is error


# --- with --import -------------------------------------------------------------------------------------------------


def imported(house: House, text: str, attribute: str = "", **options: Any) -> Reading:
    house.write("celery/__init__.py", "")
    house.write("celery/schedules.py", FAKE_CELERY)
    return read(house, text, attribute, importing=True, **options)


def test_a_file_that_runs_tells_all(house: House) -> None:
    text = """
import os
print('importing')
beat_schedule = {f'every {n}': {'task': 'app.tasks.add', 'schedule': n, 'args': [n]} for n in (5, 10)}
beat_schedule |= {
    'nine': {'task': app.tasks.add.__module__ + '.add', 'schedule': crontab(0, 9, day_of_week={1, 2})},
    'day': {'task': 'app.tasks.add', 'schedule': schedule(timedelta(days=1), relative=True)},
    'sun': {'task': 'app.tasks.add', 'schedule': solar('sunset', 1, 2)},
    'odd': {'task': 'app.tasks.add', 'schedule': crontab(nowfun=len)},
    'user': {'task': 'app.tasks.add', 'schedule': 5, 'args': [object()]},
    'five': 5,
}
timezone = 'Europe/' + 'Paris'
"""
    reading = imported(house, text, tz=None)
    assert [(each.id, each.every or each.cron, each.tz) for each in reading.found] == [
        ("every-5", "5s", None),
        ("every-10", "10s", None),
        ("nine", "0 9 * * 1,2", "Europe/Paris"),
        ("day", "0 0 * * *", "Europe/Paris"),
    ]
    assert [(each.name, each.why.partition(":")[0]) for each in reading.left] == [
        ("sun", "it follows the sun (sunset), which beat does not know"),
        ("odd", "it has a clock of its own, nowfun="),
        ("user", "args[0] is a object, and only plain data can be written down"),
        ("five", "it is 5, not a dict with 'task' and 'schedule'"),
    ]


def test_an_application_that_runs_tells_its_configuration(house: House) -> None:
    text = """
from types import SimpleNamespace
conf = SimpleNamespace(timezone='Asia/Tokyo', enable_utc=True)
conf.beat_schedule = {'it': {'task': 'app.tasks.add', 'schedule': crontab(0, 9)}}
celery_app = SimpleNamespace(conf=conf)
"""
    assert only(imported(house, text, ":celery_app", tz=None)).tz == "Asia/Tokyo"
    assert only(imported(house, text, ":celery_app.conf.beat_schedule")).tz == "UTC"


READY = """
from types import SimpleNamespace
conf = SimpleNamespace(timezone='UTC', beat_schedule={})
def finalize(): conf.beat_schedule['it'] = {'task': 'app.tasks.add', 'schedule': 5 / DIVISOR}
celery_app = SimpleNamespace(conf=conf, finalize=finalize)
"""


def test_an_application_is_made_ready_as_celery_does_before_it_tells(house: House) -> None:
    assert only(imported(house, f"DIVISOR = 1{READY}", ":celery_app")).every == "5s"


def test_an_application_that_cannot_be_made_ready_is_said_in_one_sentence(house: House) -> None:
    with pytest.raises(LoadError, match=r"app\.finalize\(\): ZeroDivisionError: division by zero"):
        imported(house, f"DIVISOR = 0{READY}", ":celery_app")


@pytest.mark.parametrize(
    ("text", "attribute", "error", "sentence"),
    [
        ("1 / 0", "", LoadError, "ZeroDivisionError"),
        ("", "", BadSource, "celeryconfig.py is a NoneType, neither a dict nor a Celery application"),
        ("X = 5", ":X", BadSource, "celeryconfig.py:X is a NoneType, neither a dict"),
        ("TIMETABLE = {}", ":TIMETABEL", NoSource, "has no 'TIMETABEL'. Did you mean 'TIMETABLE'?"),
    ],
)
def test_what_is_found_when_it_runs_may_be_wrong_too(
    house: House, text: str, attribute: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        imported(house, text, attribute)
    assert sentence in str(refused.value)


# --- the printed Python, and the ticks of Celery itself ------------------------------------------------------------

# What celery 5.7 answers for Europe/Paris, asked once: the runs from Thursday on for seven days, around both changes of
# the clocks (29 March, 25 October 2026).
DAYS_MARCH = ["03-26", "03-27", "03-28", "03-29", "03-30", "03-31"]
DAYS_OCTOBER = ["10-22", "10-23", "10-24", "10-25", "10-26", "10-27", "10-28"]
CELERY = [
    ("crontab(minute=30, hour=7, day_of_week=1)", ["03-30 07:30"], ["10-26 07:30"]),
    (
        "crontab(minute=0, hour='*/12')",
        ["03-26 12:00", *(f"{day} {at}" for day in [*DAYS_MARCH[1:], "04-01"] for at in ("00:00", "12:00"))],
        ["10-22 12:00", *(f"{day} {at}" for day in DAYS_OCTOBER[1:] for at in ("00:00", "12:00"))],
    ),
    (
        "crontab(minute=0, hour='22-1', day_of_week='sat-mon')",
        [f"{day} {hour}:00" for day in DAYS_MARCH[2:5] for hour in ("00", "01", "22", "23")],
        [f"{day} {hour}:00" for day in DAYS_OCTOBER[2:5] for hour in ("00", "01", "22", "23")],
    ),
    (
        "crontab(minute='15', hour=5, day_of_month='26-2', day_of_week='sunday,thu')",
        ["03-26 05:15", "03-29 05:15"],
        [],
    ),
    ("crontab(minute=0, hour=0, day_of_month='1-7', day_of_week='wed')", ["04-01 00:00"], []),
    (
        "crontab(minute=45, hour=[6, 18], month_of_year='mar-oct/7')",
        [f"{day} {at}" for day in DAYS_MARCH for at in ("06:45", "18:45")],
        [f"{day} {at}" for day in DAYS_OCTOBER for at in ("06:45", "18:45")],
    ),
    (
        "crontab(minute=0, hour=9, day_of_month='*/2')",
        ["03-27 09:00", "03-29 09:00", "03-31 09:00", "04-01 09:00"],
        ["10-23 09:00", "10-25 09:00", "10-27 09:00"],
    ),
]


@pytest.mark.parametrize(("schedule", "march", "october"), CELERY, ids=[case[0] for case in CELERY])
def test_the_printed_python_ticks_as_celery_does(
    house: House, schedule: str, march: list[str], october: list[str]
) -> None:
    [declared] = house.declared(entry(house, schedule, tz="Europe/Paris")).values()
    for first, expected in ((datetime(2026, 3, 26), march), (datetime(2026, 10, 22), october)):  # noqa: DTZ001 (below)
        start = first.replace(tzinfo=ZoneInfo("Europe/Paris"))
        end = start + timedelta(days=7)
        ticks = declared.ticks(start.astimezone(UTC) + timedelta(seconds=1), end.astimezone(UTC))
        assert local(list(ticks), declared) == expected


def test_the_printed_python_declares_what_was_found(house: House) -> None:
    more = "'args': (1, 'it\\'s \"x\"'), 'kwargs': {'k': [None, 1.5, (2,)]}, 'options': {'queue': 'q', 'expires': 60}"
    reading = entry(house, "30", more)
    [declared] = house.declared(reading).values()
    assert (declared.id, declared.func, declared.queue, declared.ttl) == ("it", "app.tasks.add", "q", 60)
    assert declared.args == (1, 'it\'s "x"')
    assert declared.kwargs == {"k": [None, 1.5, (2,)]}
    assert declared.timing == only(reading).schedule().timing
