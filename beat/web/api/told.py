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
_WRITTEN = ("args", "kwargs", "meta")
"""What may be text: what Python writes of values for which JSON has no word."""


def document(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The answer, as JSON in ASCII: every program can read it."""
    whole = {"schema_version": SCHEMA_VERSION, **secrecy.masked(sound(content))}
    text = json.dumps(whole, allow_nan=False)
    kept = {"cache-control": "no-store", **(headers or {})}
    return Response(text, status, kept, media_type="application/json")


def sound(value: Any, name: str = "", depth: int = 0) -> Any:
    """The same in the words of JSON: what is no number is null, what lies too deep is left out."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(key): sound(item, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sound(item, "", depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return secrecy.MASK if name in _WRITTEN and _names_a_secret(value) else value
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _names_a_secret(written: str) -> bool:
    """Whether what Python wrote of arguments names one: then which part of it is the secret, nobody knows."""
    return any(secrecy.looks_secret(word) for word in _NAMES.findall(written))
