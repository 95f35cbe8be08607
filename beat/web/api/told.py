"""What leaves the API: one document, with nothing secret in it, and nothing that JSON has no word for.

Everything that is answered goes through here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from starlette.responses import Response

from beat.web import secrecy
from beat.words import SCHEMA_VERSION

_DEEPEST = 60
_NAMES = re.compile(r"[A-Za-z_]\w{0,100}", re.ASCII)
_THEIRS = frozenset(("args", "kwargs", "meta", "details"))
"""Below these lies what users wrote, by names of theirs."""


def document(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The answer, as JSON in ASCII: every program can read it."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **shown(content)}, allow_nan=False)
    kept = {"cache-control": "private, no-cache", **(headers or {})}
    return Response(text, status, kept, media_type="application/json")


def shown(value: Any, name: str = "") -> Any:
    """The same without secrets, in the words of JSON."""
    if name in _THEIRS:
        return _masked(_sound(value))
    if isinstance(value, dict):
        return {key: shown(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return secrecy.masked(_sound(value))


def _masked(value: Any) -> Any:
    """Without the values whose names look secret."""
    # What Python wrote of arguments for which JSON has no word is text: which part of that is the secret, nobody knows.
    if isinstance(value, str) and any(secrecy.looks_secret(word) for word in _NAMES.findall(value)):
        return secrecy.MASK
    return secrecy.masked(value)


def _sound(value: Any, depth: int = 0) -> Any:
    """The same, where what is no number is null, and what lies too deep is left out."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(key): _sound(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
