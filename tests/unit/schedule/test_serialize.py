"""A definition in Redis is read as what was written, by beats that cannot import the application."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.errors import DeclarationError
from beat.schedule import policy_options, routing_options, serialize
from beat.schedule.follows import Follows
from beat.schedule.monitor import Monitor
from beat.schedule.requires import Requires
from beat.schedule.rq_options import Callback, Retry
from beat.schedule.schedule import Schedule
from beat.schedule.source_location import Place
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.chance import examples
from tests.support.declared import Colour, Point
from tests.support.refusals import BadRepr

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SAME = (
    "id", "func", "tz", "enabled", "description", "priority", "queue", "job_timeout", "result_ttl", "failure_ttl",
    "ttl", "at_front", "serializer", "start", "end", "timing", "timing_rev", "follows", "monitor",
    *policy_options.CHECKS, *routing_options.CHECKS,
)  # fmt: skip


def schedule(**given: Any) -> Schedule:
    return Schedule(**{"id": "report", "func": "app.tasks.report", "timing": Every("1h"), **given})


def returns(made: Schedule) -> Schedule:
    """What comes back, after a look at all that must be the same."""
    text = serialize.write(made)
    text.encode()  # as it is sent
    back = serialize.read(text)
    for name in SAME:
        assert getattr(back, name) == getattr(made, name), name
    assert list(islice(back.ticks(NINE), 5)) == list(islice(made.ticks(NINE), 5))
    return back


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"timing": Cron("0 9 * * mon-fri", "America/New_York")},
        {"timing": Cron("*/10 0 9 * * *", "Europe/Paris", seconds=True)},
        {"timing": Cron("@daily", "Asia/Kathmandu")},
        {"timing": Cron("30 2 * * *", "Australia/Lord_Howe"), "tz": "Australia/Lord_Howe"},
        {"timing": Cron("H H(0-5) * * *", "Europe/Paris")},
        {"timing": Every("1s")},
        {"timing": Every("1h30m", phase="7m")},
        {"timing": Every(timedelta(days=366))},
        {"timing": Every("10m", start=NINE), "start": NINE},
        {"timing": Every("10m", start=NINE - timedelta(minutes=3))},
        {"timing": Every("1h"), "tz": "Europe/Paris"},
        {"start": NINE, "end": NINE + timedelta(days=1)},
        {"start": NINE + timedelta(microseconds=1)},
        {"enabled": False, "at_front": True, "priority": "high", "queue": "high"},
        {"serializer": "json", "args": [1, "zwei"], "kwargs": {"a": [None]}},
        {"job_timeout": 60, "result_ttl": 0, "failure_ttl": 3600, "ttl": 5},
        {"job_timeout": -1, "result_ttl": -1},
        {"description": 'täglich “um neun” \\ " 🎉'},
        {"retry": Retry(max=3, intervals=(1, 2)), "on_success": Callback(func="app.hooks.done")},
        {"on_failure": Callback(func="app.hooks.failed", timeout=5), "on_stopped": Callback(func="app.hooks.stopped")},
        {"meta": {"owner": "ops"}},
        {"timing": Follows("extract"), "tz": "Europe/Paris", "overlap": "wait"},
        {"queues": ["a", "b"], "route": "shortest", "group": "reports"},
        {"slow_queue": "slow", "slow_after": "300ms", "slow_times": 3, "slow_window": "1h"},
        {"requires": ["load", Requires("extract", within="1h30m")]},
        {"monitor": "https://hc-ping.com/5f3c?create=1"},
        {"monitor": Monitor("sentry:report", grace="5m", max_runtime="1h30m")},
        {"declared": Place("app/tasks.py", 7, "app.tasks")},
    ],
    ids=str,
)
def test_what_was_written_is_read(given: dict[str, Any]) -> None:
    returns(schedule(**given))


@pytest.mark.parametrize(
    "arguments",
    [
        [Point(1)], [Colour.RED], [b"bytes"], [{1, 2}], [float("nan")], [{(1, 2): 3}], [NINE],
    ],
    ids=str,
)  # fmt: skip
def test_arguments_that_json_cannot_write_are_shown_as_text(arguments: list[Any]) -> None:
    made = schedule(args=arguments, kwargs={"a": arguments})
    back = returns(made)
    written = json.loads(serialize.write(made))
    assert written["args"] == repr(arguments)
    assert written["kwargs"] == repr({"a": arguments})
    assert (back.args, dict(back.kwargs)) == ((), {}), "they stay in the job's template"


def test_arguments_that_json_can_write_are_shown_as_they_are() -> None:
    written = json.loads(serialize.write(schedule(args=[1, "zwei"], kwargs={"a": {"b": [None, True]}})))
    assert (written["args"], written["kwargs"]) == ([1, "zwei"], {"a": {"b": [None, True]}})


def test_long_arguments_are_cut() -> None:
    written = serialize.write(schedule(args=[{"x" * 200_000}]))
    assert len(written) < 3000


@pytest.mark.parametrize("given", [{"args": [BadRepr()]}, {"kwargs": {"a": BadRepr()}}, {"meta": {"a": BadRepr()}}])
def test_arguments_that_cannot_be_shown_do_no_harm(given: dict[str, Any]) -> None:
    returns(schedule(**given))


@pytest.mark.parametrize("given", [{"args": ["\ud800"]}, {"kwargs": {"a": "\udcff"}}, {"meta": {"a": "\ud800"}}])
def test_half_a_character_can_be_sent(given: dict[str, Any]) -> None:
    returns(schedule(**given))


def test_what_is_left_to_rq_is_not_written() -> None:
    assert set(json.loads(serialize.write(schedule()))) == {
        "id", "func", "tz", "enabled", "description", "priority", "queue", "at_front", "serializer", "every",
    }  # fmt: skip


def test_a_definition_is_readable() -> None:
    written = json.loads(serialize.write(schedule(timing=Cron("0 9 * * *", "Europe/Paris"), description="täglich")))
    assert (written["cron"], written["tz"], written["description"]) == ("0 9 * * *", "Europe/Paris", "täglich")
    assert "täglich" in serialize.write(schedule(description="täglich"))


def test_words_of_a_newer_beat_are_left_alone() -> None:
    written = json.loads(serialize.write(schedule()))
    back = serialize.read(json.dumps({**written, "overlap": "skip", "groups": ["a"]}))
    assert back.timing_rev == schedule().timing_rev


# --- garbage ---------------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = json.loads(serialize.write(schedule(timing=Cron("0 9 * * *"), start=NINE)))
NONSENSE = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "\x00", "\ud800", [], [1], {}, {"a": 1}, [["x"]]]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "1", "true", '"every"', '"cron"', "[]", '["every"]', '["cron", "tz"]', "{}", "NaN", "\x00",
        '{"every": 1}', '{"cron": "0 9 * * *"}', "[" * 100_000, '{"every":' * 50_000, "9" * 10_000,
        '{"id": ' + "9" * 9999,
        "\ufffd", json.dumps({**GOOD, "tz": "Europe/Atlantis"}), json.dumps({**GOOD, "tz": "../../etc/passwd"}),
        json.dumps({**GOOD, "cron": "0 0 30 2 *"}), json.dumps({**GOOD, "start": "yesterday"}),
        json.dumps({**GOOD, "end": "0001-01-01T00:00:00+14:00"}), json.dumps({**GOOD, "every": 1e400}),
        json.dumps({**GOOD, "every": "1h", "phase": "2h"}),
        json.dumps({**GOOD, "start": GOOD["start"], "end": GOOD["start"]}),
        json.dumps({**GOOD, "id": "a b"}), json.dumps({**GOOD, "func": "lambda"}),
    ],
    ids=lambda text: repr(text[:30]),
)  # fmt: skip
def test_what_is_no_definition_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        serialize.read(text)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", [*GOOD, "every", "phase", "anchor", "seconds", "end"])
@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_a_wrong_value_is_refused_or_read_and_nothing_else(name: str, value: Any) -> None:
    spoilt = {**GOOD, name: value}
    try:
        back = serialize.read(json.dumps(spoilt))
    except DeclarationError:
        return
    back.after(NINE)
    serialize.write(back)


@pytest.mark.parametrize("name", ["id", "func", "cron", "tz"])
def test_a_missing_value_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError):
        serialize.read(json.dumps({key: value for key, value in GOOD.items() if key != name}))


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
)


@settings(max_examples=examples(300))
@given(st.one_of(plain, st.dictionaries(st.sampled_from([*GOOD, "every", "phase", "anchor", "seconds"]), plain)))
def test_any_json_is_refused_or_read(value: Any) -> None:
    text = json.dumps({**GOOD, **value} if isinstance(value, dict) else value)
    try:
        serialize.read(text).after(NINE)
    except DeclarationError:
        return


# --- any schedule ----------------------------------------------------------------------------------------------------

instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (hypothesis')
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Pacific/Chatham", "Asia/Kathmandu", "Etc/GMT+5"])
expressions = [
    "* * * * *",
    "*/7 3 * * *",
    "0 0 1,15 * fri",
    "59 23 31 12 *",
    "@weekly",
    "5-59/9 * * jan mon",
    "H/9 H * * *",
]
crons = st.builds(Cron, st.sampled_from(expressions), zones)
everies = st.integers(1, 366 * 86_400).flatmap(
    lambda period: st.one_of(
        st.builds(Every, st.just(period), st.integers(0, period - 1)),
        st.builds(Every, st.just(period), start=instants.map(lambda instant: instant.replace(microsecond=0))),
    )
)
values = st.one_of(st.none(), st.integers(), st.text(max_size=9), st.floats(), st.binary(max_size=9))


@settings(max_examples=examples(300))
@given(
    timing=st.one_of(crons, everies),
    bounds=st.lists(instants, max_size=2, unique=True).map(sorted),
    queue=st.sampled_from(["default", "low", "a:b", "größer"]),
    priority=st.sampled_from(["high", "normal", "low"]),
    at_front=st.booleans(),
    description=st.text(max_size=40).filter(str.isprintable),
    args=st.lists(values, max_size=3),
    kwargs=st.dictionaries(st.text(max_size=5), values, max_size=3),
)
def test_any_schedule_is_read_as_it_was_written(timing: Any, bounds: list[datetime], **given: Any) -> None:
    named = dict(zip(("start", "end"), bounds, strict=False))
    returns(schedule(timing=timing, **named, **given))
