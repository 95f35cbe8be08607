"""Read what a worker wrote about a run: the report that a job returned, or the error that RQ recorded.

Reading is safe for any input: it imports and calls nothing, raises nothing, and returns values that JSON can encode.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from beat.history.advice import Advice, advice
from beat.jobs.report.safe_pickle import LARGEST, NotPlain, Opaque, beat_entry, plain, read
from beat.jobs.report.traceback import error
from beat.schedule.arguments import inside

__all__ = ["Advice", "NotPlain", "Report", "Told", "advice", "beat_entry", "error", "plain", "told"]

LONGEST_MESSAGE = 1_000
LONGEST_DETAILS = 8_000
"""In characters of JSON."""
_DEEPEST = 30
_LONGEST_BITS = 10_000  # Python converts at most 4,300 digits
_ENCODED = LARGEST // 3 * 4 + 4
_ROOM = LARGEST // 4  # for message and details each, as JSON; a pickle may take twice as much


@dataclass(frozen=True)
class Told:
    """A job's report about its run."""

    success: bool
    message: str
    details: Mapping[str, Any]


def Report(  # noqa: N802 (named for what it makes)
    success: bool,  # noqa: FBT001 (the one thing that a report must say)
    message: str = "",
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a report for the job to return: it explains the run in the history.

    For example, `return Report(False, "3 rows refused", {"rows": [4, 8, 15]})`. A report with success=False marks the
    run as failed, although the job raised nothing. A report is a plain dict, so RQ keeps it like any other result.
    Details must be plain data; beat leaves them out if they are too large.
    """
    if type(success) is not bool:
        raise TypeError(f"success must be True or False, not {_kind(success)}: write Report(True, '42 rows copied')")
    if not isinstance(message, str):
        raise TypeError(f"message must be text, not {_kind(message)}: write Report(False, '3 rows refused')")
    if details is not None and not isinstance(details, Mapping):
        raise TypeError(f"details must be a dict, not {_kind(details)}: write Report(True, details={{'rows': 42}})")
    text, copied = str.__str__(message), _copied(details or {}, "details")
    if (size := len(json.dumps(copied))) > _ROOM:
        copied = _left_out(f"{size:,} characters of details")
    return {
        "success": success,
        "message": text if len(json.dumps(text)) <= _ROOM else text[:LONGEST_MESSAGE],
        "details": copied,
    }


def told(raw: bytes | None, serializer: str) -> Told | None:
    """Return the report in RQ's record of a `return_value`; None if the job returned anything else, or too much.

    A report is a dict whose `success` is a bool, with an optional text `message` and dict `details`. Details that are
    too long or not plain data are replaced by a note.
    """
    if not raw or len(raw) > _ENCODED:
        return None
    try:
        written = base64.b64decode(raw, validate=True)
        value, _ = read(written, serializer) if b"success" in written else (None, None)
    except ValueError:
        return None
    if type(value) is not dict:
        return None
    success, message, details = value.get("success"), value.get("message", ""), value.get("details", {})
    if type(success) is not bool or type(message) is not str or type(details) is not dict:
        return None
    return Told(success, _whole(message[:LONGEST_MESSAGE]), _kept(details))


def _kept(details: dict[Any, Any]) -> dict[str, Any]:
    """Return the details as JSON would, or a note that says why they are left out."""
    try:
        text = json.dumps(_jsonable(details), ensure_ascii=False)
    except ValueError as e:
        return _left_out(f"details with {e}" if isinstance(e, NotPlain) else "details with a number that is too long")
    if len(text) > LONGEST_DETAILS:
        return _left_out(f"{len(text):,} characters of details")
    kept: dict[str, Any] = json.loads(_whole(text))
    return kept


def _left_out(what: str) -> dict[str, Any]:
    return {"left_out": _whole(what)}  # it may contain the name of a class


def _jsonable(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON can write it; raise NotPlain, which names the first unsuitable value."""
    if depth > _DEEPEST:
        raise NotPlain(f"more than {_DEEPEST} levels")
    if type(value) is dict:
        return {_jsonable(key): _jsonable(item, depth + 1) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [_jsonable(item, depth + 1) for item in value]
    if type(value) is float and not math.isfinite(value):
        return repr(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise NotPlain(f"a {value.name}" if type(value) is Opaque else _kind(value))


def _whole(text: str) -> str:
    """Return the text with every lone surrogate replaced, because UTF-8 cannot encode those."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _copied(value: Any, path: str, depth: int = 0) -> Any:
    """Return a deep copy of plain data; an instance of a plain type's subclass becomes that type, as in JSON."""
    if depth > _DEEPEST:
        raise ValueError(f"{path:.60} is nested more than {_DEEPEST} levels deep: write flat data, or a key to it")
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return _number(value, path)
    if isinstance(value, list | tuple):
        return [_copied(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_text(key, path): _copied(item, inside(path, key), depth + 1) for key, item in value.items()}
    raise TypeError(f"{path} is a {_kind(value)}, which is no plain data: write {_instead(value)}")


def _text(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{path} has the key {key!r:.40}, which is no text: write {str(key)[:40]!r}")
    return str.__str__(key)


def _number(value: float, path: str) -> float:
    if isinstance(value, int):
        if value.bit_length() > _LONGEST_BITS:
            raise ValueError(f"{path} is a number of {value.bit_length():,} bits, too long to be shown: write hex(…)")
        return int.__int__(value)
    if not math.isfinite(value):
        raise ValueError(f"{path} is {value}, which JSON cannot write: write None, or 'unknown'")
    return float.__float__(value)


def _instead(value: object) -> str:
    """Return the call that makes such a value plain."""
    if hasattr(value, "isoformat"):
        return ".isoformat()"
    if hasattr(value, "tolist"):  # numpy
        return ".tolist()"
    if isinstance(value, Enum):
        return ".value"
    if isinstance(value, bytes | bytearray):
        return ".hex()"
    return "sorted(…)" if isinstance(value, set | frozenset) else "str(…)"


def _kind(value: object) -> str:
    return type(value).__name__
