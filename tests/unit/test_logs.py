"""Events as log lines: every event has one, with all that it needs, at the level it deserves."""

from __future__ import annotations

import json
import logging
import string
from typing import TYPE_CHECKING

import pytest

from beat import logs
from beat.event import NAMES, Event
from beat.health import Health
from beat.protocol import Reply
from beat.replies import Replies
from tests.unit.emitted import Emitted, emitted

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROLS = "a\nb\r\tc\x1b[31md\x00e\x7f\u2028f\ud800"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """What `configure` changes is put back."""
    log = logging.getLogger("beat")
    before = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.level, log.propagate = before


def lines(capsys: pytest.CaptureFixture[str], form: str, *events: Event, level: str = "debug") -> list[str]:
    logs.configure(level, form)
    for event in events:
        logs.listen(event)
    return capsys.readouterr().err.splitlines()


def placeholders(name: str) -> dict[str, str]:
    """The fields that a line needs, each with the noun that it counts."""
    return {field: noun or "" for _, field, noun, _ in string.Formatter().parse(logs.LINES[name][1]) if field}


def sample(name: str) -> Event:
    values: dict[str, object] = {
        field: 3 if noun else f"the {field}" for field, noun in placeholders(name).items() if field != "schedule_id"
    }
    return Event(name, "report", values)


# --- every event -----------------------------------------------------------------------------------------------------


def test_every_event_has_a_line() -> None:
    assert set(logs.LINES) == {*NAMES, "would_fire"}


@pytest.mark.parametrize("each", emitted(), ids=lambda each: f"{each.name} at {each.place}")
def test_whoever_tells_an_event_gives_its_line_all_it_needs(each: Emitted) -> None:
    if each.name == "would_fire":  # a fired one by another name
        assert set(placeholders("would_fire")) <= set(placeholders("fired"))
        return
    missing = set(placeholders(each.name)) - each.fields - {"schedule_id"}
    assert not missing


@pytest.mark.parametrize("each", emitted(), ids=lambda each: f"{each.name} at {each.place}")
def test_whoever_names_a_schedule_in_a_line_says_which(each: Emitted) -> None:
    assert each.with_schedule or "schedule_id" not in placeholders(each.name)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", logs.LINES)
def test_every_event_is_one_line(name: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, form, sample(name))
    assert logging.getLevelName(logs.LINES[name][0]).lower() in line.lower()
    for field, noun in placeholders(name).items():
        shown = "report" if field == "schedule_id" else f"3 {noun}s" if noun else f"the {field}"
        assert shown in line


@pytest.mark.parametrize(
    ("number", "words"), [(1, "skipped 1 tick of"), (0, "skipped 0 ticks of"), (12_345, "skipped 12,345 ticks of")]
)
def test_numbers_are_counted_as_people_do(number: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "text", Event("skipped", "report", {"count": number, "tick": "t", "reason": "misfire"}))
    assert words in line


# --- levels ----------------------------------------------------------------------------------------------------------


def heard() -> tuple[list[Event], Replies]:
    events: list[Event] = []
    return events, Replies(events.append)


def test_a_refused_enqueue_is_an_error_with_schedule_function_and_cause(capsys: pytest.CaptureFixture[str]) -> None:
    events, replies = heard()
    replies.refused([("report", "app.tasks.report")], OSError("OOM"))
    (line,) = lines(capsys, "text", *events)
    assert "ERROR" in line
    assert "report: app.tasks.report is not enqueued yet, the tick stays due: OSError: OOM" in line


def test_a_schedule_that_another_beat_holds_is_a_detail(capsys: pytest.CaptureFixture[str]) -> None:
    events, replies = heard()
    replies.trouble("report", Reply("LOCKED"))
    assert lines(capsys, "text", *events, level="info") == []
    (line,) = lines(capsys, "text", *events)
    assert "DEBUG" in line
    assert "report" in line


@pytest.mark.parametrize("code", ["BADTYPE", "BADSTATE", "BADARG"])
def test_what_cannot_be_used_is_an_error_with_its_schedule(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    events, replies = heard()
    replies.trouble("report", Reply(code, "beat:lock:report is a list"))
    (line,) = lines(capsys, "text", *events, level="error")
    assert f"report: cannot be used: {code}: beat:lock:report is a list" in line


def test_a_redis_that_is_away_is_an_error_and_its_return_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Event] = []
    health = Health(events.append)
    health.failed("ticker", ConnectionError("gone"))
    health.worked("ticker")
    away, back = lines(capsys, "text", *events)
    assert "ERROR" in away
    assert "ConnectionError: gone" in away
    assert "INFO" in back


@pytest.mark.parametrize("name", ["fired", "started", "stopped", "registered", "mended", "redis_back", "would_fire"])
def test_what_is_as_it_should_be_is_news(name: str) -> None:
    assert logs.LINES[name][0] == logging.INFO


@pytest.mark.parametrize("name", ["locked", "fenced", "gone", "passed_on"])
def test_what_happens_between_beats_is_a_detail(name: str) -> None:
    assert logs.LINES[name][0] == logging.DEBUG


@pytest.mark.parametrize("name", ["skipped", "moved", "older", "repaired", "advice", "clock_backward"])
def test_what_an_operator_should_know_is_a_warning(name: str) -> None:
    assert logs.LINES[name][0] == logging.WARNING


@pytest.mark.parametrize(
    ("reason", "level"), [("misfire", "WARNING"), ("too_old", "WARNING"), ("overlap", "INFO"), ("excluded", "INFO")]
)
def test_what_the_code_asked_for_is_no_warning(reason: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    [line] = lines(capsys, "text", Event("skipped", "report", {"tick": "then", "count": 1, "reason": reason}))
    assert level in line


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "text", sample("fired"), level="warning") == []


# --- forms -----------------------------------------------------------------------------------------------------------


def test_a_line_for_people_begins_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "text", sample("mended"))
    time, level, rest = line.split(maxsplit=2)
    assert (len(time), time[2], time[5], time[8]) == (12, ":", ":", ".")
    assert (level, rest) == ("INFO", "report: can be used again")


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_would_move_the_cursor_is_shown_as_text(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    event = Event("broken", CONTROLS, {"code": CONTROLS, "error": CONTROLS})
    (line,) = lines(capsys, form, event)
    assert line.isprintable()
    assert "\\x1b" in line or "\\u001b" in line


def test_lists_are_written_with_commas(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "text", Event("reseeded", fields={"count": 2, "ids": ["a", "b\n"]}))
    assert line.endswith("a, b\\n")


def test_braces_and_percents_are_nothing_special(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "text", Event("advice", fields={"words": "{0} {x} %s %d {"}))
    assert line.endswith("{0} {x} %s %d {")


def test_a_line_for_machines_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"tick": "2026-11-16T09:00:00Z", "late_ms": 3, "job_id": "j", "queue": "default", "next_run": ""}
    (line,) = lines(capsys, "json", Event("fired", "report", fields))
    read = json.loads(line)
    assert read.pop("time").endswith("Z")
    assert read.pop("message").startswith("fired report for 2026-11-16T09:00:00Z")
    assert read == {"level": "info", "event": "fired", "schedule_id": "report", **fields}


def test_a_bug_comes_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        int("on purpose")
    except ValueError as e:
        event = Event("failed", fields={"error": "ValueError", "exception": e})
    text = lines(capsys, "text", event)
    assert text[1] == "Traceback (most recent call last):"
    (line,) = lines(capsys, "json", event)
    assert "on purpose" in json.loads(line)["traceback"]


@pytest.mark.parametrize("value", [float("nan"), object(), b"\xff", {1: 2}, None, ["\ud800"]], ids=type)
def test_no_value_spoils_a_line_for_machines(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "json", Event("advice", "report", {"words": value}))
    assert json.loads(line)["event"] == "advice"


def test_configuring_twice_writes_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    assert len(lines(capsys, "text", sample("fired"))) == 1
