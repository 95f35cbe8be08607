"""Format log lines: as text for people, in colour on a terminal, or as one JSON object per line for machines.

No user's text can control the terminal or break a line, and no URL shows its password.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from beat.config import redis_url
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

RESERVED = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that each log record has; an event's field `name` among them becomes `beat_name`."""
_COLOURS = {logging.DEBUG: "2", logging.INFO: "32", logging.WARNING: "33", logging.ERROR: "1;31"}


def attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event under names that a log record accepts."""
    return {f"beat_{name}" if name in RESERVED else name: value for name, value in fields.items()}


def plain(value: object) -> Any:
    """Return the value as JSON data with printable text; convert values of other types to text."""
    if isinstance(value, str):  # the most frequent type
        return printable(value)
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {printable(str(name)): plain(each) for name, each in value.items()}
    return printable(str(value))


def printable(text: str, but: str = "") -> str:
    """Return the text without passwords, and with unprintable characters escaped, except those in `but`."""
    text = redis_url.hidden(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text)


def form(name: str, stream: TextIO | None) -> logging.Formatter:
    """Return the formatter of that name for lines that go to `stream`."""
    return Json() if name == "json" else Text(coloured=_is_coloured(stream))


class Text(logging.Formatter):
    """Lines such as `09:00:00.002 INFO    fired report …`; coloured, the level has a colour and the id is bold."""

    def __init__(self, *, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback if any, indented so that it never looks like a log line."""
        time, level, words = f"{_time(record)[11:19]}.{int(record.msecs):03d}", f"{record.levelname:7}", _words(record)
        if self._coloured:
            time, level = _painted("2", time), _painted(_COLOURS.get(record.levelno, "0"), level)
            words = _with_its_schedule(words, getattr(record, "schedule_id", ""))
        line = f"{time} {level} {words}"
        return f"{line}\n{textwrap.indent(_traceback(self, record), '    ')}" if record.exc_info else line


class Json(logging.Formatter):
    """One JSON object per line: time, level and message, then the fields of the event in their order."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object, with the traceback in it if any."""
        fields = {"time": _time(record), "level": record.levelname.lower(), "message": _words(record)}
        if "." in record.name:
            fields["component"] = record.name.rpartition(".")[2]
        for name, value in vars(record).items():
            if name not in RESERVED:
                own = name.removeprefix("beat_")
                fields[own if own in RESERVED else name] = plain(value)
        if record.exc_info:
            fields["traceback"] = _traceback(self, record)
        return json.dumps(fields)


def _time(record: logging.LogRecord) -> str:
    return clock.text(clock.from_ms(int(record.created * 1000)))


def _words(record: logging.LogRecord) -> str:
    return printable(record.getMessage())


def _traceback(form: logging.Formatter, record: logging.LogRecord) -> str:
    return printable(form.formatException(record.exc_info or sys.exc_info()), but="\n")


def _is_coloured(stream: TextIO | None) -> bool:
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _painted(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _with_its_schedule(words: str, schedule_id: str) -> str:
    """Return the text with the first mention of the schedule's id in bold."""
    if not schedule_id:
        return words
    name = rf"(?<![\w-]){re.escape(schedule_id)}(?![\w-])"
    return re.sub(name, lambda found: _painted("1", found[0]), words, count=1)
