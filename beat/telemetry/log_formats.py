"""How log lines look: for people, with colours on a terminal, or for machines, one JSON object a line.

Nothing that a user wrote can steer the terminal or break a line, and no URL shows its password.
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
"""What a log record has of its own; a field of that name is its attribute `beat_name`."""
_COLOURS = {logging.DEBUG: "2", logging.INFO: "32", logging.WARNING: "33", logging.ERROR: "1;31"}


def attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event, as a log record takes them."""
    return {f"beat_{name}" if name in RESERVED else name: value for name, value in fields.items()}


def plain(value: object) -> Any:
    """Data that every program and every terminal can read, whatever it was."""
    if isinstance(value, str):  # as nearly all are
        return printable(value)
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {printable(str(name)): plain(each) for name, each in value.items()}
    return printable(str(value))


def printable(text: str, but: str = "") -> str:
    """Without secrets, and with everything escaped that is no character to see, but for some."""
    text = redis_url.hidden(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text)


def form(name: str, stream: TextIO | None) -> logging.Formatter:
    """The form of that name, for lines that go to a stream."""
    return Json() if name == "json" else Text(coloured=_is_coloured(stream))


class Text(logging.Formatter):
    """`09:00:00.002 INFO    fired report …`; on a terminal the level has its colour, and the schedule stands out."""

    def __init__(self, *, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it the traceback if there is one, set in: no error looks like a line of ours."""
        time, level, words = f"{_time(record)[11:19]}.{int(record.msecs):03d}", f"{record.levelname:7}", _words(record)
        if self._coloured:
            time, level = _painted("2", time), _painted(_COLOURS.get(record.levelno, "0"), level)
            words = _with_its_schedule(words, getattr(record, "schedule_id", ""))
        line = f"{time} {level} {words}"
        return f"{line}\n{textwrap.indent(_traceback(self, record), '    ')}" if record.exc_info else line


class Json(logging.Formatter):
    """One object a line: when, how serious, in words; then what a program needs, in the order in which it was told."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, with the traceback in it if there is one."""
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
    """The first time that it is named, as a word of its own."""
    if not schedule_id:
        return words
    name = rf"(?<![\w-]){re.escape(schedule_id)}(?![\w-])"
    return re.sub(name, lambda found: _painted("1", found[0]), words, count=1)
