"""rq-scheduler: its keys as it writes them, on a real Redis, and what each job becomes."""

from __future__ import annotations

import json
import pickle
import uuid
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.errors import BadCron, BadSource, NoSource
from beat.migrate import crontab_package, rq_scheduler
from beat.migrate.result import NotCarried
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.cron.fields import DAY, FIVE, SIX
from tests.migrate.house import House, only, why

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.dev.embedded import PrivateRedis
    from beat.migrate import Reading
    from beat.timing.cron.fields import Field

NINE = datetime(2026, 11, 18, 9, tzinfo=UTC)


class User:
    """What no reader of plain data may make."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("unpickled",)


class Predecessor:
    """What rq-scheduler 0.14 with RQ 2 leaves in Redis."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis

    def add(
        self,
        func: str = "app.tasks.add",
        *args: Any,
        at: datetime = NINE,
        name: str | None = None,
        meta: dict[str, Any] | None = None,
        kwargs: dict[str, Any] | None = None,
        instance: object = None,
        dumps: Any = pickle.dumps,
        **fields: Any,
    ) -> str:
        name = name or str(uuid.uuid4())
        job = {
            "created_at": "2026-11-01T00:00:00.000000Z",
            "data": zlib.compress(dumps((func, instance, args, kwargs or {}))),
            "success_callback_name": "",
            "failure_callback_name": "",
            "stopped_callback_name": "",
            "started_at": "",
            "origin": "default",
            "description": f"{func}()",
            "timeout": 180,
            "result_ttl": -1,
            "status": "scheduled",
            "meta": dumps(meta or {}),
            **fields,
        }
        self.redis.hset(f"rq:job:{name}", mapping={k: v for k, v in job.items() if v is not None})
        self.redis.zadd("rq:scheduler:scheduled_jobs", {name: int(at.timestamp())})
        return name

    def cron(self, rule: str, **more: Any) -> str:
        meta = {"cron_string": rule, "use_local_timezone": False, **more.pop("meta", {})}
        return self.add(meta=meta, **more)

    def read(self, tz: str | None = "UTC") -> Reading:
        return rq_scheduler.read(self.redis, tz=tz)


@pytest.fixture
def predecessor(redis: Redis, server: PrivateRedis) -> Iterator[Predecessor]:
    redis.flushall()
    with Redis.from_url(server.url) as raw:
        yield Predecessor(raw)


def test_an_interval_is_counted_from_its_next_run(predecessor: Predecessor) -> None:
    predecessor.add("app.tasks.add", 1, [2], kwargs={"a": None}, meta={"interval": 90}, at=NINE)
    found = only(predecessor.read())
    assert (found.func, found.every, found.cron, found.tz) == ("app.tasks.add", "1m30s", None, None)
    assert (found.args, found.kwargs, found.queue) == ((1, [2]), {"a": None}, "default")
    assert found.options == {"start": NINE}
    ticks = found.schedule().ticks(NINE - timedelta(days=1), NINE + timedelta(minutes=4))
    assert list(ticks) == [NINE + timedelta(seconds=90) * n for n in range(3)]


def test_an_expression_is_in_the_zone_of_the_host(predecessor: Predecessor) -> None:
    predecessor.cron("0 9 * * 1-5", at=datetime(2026, 11, 18, 8, tzinfo=UTC))
    found = only(predecessor.read("Europe/Paris"))
    assert (found.cron, found.every, found.tz, found.notes) == ("0 9 * * 1-5", None, "Europe/Paris", ())
    assert found.options == {}


@pytest.mark.parametrize("local", [False, True])
def test_use_local_timezone_changes_nothing(predecessor: Predecessor, *, local: bool) -> None:
    predecessor.cron("0 9 * * *", meta={"use_local_timezone": local}, at=datetime(2026, 11, 18, 14, tzinfo=UTC))
    assert only(predecessor.read("America/New_York")).notes == ()


def test_a_next_run_that_is_no_tick_in_that_zone_proves_another(predecessor: Predecessor) -> None:
    predecessor.cron("0 9 * * *", at=datetime(2026, 11, 18, 14, tzinfo=UTC))
    [note] = only(predecessor.read("UTC")).notes
    assert "runs it next at 2026-11-18T14:00:00Z, which is no tick of '0 9 * * *' in UTC" in note


def test_without_a_zone_the_one_of_this_host_is_taken_and_said(
    predecessor: Predecessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    predecessor.cron("0 18 * * *", at=NINE)
    reading = predecessor.read(None)
    assert only(reading).tz == "Asia/Tokyo"
    assert any("here taken to be in Asia/Tokyo" in note for note in reading.notes)


@pytest.mark.parametrize(("repeat", "left"), [(None, None), (5, 5), (1, 1), (0, 1), (-1, None)])
def test_what_is_left_of_a_repetition_is_kept(predecessor: Predecessor, repeat: int | None, left: int | None) -> None:
    predecessor.add(meta={"interval": 60} | ({} if repeat is None else {"repeat": repeat}))
    assert only(predecessor.read()).options.get("max_runs") == left


def test_rq_s_options_come_along(predecessor: Predecessor) -> None:
    predecessor.cron(
        "0 9 * * *",
        meta={"by": "me", "repeat": 3},
        timeout=600,
        ttl=60,
        result_ttl=30,
        failure_ttl=3600,
        enqueue_at_front=1,
        origin="reports",
        description="The report",
        success_callback_name="app.hooks.done",
        success_callback_timeout=60,
        failure_callback_name="app.hooks.bad",
        failure_callback_timeout=5,
        dependency_ids=json.dumps(["x"]),
    )
    found = only(predecessor.read())
    assert found.queue == "reports"
    assert found.options == {
        "max_runs": 3,
        "job_timeout": 600,
        "ttl": 60,
        "result_ttl": 30,
        "failure_ttl": 3600,
        "at_front": True,
        "description": "The report",
        "on_success": "app.hooks.done",
        "on_failure": "app.hooks.bad",
        "meta": {"by": "me"},
    }
    assert [note.partition(" was ")[0] for note in found.notes] == ["the time-out of its on_failure", "depends_on"]


def test_a_job_of_a_random_id_is_named_for_its_function(predecessor: Predecessor) -> None:
    predecessor.add(meta={"interval": 60}, at=NINE)
    predecessor.add(meta={"interval": 60}, at=NINE + timedelta(seconds=1))
    predecessor.add(meta={"interval": 60}, at=NINE + timedelta(seconds=2), name="nightly report")
    assert [each.id for each in predecessor.read().found] == ["add", "add-2", "nightly-report"]


def test_json_jobs_are_read_too(predecessor: Predecessor) -> None:
    predecessor.add("app.tasks.add", 1, meta={"interval": 60}, dumps=lambda value: json.dumps(value).encode())
    assert only(predecessor.read()).args == (1,)


def test_data_that_is_not_compressed_is_read_as_rq_reads_it(predecessor: Predecessor) -> None:
    predecessor.add(meta={"interval": 60}, data=pickle.dumps(("app.tasks.report", None, (), {})))
    assert only(predecessor.read()).func == "app.tasks.report"


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({}, "it runs once, at 2026-11-18T09:00:00Z"),
        ({"meta": {"cron_string": "0 9 8-14 * mon"}}, "both to match"),
        ({"meta": {"cron_string": "0 9 * * * 2027"}}, "has a year"),
        ({"meta": {"cron_string": "0 0 9 * * * 2027-2030"}}, "has a year"),
        ({"meta": {"cron_string": "0 9 l * *"}}, "beat does not take it"),
        ({"meta": {"cron_string": "nine"}}, "beat does not take it"),
        ({"meta": {"cron_string": 9}}, "its cron_string is 9, not text"),
        ({"meta": {"interval": 0.5}}, "whole seconds"),
        ({"meta": {"interval": -60}}, "between 1 second and 366 days"),
        ({"meta": {"interval": User()}}, "must be a length of time"),
        ({"meta": {1: 2}}, "its meta is not a dict"),
        ({"meta": {"interval": 60}, "data": None}, "is gone, and rq-scheduler would drop it"),
        ({"meta": {"interval": 60}, "data": b"garbage"}, "its call cannot be read"),
        ({"meta": {"interval": 60}, "data": zlib.compress(pickle.dumps(5))}, "its call is not one of RQ's"),
        ({"meta": {"interval": 60}, "data": zlib.compress(b"\0" * 10_000_000)}, "its call cannot be read"),
        ({"meta": {"interval": 60}, "instance": User()}, "the method app.tasks.add of an object"),
        ({"meta": {"interval": 60}, "kwargs": {"user": User()}}, "they hold a builtins.print, not plain data"),
        ({"meta": {"interval": 60}, "func": "__main__.f()"}, "not a dotted path"),
        ({"meta": {"interval": 60}, "origin": "a\nb"}, "queue"),
    ],
)
def test_a_job_that_cannot_move_in_is_left_with_the_reason(
    predecessor: Predecessor, job: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    predecessor.add(**job)
    assert reason in why(predecessor.read())
    assert "unpickled" not in capsys.readouterr().out


def test_objects_in_meta_are_said_and_left(predecessor: Predecessor) -> None:
    predecessor.add(meta={"interval": 60, "user": User()})
    found = only(predecessor.read())
    assert "meta" not in found.options
    assert "its meta was not carried over" in found.notes[0]


def test_a_job_without_its_hash_is_left(predecessor: Predecessor) -> None:
    predecessor.redis.delete(f"rq:job:{predecessor.add(meta={'interval': 60})}")
    predecessor.redis.set("rq:job:odd", "text")
    predecessor.redis.zadd("rq:scheduler:scheduled_jobs", {b"odd": 5, b"\xff": float("inf")})
    assert ["is gone" in left.why for left in predecessor.read().left] == [True, True, True]


def test_all_pages_are_read(predecessor: Predecessor) -> None:
    for n in range(1203):
        predecessor.add(meta={"interval": 60}, name=f"job-{n:04}", at=NINE + timedelta(seconds=n))
    found = predecessor.read().found
    assert [each.id for each in found] == [f"job-{n:04}" for n in range(1203)]


def test_nothing_is_changed_in_redis(predecessor: Predecessor) -> None:
    predecessor.cron("0 9 * * *")
    before = {key: predecessor.redis.dump(key) for key in predecessor.redis.keys()}  # noqa: SIM118 (KEYS)
    predecessor.read()
    assert {key: predecessor.redis.dump(key) for key in predecessor.redis.keys()} == before  # noqa: SIM118


def test_a_redis_without_rq_scheduler_is_said(predecessor: Predecessor) -> None:
    with pytest.raises(NoSource, match="holds nothing of rq-scheduler"):
        predecessor.read()


def test_a_key_of_another_type_is_said(predecessor: Predecessor) -> None:
    predecessor.redis.set("rq:scheduler:scheduled_jobs", "x")
    with pytest.raises(BadSource, match="is not what rq-scheduler keeps there: WRONGTYPE"):
        predecessor.read()


# What the package crontab 1.0.5, with which rq-scheduler 0.14 reads expressions, answers for 1 to 7 November 2026 (a
# Sunday to a Saturday), asked once.
CRONTAB = [
    ("0 9 * * mon-fri", ["02 09:00:00", "03 09:00:00", "04 09:00:00", "05 09:00:00", "06 09:00:00"]),
    ("30 4 1-7 * sun", ["01 04:30:00"]),
    ("0 0 */2 * 1,3", []),
    ("15 3 * 11 sat-sun", ["01 03:15:00", "07 03:15:00"]),
    ("20 4 ? * 7 *", ["01 04:20:00"]),
    ("30 0 6 * * wed *", ["04 06:00:30"]),
    ("0 12 1 * 0", ["01 12:00:00"]),
]


@pytest.mark.parametrize(("rule", "expected"), CRONTAB)
def test_the_printed_python_ticks_as_rq_scheduler_does(
    predecessor: Predecessor, house: House, rule: str, expected: list[str]
) -> None:
    written, seconds = rq_scheduler._expression(rule)  # noqa: SLF001 (to have a next run that fits)
    predecessor.cron(rule, at=Cron(written, "UTC", seconds).after(clock.EPOCH))
    [declared] = house.declared(predecessor.read()).values()
    ticks = declared.ticks(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))
    assert [f"{tick:%d %H:%M:%S}" for tick in ticks] == expected


ANSWERS = json.loads((Path(__file__).parent / "crontab_1_0_5.json").read_text("utf-8"))
"""Each shape of an item → its values by that package, null for what it refuses, `month` for another day each month."""


@pytest.mark.parametrize("column", FIVE, ids=[column.name for column in FIVE])
def test_every_shape_of_every_field_is_read_as_the_package_crontab_reads_it(column: Field) -> None:
    """A range of Sunday alone, as in `sun-sun`, is every day of the week to it."""
    place, moved = FIVE.index(column), 0
    for item, answer in ANSWERS[column.name].items():
        try:
            texts = ["*"] * place + [item or ","] + ["*"] * (4 - place)
            written, seconds = rq_scheduler._expression(" ".join(texts))  # noqa: SLF001 (what is read, alone)
        except (NotCarried, BadCron):
            assert answer in (None, "month"), item
        else:
            moved += 1
            chosen: Any = Cron(written, seconds=seconds).chosen[SIX.index(column)]
            assert answer == list(chosen), item
    assert moved > 20


@pytest.mark.parametrize(
    ("rule", "cron"),
    [
        ("0 9 * * sun-sun", "0 9 * * *"),
        ("0 9 * * 0-0", "0 9 * * *"),
        ("0 9 * * 5-sun", "0 9 * * 0,5,6"),
        ("0-10/20 9 * * *", "0 9 * * *"),
        ("0 9 * * 1/2", "0 9 * * 1,3,5"),
        ("0 9 1-31 * 1", "0 9 * * 1"),
        ("0 9 1-7 * sun-sun", "0 9 1-7 * *"),
    ],
)
def test_what_beat_reads_otherwise_is_written_out(predecessor: Predecessor, rule: str, cron: str) -> None:
    predecessor.cron(rule, at=Cron(cron).after(clock.EPOCH))
    found = only(predecessor.read())
    assert (found.cron, found.notes) == (cron, ())


@pytest.mark.parametrize("weekday", ["*", "1", "sun-sun", "0-6", "1-5", "sun", "sat-sun", "1/2"])
@pytest.mark.parametrize("day", ["*", "1-31", "1-7", "13", "*/2", "31"])
def test_both_days_match_as_in_the_package_crontab(day: str, weekday: str) -> None:
    weekdays = ANSWERS["day-of-week"]
    try:
        written, _ = rq_scheduler._expression(f"0 0 {day} * {weekday}")  # noqa: SLF001 (what is read, alone)
    except NotCarried as e:
        assert "both to match" in str(e)  # noqa: PT017 (some are left, and named)
        return
    first, last = datetime(2026, 11, 1, tzinfo=UTC), datetime(2028, 11, 1, tzinfo=UTC)
    dates = (first + timedelta(days=n) for n in range((last - first).days))
    expected = [
        date
        for date in dates
        if date.day in crontab_package.values(day, DAY) and date.isoweekday() % 7 in weekdays[weekday]
    ]
    assert list(Cron(written).ticks(first, last)) == expected


def test_the_printed_python_declares_what_was_found(predecessor: Predecessor, house: House) -> None:
    predecessor.add("app.tasks.report", "a", meta={"interval": 60, "repeat": 5, "by": "me"}, name="nightly")
    reading = predecessor.read()
    [declared] = house.declared(reading).values()
    assert (declared.id, declared.func, declared.args, declared.max_runs) == (
        "nightly", "app.tasks.report", ("a",), 5,
    )  # fmt: skip
    assert declared.start == NINE
    assert declared == replace(only(reading).schedule(), description=declared.description)
