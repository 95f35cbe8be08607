from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, date, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import rq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rq.serializers import DefaultSerializer, JSONSerializer

from beat.errors import BadArguments, BadFunction, BadInstant, BadOption, BadZone, DeclarationError
from beat.schedule import options, rq_options
from beat.schedule.rq_options import Callback, Retry
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.chance import examples
from tests.support.declared import Number, Queues, plain
from tests.support.refusals import HOSTILE, accepted, refused

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
OPTIONS = [field.name for field in fields(Schedule) if field.name != "declared"]


def with_option(name: str, value: object) -> Schedule:
    given: dict[str, Any] = {"id": "a", "func": "app.f", "timing": Every("1h"), name: value}
    return Schedule(**given)


def test_every_field_of_a_schedule_can_be_declared() -> None:
    timing = {"every", "follows", "phase", "seconds"}
    assert set(OPTIONS) - {"func", "timing"} == set(options.Options.__annotations__) - timing


# --- the table of bad inputs -----------------------------------------------------------------------------------------

LONG = "x" * 1_000_000
BAD: list[tuple[str, Any, type[DeclarationError], str]] = [
    ("id", "", BadOption, "id '' must be 1 to 100 of the characters A-Z a-z 0-9 _ -, as in 'daily-report'"),
    ("id", "a b", BadOption, "id 'a b' must be"),
    ("id", "a:b", BadOption, "id 'a:b' must be"),
    ("id", "a.b", BadOption, "id 'a.b' must be"),
    ("id", "a/b", BadOption, "id 'a/b' must be"),
    ("id", "../x", BadOption, "id '../x' must be"),
    ("id", "a\n", BadOption, r"id 'a\n' must be"),
    ("id", "a\0", BadOption, r"id 'a\x00' must be"),
    ("id", "größe", BadOption, "id 'größe' must be"),
    ("id", "🎉", BadOption, "id '🎉' must be"),
    ("id", "٣", BadOption, "id '٣' must be"),
    ("id", "x" * 101, BadOption, "must be 1 to 100"),
    ("id", LONG, BadOption, "must be 1 to 100"),
    ("id", None, BadOption, "id None must be"),
    ("id", 5, BadOption, "id 5 must be"),
    ("id", b"a", BadOption, "id b'a' must be"),
    ("func", "f", BadFunction, "func 'f' is not a dotted path"),
    ("func", None, BadFunction, "func must be a function or its dotted path"),
    ("func", lambda: None, BadFunction, "it is a lambda"),
    (
        "timing",
        "0 9 * * *",
        BadOption,
        "a Follows, not str: write timing=Cron('0 9 * * *')",
    ),
    ("timing", None, BadOption, "timing must be a Cron, an Every or a Follows, not NoneType"),
    ("timing", Every, BadOption, "timing must be a Cron, an Every or a Follows, not type"),
    ("tz", "", BadZone, "time zone '' is not known"),
    ("tz", "europe/paris", BadZone, "Did you mean 'Europe/Paris'?"),
    ("tz", "../../etc/passwd", BadZone, "is not known"),
    ("tz", 0, BadZone, "time zone 0 is not known"),
    ("tz", [], BadZone, "time zone [] is not known"),
    ("tz", UTC, BadZone, "as in tz='Europe/Paris'"),
    ("start", MONDAY.replace(tzinfo=None), BadInstant, "start 2026-11-16T09:00:00 has no time zone"),
    ("start", "2026-11-16", BadInstant, "start must be a datetime, not str"),
    ("start", "", BadInstant, "start must be a datetime, not str"),
    ("start", 0, BadInstant, "start must be a datetime, not int"),
    ("start", False, BadInstant, "start must be a datetime, not bool"),
    ("start", date(2026, 11, 16), BadInstant, "start must be a datetime, not date"),
    ("end", MONDAY.replace(tzinfo=None), BadInstant, "end 2026-11-16T09:00:00 has no time zone"),
    ("end", [], BadInstant, "end must be a datetime, not list"),
    ("end", timedelta(days=1), BadInstant, "end must be a datetime, not timedelta"),
    ("args", "daily", BadArguments, "args must be a list, not str: write args=[…]"),
    ("args", None, BadArguments, "args must be a list, not NoneType"),
    ("args", {"a": 1}, BadArguments, "args must be a list, not dict"),
    ("args", {1}, BadArguments, "args must be a list, not set"),
    ("args", iter([1]), BadArguments, "args must be a list, not list_iterator"),
    ("args", [lambda: None], BadArguments, "args[0] refers to"),
    ("kwargs", [1], BadArguments, "kwargs must be a dict whose keys are text: write kwargs={'kind': 'daily'}"),
    ("kwargs", None, BadArguments, "kwargs must be a dict whose keys are text"),
    ("kwargs", {1: 2}, BadArguments, "kwargs must be a dict whose keys are text"),
    ("kwargs", {b"a": 2}, BadArguments, "kwargs must be a dict whose keys are text"),
    ("kwargs", {"a": [1, 2, lambda: None]}, BadArguments, "kwargs.a[2] refers to"),
    ("meta", [], BadArguments, "meta must be a dict whose keys are text"),
    ("meta", {"beat": 1}, BadOption, "meta['beat'] is where beat writes"),
    ("meta", {"a": lambda: None}, BadArguments, "meta.a refers to"),
    ("enabled", "no", BadOption, "enabled must be True or False, not 'no'"),
    ("enabled", 0, BadOption, "enabled must be True or False, not 0"),
    ("enabled", None, BadOption, "enabled must be True or False, not None"),
    ("at_front", 1, BadOption, "at_front must be True or False, not 1"),
    ("description", "two\nlines", BadOption, "must be one line of at most 500 characters"),
    ("description", "\x1b[31mred", BadOption, "must be one line"),
    ("description", "\ud800", BadOption, "must be one line"),
    ("description", "x" * 501, BadOption, "must be one line of at most 500 characters"),
    ("description", None, BadOption, "description None must be one line"),
    ("description", b"x", BadOption, "description b'x' must be one line"),
    ("priority", "hgih", BadOption, "must be one of 'high', 'normal', 'low'. Did you mean 'high'?"),
    ("priority", "HIGH", BadOption, "Did you mean 'high'?"),
    ("priority", 1, BadOption, "priority 1 must be one of 'high', 'normal', 'low'"),
    ("priority", None, BadOption, "priority None must be one of"),
    ("priority", ["high"], BadOption, "priority ['high'] must be one of"),
    ("queue", "", BadOption, "queue '' must be a queue's name, at most 200 printable characters, as in 'reports'"),
    ("queue", " ", BadOption, "queue ' ' must be a queue's name"),
    ("queue", " reports", BadOption, "queue ' reports' must be a queue's name"),
    ("queue", "reports\n", BadOption, "must be a queue's name"),
    ("queue", "a\0b", BadOption, "must be a queue's name"),
    ("queue", "\ud800", BadOption, "must be a queue's name"),
    ("queue", "x" * 201, BadOption, "must be a queue's name"),
    ("queue", LONG, BadOption, "must be a queue's name"),
    ("queue", None, BadOption, "queue None must be a queue's name"),
    ("queue", b"reports", BadOption, "must be a queue's name"),
    ("queue", rq.Queue, BadOption, "must be a queue's name"),
    ("job_timeout", 0, BadOption, "job_timeout 0 must be 1 to 1,000,000,000 seconds"),
    ("job_timeout", -2, BadOption, "job_timeout -2 must be 1 to 1,000,000,000 seconds"),
    ("job_timeout", "-2", BadOption, "or -1 for ever"),
    ("job_timeout", 0.5, BadOption, "in whole seconds"),
    ("job_timeout", "soon", BadOption, "or text such as '30s', '15m', '1h'"),
    ("job_timeout", True, BadOption, "job_timeout True must be"),
    ("job_timeout", float("nan"), BadOption, "job_timeout nan must be"),
    ("job_timeout", float("inf"), BadOption, "job_timeout inf must be"),
    ("job_timeout", 10**9 + 1, BadOption, "must be 1 to 1,000,000,000 seconds"),
    ("job_timeout", 10**400, BadOption, "must be 1 to 1,000,000,000 seconds"),
    ("job_timeout", [60], BadOption, "job_timeout [60] must be"),
    ("job_timeout", timedelta(milliseconds=1500), BadOption, "in whole seconds"),
    ("result_ttl", -2, BadOption, "result_ttl -2 must be 0 to 1,000,000,000 seconds"),
    ("result_ttl", "a day", BadOption, "result_ttl 'a day' must be"),
    ("failure_ttl", False, BadOption, "failure_ttl False must be"),
    ("failure_ttl", -0.5, BadOption, "failure_ttl -0.5 must be"),
    ("ttl", 0, BadOption, "ttl 0 must be 1 to 1,000,000,000 seconds"),
    ("ttl", -1, BadOption, "ttl -1 must be 1 to 1,000,000,000 seconds"),
    ("ttl", {}, BadOption, "ttl {} must be"),
    ("retry", 0, BadOption, "retry 0 must be a number of tries, {'max': 3, 'interval': [10, 60]} or rq.Retry(…)"),
    ("retry", -1, BadOption, "retry -1 must be a number of tries"),
    ("retry", True, BadOption, "retry True must be a number of tries"),
    ("retry", 1.5, BadOption, "retry 1.5 must be a number of tries"),
    ("retry", "3", BadOption, "retry '3' must be a number of tries"),
    ("retry", [3], BadOption, "retry [3] must be a number of tries"),
    ("retry", {}, BadOption, "retry {} must be a number of tries"),
    ("retry", {"max": 3, "intervals": 5}, BadOption, "must be a number of tries"),
    ("retry", {"max": 3, "interval": []}, BadOption, "must be a number of tries"),
    ("retry", {"max": 3, "interval": -1}, BadOption, "must be a number of tries"),
    ("retry", {"max": 3, "interval": [5, "10s"]}, BadOption, "must be a number of tries"),
    ("retry", {"max": 3, "enqueue_at_front": 1}, BadOption, "retry's enqueue_at_front must be True or False, not 1"),
    ("retry", {1: 2}, BadOption, "must be a number of tries"),
    ("retry", rq.Retry, BadOption, "must be a number of tries"),
    ("retry", MONDAY, BadOption, "must be a number of tries"),
    ("on_success", "done", BadFunction, "on_success 'done' is not a dotted path: write 'app.hooks.done'"),
    ("on_failure", 5, BadFunction, "on_failure must be a function or its dotted path, not 5"),
    ("on_failure", [plain], BadFunction, "on_failure must be a function"),
    ("on_stopped", lambda: None, BadFunction, "it is a lambda"),
    ("on_stopped", partial(plain), BadFunction, "it is a partial"),
    ("on_stopped", rq.Callback(print), BadFunction, "it is a builtin"),
    ("serializer", "yaml", BadOption, "serializer 'yaml' must be one of 'pickle', 'json'"),
    ("serializer", "JSON", BadOption, "Did you mean 'json'?"),
    ("serializer", None, BadOption, "serializer None must be one of"),
    ("serializer", json, BadOption, "must be one of 'pickle', 'json'"),
    ("serializer", pickle, BadOption, "must be one of 'pickle', 'json'"),
    ("serializer", type("JSONSerializer", (), {}), BadOption, "must be one of 'pickle', 'json'"),
]


@pytest.mark.parametrize(
    ("name", "value", "kind", "words"), BAD, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(BAD)]
)
def test_a_value_that_cannot_be_is_refused(name: str, value: Any, kind: type[DeclarationError], words: str) -> None:
    assert words in refused(kind, lambda: with_option(name, value))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_value_is_refused_by_the_name_of_its_option(name: str, hostile: Any) -> None:
    with pytest.raises(DeclarationError, match="^(tz|time zone) " if name == "tz" else name):
        with_option(name, hostile())


@pytest.mark.parametrize("name", OPTIONS)
def test_a_number_too_long_to_print_is_refused_for_every_option(name: str) -> None:
    assert not accepted(lambda: with_option(name, 10**5000))


anything_at_all = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=9)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas()
    | st.dates()
    | st.complex_numbers()
    | st.lists(st.integers() | st.text(max_size=5), max_size=3)
    | st.dictionaries(st.text(max_size=5) | st.integers(), st.integers(), max_size=3)
    | st.tuples(st.integers())
    | st.sets(st.integers(), max_size=3)
    | st.uuids()
    | st.sampled_from([*HOSTILE, plain, rq.Retry(2), rq.Callback("a.b"), Cron("@daily"), Every(5), object, ...])
)


@given(st.sampled_from(OPTIONS), anything_at_all)
@settings(max_examples=examples(1_000), deadline=None)
@example("start", datetime.max.replace(tzinfo=UTC))
@example("end", datetime.min.replace(tzinfo=UTC))
def test_any_value_of_any_option_is_accepted_or_refused(name: str, value: object) -> None:
    if accepted(lambda: with_option(name, value)):
        json.dumps(with_option(name, value).definition())  # what is accepted can be written down


@given(st.text() | st.from_regex(r"[\w-]{1,101}"))
@settings(max_examples=examples(200), deadline=None)
def test_an_id_is_what_rq_takes_as_part_of_a_job_id(text: str) -> None:
    plain_text = text.isascii() and text.replace("_", "a").replace("-", "a").isalnum()
    assert accepted(lambda: with_option("id", text)) == (plain_text and 1 <= len(text) <= 100)


@given(st.text(st.characters(exclude_categories=())))
@settings(max_examples=examples(200), deadline=None)
def test_a_queue_that_is_accepted_can_be_written_on_one_line(text: str) -> None:
    if accepted(lambda: with_option("queue", text)):
        assert text.encode().decode().splitlines() == [text.strip()]


# --- what is accepted, and the one form it takes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("id", "daily-report_2", "daily-report_2"),
        ("id", "x" * 100, "x" * 100),
        ("id", Queues.REPORTS, "reports"),
        ("func", plain, "tests.support.declared.plain"),
        ("tz", None, "UTC"),
        ("tz", "Europe/Paris", "Europe/Paris"),
        ("args", [1, 2], (1, 2)),
        ("args", (1, 2), (1, 2)),
        ("kwargs", {"a b": 1}, {"a b": 1}),
        ("meta", {"team": "data"}, {"team": "data"}),
        ("enabled", False, False),
        ("description", "", ""),
        ("description", "Größe 🎉", "Größe 🎉"),
        ("description", "x" * 500, "x" * 500),
        ("description", Queues.REPORTS, "reports"),
        ("priority", "low", "low"),
        ("priority", Queues.HIGH, "high"),
        ("queue", "reports", "reports"),
        ("queue", "a b:c/ü", "a b:c/ü"),
        ("queue", "x" * 200, "x" * 200),
        ("queue", Queues.REPORTS, "reports"),
        ("job_timeout", None, None),
        ("job_timeout", 180, 180),
        ("job_timeout", 180.0, 180),
        ("job_timeout", "180", 180),
        ("job_timeout", "3m", 180),
        ("job_timeout", "1h30m", 5400),
        ("job_timeout", timedelta(minutes=3), 180),
        ("job_timeout", -1, -1),
        ("job_timeout", "-1", -1),
        ("job_timeout", 10**9, 10**9),
        ("job_timeout", Number.THREE, 3),
        ("result_ttl", 0, 0),
        ("result_ttl", -1, -1),
        ("result_ttl", "1d", 86_400),
        ("failure_ttl", 0, 0),
        ("failure_ttl", "2w", 1_209_600),
        ("ttl", 1, 1),
        ("ttl", "15m", 900),
        ("retry", None, None),
        ("retry", 1, Retry(max=1)),
        ("retry", 3, Retry(max=3)),
        ("retry", Number.THREE, Retry(max=3)),
        ("retry", {"max": 3}, Retry(max=3)),
        ("retry", {"max": 3, "interval": 10}, Retry(max=3, intervals=(10,))),
        ("retry", {"max": 3, "interval": (10, 60)}, Retry(max=3, intervals=(10, 60))),
        ("retry", {"max": 3, "enqueue_at_front": True}, Retry(max=3, enqueue_at_front=True)),
        ("retry", Retry(max=3, intervals=(5, 6)), Retry(max=3, intervals=(5, 6))),
        ("retry", rq.Retry(max=3), Retry(max=3, intervals=(0,))),
        ("retry", SimpleNamespace(max=3, intervals=[5]), Retry(max=3, intervals=(5,))),  # as an older RQ made it
        ("retry", rq.Retry(max=3, interval=10), Retry(max=3, intervals=(10,))),
        ("retry", rq.Retry(max=3, interval=[10, 60]), Retry(max=3, intervals=(10, 60))),
        ("on_success", None, None),
        ("on_success", "app.hooks.done", Callback(func="app.hooks.done")),
        ("on_success", Queues.HOOK, Callback(func="app.hooks.done")),
        ("on_success", plain, Callback(func="tests.support.declared.plain")),
        ("on_failure", Callback(func="app.f", timeout=5), Callback(func="app.f", timeout=5)),
        ("on_failure", rq.Callback("app.hooks.done"), Callback(func="app.hooks.done", timeout=60)),
        ("on_failure", rq.Callback(plain, timeout="2m"), Callback(func="tests.support.declared.plain", timeout=120)),
        ("on_stopped", rq.Callback(plain, timeout=-1), Callback(func="tests.support.declared.plain", timeout=-1)),
        ("serializer", "pickle", "pickle"),
        ("serializer", "json", "json"),
        ("serializer", Queues.PICKLE, "pickle"),
        ("serializer", DefaultSerializer, "pickle"),
        ("serializer", JSONSerializer, "json"),
        ("serializer", "rq.serializers.JSONSerializer", "json"),
        ("serializer", "rq.serializers.DefaultSerializer", "pickle"),
    ],
)
def test_a_value_is_kept_in_its_one_form(name: str, value: Any, kept: object) -> None:
    found = getattr(with_option(name, value), name)
    assert found == kept
    assert type(found) is type(kept) or name in {"kwargs", "meta"}


def test_a_number_of_an_enum_becomes_a_plain_number_in_a_retry() -> None:
    retry = rq_options.retry({"max": Number.THREE, "interval": [Number.THREE]})
    assert retry is not None
    assert {type(retry.max), *map(type, retry.intervals)} == {int}


@pytest.mark.parametrize(("value", "name"), [(Retry(max=3), "max"), (Callback(func="app.f"), "func")])
def test_a_retry_and_a_callback_cannot_be_changed(value: Any, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)


def test_a_job_that_waits_for_ever_is_not_offered() -> None:
    assert "for ever" not in refused(BadOption, lambda: with_option("ttl", 0))


@pytest.mark.parametrize("name", ["kwargs", "meta"])
def test_a_mapping_of_a_schedule_cannot_be_written_to(name: str) -> None:
    mapping = getattr(with_option(name, {"a": 1}), name)
    with pytest.raises(TypeError, match="does not support item assignment"):
        mapping["a"] = 2


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("quee", "there is no option 'quee'. Did you mean 'queue'?"),
        ("timeout", "there is no option 'timeout'. Did you mean 'job_timeout'?"),
        ("Queue", "Did you mean 'queue'?"),
        ("timezone", "there is no option 'timezone'. Did you mean 'tz'?"),
        ("interval", "there is no option 'interval'. Did you mean 'every'?"),
        ("cron", "there is no option 'cron'. The expression is the first argument, as in @periodic('0 9 * * *')."),
        ("", "there is no option ''."),
        pytest.param(LONG, "there is no option 'xxx", id="a megabyte of x"),
    ],
)
def test_a_name_that_is_no_option_is_refused_with_the_nearest(written: str, words: str) -> None:
    assert words in refused(BadOption, lambda: options.refuse_unknown(["id", written]))
