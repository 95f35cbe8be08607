"""Values as people write them: `name=value`, where the value is JSON if it can be, and else text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from beat.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterable


def value(written: str) -> Any:
    """`5` is a number, `true` a truth, `[1, 2]` a list, `"5"` a text; what is no JSON is a text as it stands."""
    return _read(written)


def written(value: Any) -> str:
    """The value as somebody would write it, and `value` reads it; what JSON has no word for, as Python writes it."""
    if isinstance(value, str) and _read(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)


def pairs(written: Iterable[str], option: str) -> dict[str, Any]:
    """Each `name=value`; refuses what is none, and a name that comes twice."""
    found: dict[str, Any] = {}
    for each in written:
        name, sign, text = each.partition("=")
        if not (sign and name.strip()):
            raise BadOption(f"{option} {each!r:.60} has no {'name' if sign else 'value'}: write {option} name=value")
        if name in found:
            raise BadOption(f"{option} {name!r:.60} is there twice: give it once")
        found[name.strip()] = value(text)
    return found


def arguments(written: str | None, named: Iterable[str]) -> tuple[list[Any] | None, dict[str, Any] | None]:
    """Those of `--args` (a list, or an object for those with names) and of `--arg`; None where none are given."""
    args, kwargs = None, pairs(named, "--arg")
    if written is not None:
        whole = value(written)
        if not isinstance(whole, list | dict):
            raise BadOption(f"--args {written!r:.60} is neither a list nor an object of JSON: write --args '[1, 2]'")
        args, kwargs = (whole, kwargs) if isinstance(whole, list) else (None, {**whole, **kwargs})
    return args, kwargs or None


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Any:
    raise ValueError(constant)  # NaN is no JSON
