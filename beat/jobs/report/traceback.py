"""Parse RQ's record of a failure into the type and message of its last exception.

Any text results in an error value; parsing never raises.
"""

from __future__ import annotations

import base64
import re
import zlib
from itertools import dropwhile, takewhile

from beat.history.advice import LINK
from beat.history.ledger import LONGEST_TRACEBACK, Error

LONGEST_MESSAGE = 500
_LONGEST_TYPE = 200
_LONGEST_TEXT = 1_000_000
_LONGEST_ENCODED = 2_000_000  # a multiple of four, because four characters of base64 are three bytes

_SENTENCES = {  # RQ's own messages about failures without an exception
    "Work-horse": "WorkHorseKilled",
    "Moved to FailedJobRegistry, due to AbandonedJobError": "AbandonedJobError",
    "Job stopped by user": "Stopped",
    "Job was stuck in intermediate queue": "StuckInQueue",
}
_TRACEBACK = "Traceback (most recent call last):"
_GROUP, _IN_GROUP = "  + Exception Group ", "  | "
_RAISED = re.compile(r"([^\W\d][\w.<>]*)(?:: (.*))?")  # my.module.Bad: a message


def error(raw: bytes | str | None) -> Error:
    """Return the error of a result's `exc_string`: the last exception of its chain, or RQ's own message with a type.

    An exception's notes become the end of its message, because the text does not tell them apart.
    """
    text = _decoded(raw) if raw else ""
    if not text:
        return Error("", "unreadable" if text is None else "nothing is recorded", "")
    for start, kind in _SENTENCES.items():
        if text.startswith(start):
            return Error(kind, text.rstrip("; \n")[:LONGEST_MESSAGE], "")
    kind, message = _last(text)
    return Error(kind[:_LONGEST_TYPE], message[:LONGEST_MESSAGE], text[:LONGEST_TRACEBACK])


def _decoded(raw: bytes | str) -> str | None:
    """Return the text, cut to the length that is ever used; None for garbage."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(base64.b64decode(raw[:_LONGEST_ENCODED], validate=True), _LONGEST_TEXT)
    except (ValueError, zlib.error):
        return None
    return unpacked.decode(errors="replace").strip("\n") if unpacked or unpacker.eof else None


def _last(text: str) -> tuple[str, str]:
    """Return the type and message of the last exception; if the text names none, no type and the whole text."""
    lines = LINK.split(text)[-1].split("\n")
    if lines[0].startswith((_GROUP, _IN_GROUP)):
        own = takewhile(lambda line: line.startswith((_GROUP, _IN_GROUP)), lines)  # the exceptions of the group follow
        lines = [line[len(_IN_GROUP) :] for line in own]
    if lines[0].endswith(_TRACEBACK):
        lines = list(dropwhile(lambda line: line.startswith(" "), lines[1:]))
    found = _RAISED.fullmatch(lines[0]) if lines else None
    if not found:
        return "", text.strip()
    return found[1], "\n".join([found[2] or "", *lines[1:]]).strip()
