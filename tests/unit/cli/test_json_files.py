"""Schedules as a document: what `beat list --json` prints is what `beat add --file` reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from beat.cli import json_files
from beat.cli.json_files import Unread
from beat.client.add import Wanted
from beat.config import sources
from beat.errors import BadOption
from beat.schedule import from_options, serialize
from beat.schedule.follows import Follows
from beat.schedule.requires import Requires
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every

REPORT = {"id": "report", "func": "app.tasks.report", "cron": "0 9 * * *"}


def read(*entries: Any) -> list[Wanted | Unread]:
    return json_files.read(json.dumps({"schema_version": 1, "schedules": entries}))[0]


def wanted(**more: Any) -> Wanted:
    [found] = read(REPORT | more)
    assert isinstance(found, Wanted)
    return found


def refusal(entry: Any) -> str:
    [found] = read(entry)
    assert isinstance(found, Unread)
    return str(found.error)


def test_a_schedule_has_the_options_of_periodic() -> None:
    found = wanted(tz="Europe/Berlin", kwargs={"kind": "daily"}, queue="reports", description="x", jitter="5m")
    assert found[:3] == ("report", "app.tasks.report", "0 9 * * *")
    assert found.options == {
        "tz": "Europe/Berlin", "kwargs": {"kind": "daily"}, "queue": "reports", "description": "x", "jitter": "5m",
    }  # fmt: skip


def test_what_a_list_tells_beside_them_is_left_out() -> None:
    told = {"state": "active", "next_run": "2026-11-18T09:00:00Z", "version": 3, "every": None}
    assert wanted(**told).options == {}


def test_every_option_can_be_written_as_json_and_is_read_back_as_the_same_schedule() -> None:
    given: dict[str, Any] = {
        "tz": "Europe/Berlin",
        "start": "2026-01-01T00:00:00Z",
        "end": "2027-01-01T00:00:00+01:00",
        "retry": {"max": 3, "intervals": [10, 60], "enqueue_at_front": False},
        "on_success": {"func": "app.hooks.done", "timeout": 30},
        "on_failure": "app.hooks.failed",
        "exclude": ["2026-12-24"],
        "args": [1, "x"],
        "meta": {"a": 1},
        "job_timeout": 600,
        "misfire": "all",
        "catchup_limit": 5,
        "overlap": "wait",
        "max_waiting": 3,
    }
    found = wanted(**given)
    made = from_options.declare(found.func, found.cron, {**found.options, "id": found.id}, sources.Defaults())
    assert (made.start, made.end) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, tzinfo=UTC))
    assert made.retry is not None
    assert made.retry.intervals == (10, 60)
    assert made.on_success is not None
    assert (made.on_success.func, made.on_success.timeout) == ("app.hooks.done", 30)
    assert (made.args, made.max_waiting, made.catchup_limit) == ((1, "x"), 3, 5)


PLACED: list[dict[str, Any]] = [
    {"timing": Every("1h"), "queues": ["a", "b"], "route": "shortest", "group": "reports", "slow_queue": "slow"},
    {"timing": Follows("extract"), "requires": [Requires("load", within="1h")], "slow_queue": "s", "slow_after": "2s"},
    {"timing": Every("1h"), "requires": ["load", "extract"]},
]


@pytest.mark.parametrize("given", PLACED, ids=str)
def test_the_policies_of_place_come_back_from_a_definition(given: dict[str, Any]) -> None:
    made = Schedule(id="report", func="app.tasks.report", **given)
    [found] = read({**json.loads(serialize.write(made)), "source": "api"})
    assert isinstance(found, Wanted)
    options: Any = {**found.options, "id": found.id}
    assert from_options.declare(found.func, found.cron, options, sources.Defaults()) == made


def test_what_comes_from_code_is_left_to_it() -> None:
    assert read(REPORT | {"source": "code"}) == [Unread("report", None)]
    assert isinstance(read(REPORT | {"source": "api"})[0], Wanted)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (5, "it is no object: write"),
        ({"func": "app.x", "every": "5m"}, "it has no id: write"),
        ({"id": "x", "every": "5m"}, "it has no func: write"),
        ({"id": "x", "func": 7}, "it has no func: write"),
        (REPORT | {"start": "soon"}, "start 'soon' is no time: write 2026-11-20T09:00:00Z"),
    ],
)
def test_what_cannot_be_one_is_refused_alone(entry: Any, words: str) -> None:
    assert refusal(entry).startswith(words)


def test_an_entry_without_a_name_is_called_by_its_number() -> None:
    assert [each.id for each in read(REPORT, 5, {"func": "x"})] == ["report", "entry 2", "entry 3"]


def test_a_word_that_looks_like_an_option_is_warned_of_once() -> None:
    text = json.dumps(
        [REPORT | {"jiter": "5m"}, REPORT | {"jiter": "5m", "next_run": "x", "last_run": "y", "app": "z"}]
    )
    assert json_files.read(text)[1] == ["'jiter' is no option, and is left out. Did you mean 'jitter'?"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is no JSON: .*; it must hold what `beat list --json` prints"),
        ("{", "the file is no JSON"),
        ("[" * 100_000, "the file is no JSON"),
        ("5", "the file holds no list of schedules: write"),
        ("{}", "the file holds no list of schedules"),
        ('{"schedules": {}}', "the file holds no list of schedules"),
        ('{"schema_version": 2, "schedules": []}', "the file has schema_version 2: this beat reads 1"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_such_document_is_refused_whole(text: str, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        json_files.read(text)
