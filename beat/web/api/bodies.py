"""The JSON documents that programs send: read strictly, so that nothing is taken for what it is not."""

from __future__ import annotations

import json
import math
from typing import Any

from beat.errors import BadOption

_DEEPEST = 32


def read(sent: bytes) -> dict[str, Any]:
    """The object that was sent; nothing at all is an empty one. Refuses everything else in a sentence."""
    if not sent:
        return {}
    try:
        text = sent.decode()
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
        json.dumps(found, ensure_ascii=False).encode()  # half of a character cannot be written
    except UnicodeError as e:
        raise BadOption("the document is no text in UTF-8") from e
    except RecursionError as e:
        raise _too_deep() from e
    except ValueError as e:
        raise BadOption(f"the document is no JSON: {str(e)[:100]}") from e
    if not isinstance(found, dict):
        raise BadOption('the document must be an object, as in {"reason": "the disk is full"}')
    if _depth(found) > _DEEPEST:
        raise _too_deep()
    return found


def _too_deep() -> BadOption:
    return BadOption(f"the document is nested too deep: {_DEEPEST} levels are the most")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {ascii(twice)[:60]} is there twice")
    return found


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _depth(value: Any) -> int:
    """How many levels of lists and objects there are; walked by level, whatever the depth."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth
