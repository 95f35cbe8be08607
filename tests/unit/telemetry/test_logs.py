"""Events as log lines: every event has one, with all that it needs, at the level it deserves."""

from __future__ import annotations

import io
import json
import logging
import string
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from beat.engine.events import COMPONENTS, NAMES, Event
from beat.engine.health import Health
from beat.engine.replies import Replies
from beat.storage.messages import Reply
from beat.telemetry import log_formats, logs
from tests.support.emitted import Emitted, emitted
from tests.support.process_pool import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    assert set(logs.LINES) == set(NAMES)


def test_of_every_event_is_known_which_part_of_a_beat_tells_it() -> None:
    assert set(COMPONENTS) == set(NAMES)


def test_every_part_that_tells_events_is_in_the_guide() -> None:
    text = (ROOT / "docs/guides/monitoring.md").read_text(encoding="utf-8")
    assert [each for each in set(COMPONENTS.values()) if f"| `{each}` |" not in text] == []


@pytest.mark.parametrize("each", emitted(), ids=lambda each: f"{each.name} at {each.place}")
def test_whoever_tells_an_event_gives_its_line_all_it_needs(each: Emitted) -> None:
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


@pytest.mark.parametrize("name", [name for name in logs.LINES if "the run for" in logs.LINES[name][1]])
def test_a_run_without_a_tick_is_a_manual_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    event = sample(name)
    (line,) = lines(capsys, "text", Event(name, "report", {**event.fields, "tick": ""}))
    assert f"report: the manual run{logs.LINES[name][1].split('{tick}')[1][:5]}" in line


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
    replies.trouble("report", Reply("LOCKED"), 0)
    assert lines(capsys, "text", *events, level="info") == []
    (line,) = lines(capsys, "text", *events)
    assert "DEBUG" in line
    assert "report" in line


@pytest.mark.parametrize("code", ["BADTYPE", "BADSTATE", "BADARG"])
def test_what_cannot_be_used_is_an_error_with_its_schedule(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    events, replies = heard()
    replies.trouble("report", Reply(code, "beat:lock:report is a list"), 0)
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


@pytest.mark.parametrize("name", ["fired", "started", "stopped", "registered", "mended", "redis_back"])
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
    assert read == {"level": "info", "event": "fired", "component": "ticker", "schedule_id": "report", **fields}


def test_the_order_of_the_keys_is_always_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "json", Event("resumed", "report", {"tick": "t", "count": 1, "next_run": "n"}))
    expected = ["time", "level", "message", "event", "component", "schedule_id", "tick", "count", "next_run"]
    assert list(json.loads(line)) == expected


def test_fields_that_a_record_has_of_its_own_keep_their_names_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "json", Event("stuck", fields={"thread": "ticker", "seconds": 9, "name": "web-1"}))
    assert {"thread": "ticker", "name": "web-1"}.items() <= json.loads(line).items()


def bug(words: str) -> Event:
    def fails() -> None:
        raise ValueError(words)

    try:
        fails()
    except ValueError as e:
        return Event("failed", fields={"error": "ValueError", "exception": e})
    raise AssertionError


def test_a_bug_comes_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    text = lines(capsys, "text", bug("on purpose"))
    assert text[1] == "    Traceback (most recent call last):"
    (line,) = lines(capsys, "json", bug("on purpose"))
    assert "on purpose" in json.loads(line)["traceback"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\x0b", "\u2028"], ids=ascii)
def test_no_error_looks_like_a_line_of_its_own(newline: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, *below = lines(capsys, "text", bug(f"x{newline}09:00:00.002 INFO    fired report"))
    assert [line for line in below if not line.startswith("    ")] == []
    assert "fired report" in below[-1]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_traceback_moves_the_cursor(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = "\n".join(lines(capsys, form, bug(CONTROLS)))
    assert shown.replace("\n", "").isprintable()
    assert "\\x1b[31md" in shown


@pytest.mark.parametrize("value", [float("nan"), object(), b"\xff", {1: 2}, None, ["\ud800"]], ids=type)
def test_no_value_spoils_a_line_for_machines(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "json", Event("advice", "report", {"words": value}))
    assert json.loads(line, parse_constant=pytest.fail)["event"] == "advice"
    assert "\\ud800" not in line or "\\\\ud800" in line  # half a character is no JSON to many programs


def test_configuring_twice_writes_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    assert len(lines(capsys, "text", sample("fired"))) == 1


# --- records, for handlers of the user's own -------------------------------------------------------------------------


@pytest.fixture
def record(caplog: pytest.LogCaptureFixture) -> Callable[[Event], logging.LogRecord]:
    log = logging.getLogger("beat")
    log.propagate = True

    def heard(event: Event) -> logging.LogRecord:
        with caplog.at_level("DEBUG", "beat"):
            logs.listen(event)
        return caplog.records[-1]

    return heard


def test_the_fields_of_an_event_are_attributes_of_its_record(record: Callable[[Event], logging.LogRecord]) -> None:
    fields = {"tick": "t", "job_id": "j", "job_name": "app.tasks.report", "priority": "high", "late_ms": 3}
    found = vars(
        record(Event("fired", "report", {**fields, "queue": "default", "queues": ["default"], "next_run": "n"}))
    )
    told = {"event": "fired", "component": "ticker", "schedule_id": "report", "next_run": "n", "queues": ["default"]}
    assert {**fields, **told}.items() <= found.items()
    assert (found["name"], found["levelname"]) == ("beat", "INFO")


def test_names_that_a_record_has_of_its_own_are_given_another(record: Callable[[Event], logging.LogRecord]) -> None:
    found = record(Event("started", fields=dict.fromkeys([*log_formats.RESERVED, "server", "schedules"], 1)))
    assert {name: vars(found)[f"beat_{name}"] for name in log_formats.RESERVED} == dict.fromkeys(
        log_formats.RESERVED, 1
    )
    assert found.name == "beat"


@pytest.mark.parametrize("each", emitted(), ids=lambda each: f"{each.name} at {each.place}")
def test_no_field_takes_the_place_of_what_every_line_has(each: Emitted) -> None:
    assert not each.fields & {"time", "level", "message", "event", "component", "schedule_id", "traceback"}


def test_no_attribute_moves_the_cursor_of_whoever_prints_it(record: Callable[[Event], logging.LogRecord]) -> None:
    found = record(Event("broken", "report", {"code": CONTROLS, "error": [CONTROLS, {CONTROLS: CONTROLS}]}))
    assert str(vars(found)).isprintable()


EMBEDDED = """
import logging
import beat, beat.scheduler, beat.testing
from beat.telemetry import logs
from beat.engine.events import Event
root, log = logging.getLogger(), logging.getLogger("beat")
assert not root.handlers and not log.handlers and log.level == logging.NOTSET and log.propagate
logs.listen(Event("mended", "report"))
logs.listen(Event("retired", "report"))
"""


def test_whoever_embeds_a_beat_configures_logging_and_hears_of_warnings_if_nobody_does() -> None:
    done = subprocess.run([sys.executable, "-c", EMBEDDED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "report: retired: no live beat has declared it for long\n"


# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        "cannot reach redis://ann:canary@db:6379/0",
        "cannot reach 'rediss://:can/ary@canary@db'",
        "cannot reach unix://ann:canary@/run/redis.sock?db=0",
        "cannot reach redis://db/0?password=canary&db=1",
        "POST https://canary@hooks.example/x failed",
        "POST https://ann:canary@hooks.example/x failed",
    ],
)
def test_no_url_shows_its_password(words: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = bug(words).fields["exception"]
    fields = {"error": words, "exception": error, "ids": [words]}
    shown = "\n".join(lines(capsys, form, Event("failed", words, fields)))
    assert "canary" not in shown
    assert "***" in shown


@pytest.mark.parametrize("words", ["ann@example.org wrote", "https://example.org/@ann?x=1", "a=b", "x @ y = z"])
def test_what_is_no_secret_is_shown(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines(capsys, "text", Event("advice", fields={"words": words}))
    assert line.endswith(f" {words}")


# --- a terminal ------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *events: Event, **environ: str) -> list[str]:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    logs.configure("debug", "text")
    for event in events:
        logs.listen(event)
    return stream.getvalue().splitlines()


def test_on_a_terminal_level_and_schedule_stand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = shown_on(Terminal(), monkeypatch, Event("retired", "night-shift"))
    assert "\x1b[33mWARNING\x1b[0m \x1b[1mnight-shift\x1b[0m: retired" in line
    (line,) = shown_on(Terminal(), monkeypatch, Event("waiting", "a", {"tick": "aa", "behind": "a"}))
    assert line.count("\x1b[1m") == 1  # once is enough, and not within a word
    assert "\x1b[32mINFO   \x1b[0m \x1b[1ma\x1b[0m waits with its tick aa: a has" in line


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True),
    ],
    ids=["terminal", "no-color", "both", "dumb", "pipe", "forced"],
)
def test_colours_are_for_terminals(
    stream: type[io.StringIO], environ: dict[str, str], *, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = shown_on(stream(), monkeypatch, sample("mended"), **environ)
    assert ("\x1b" in line) is coloured


def test_a_beat_without_stderr_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    logs.configure("debug", "text")
    logs.listen(sample("mended"))


def test_lines_of_other_rooms_say_which_room_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logging.getLogger("beat.engine.observers").warning("a listener\nfailed", extra={"listener": "x"})
    (line,) = capsys.readouterr().err.splitlines()
    read = json.loads(line)
    assert (read["component"], read["message"], read["listener"]) == ("observers", "a listener\\nfailed", "x")
