"""What RQ wrote about a failure, read as the type and the message of its last exception.

Whatever the text is, an error comes out of it and never an exception.
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
_LONGEST_ENCODED = 2_000_000  # four characters of base64 are three bytes: a multiple of four

_SENTENCES = {  # RQ's own, of failures that nobody raised
    "Work-horse": "WorkHorseKilled",
    "Moved to FailedJobRegistry, due to AbandonedJobError": "AbandonedJobError",
    "Job stopped by user": "Stopped",
    "Job was stuck in intermediate queue": "StuckInQueue",
}
_TRACEBACK = "Traceback (most recent call last):"
_GROUP, _IN_GROUP = "  + Exception Group ", "  | "
_RAISED = re.compile(r"([^\W\d][\w.<>]*)(?:: (.*))?")  # my.module.Bad: a message


def error(raw: bytes | str | None) -> Error:
    """The error of a result's `exc_string`: the last exception of its chain, or RQ's own words, with a type.

    A note of the exception is the end of its message: the text does not tell them apart.
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
    """The text, or as much of it as is ever looked at; None for garbage."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(base64.b64decode(raw[:_LONGEST_ENCODED], validate=True), _LONGEST_TEXT)
    except (ValueError, zlib.error):
        return None
    return unpacked.decode(errors="replace").strip("\n") if unpacked or unpacker.eof else None


def _last(text: str) -> tuple[str, str]:
    """Type and message of what was raised last; in a text that names none, no type and all of the text."""
    lines = LINK.split(text)[-1].split("\n")
    if lines[0].startswith((_GROUP, _IN_GROUP)):
        own = takewhile(lambda line: line.startswith((_GROUP, _IN_GROUP)), lines)  # what is in the group comes after
        lines = [line[len(_IN_GROUP) :] for line in own]
    if lines[0].endswith(_TRACEBACK):
        lines = list(dropwhile(lambda line: line.startswith(" "), lines[1:]))
    found = _RAISED.fullmatch(lines[0]) if lines else None
    if not found:
        return "", text.strip()
    return found[1], "\n".join([found[2] or "", *lines[1:]]).strip()
