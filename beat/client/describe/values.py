"""Read and write values as people type them: `name=value`, where the value is JSON, or else text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from beat.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterable


def value(written: str) -> Any:
    """Parse a value: `5` is a number, `true` a boolean, `[1, 2]` a list; text that is not JSON stays as it is."""
    return _read(written)


def written(value: Any) -> str:
    """Return the value so that `value` reads it again; a value that JSON cannot hold is written as in Python."""
    if isinstance(value, str) and _read(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)


def pairs(written: Iterable[str], option: str) -> dict[str, Any]:
    """Parse each `name=value`; raise BadOption for any other text, and for a repeated name."""
    found: dict[str, Any] = {}
    for each in written:
        name, sign, text = each.partition("=")
        if not (sign and name.strip()):
            raise BadOption(f"{option} {each!r:.60} has no {'name' if sign else 'value'}: write {option} name=value")
        if (name := name.strip()) in found:
            raise BadOption(f"{option} {name!r:.60} is there twice: give it once")
        found[name] = value(text)
    return found


def arguments(written: str | None, named: Iterable[str]) -> tuple[list[Any] | None, dict[str, Any] | None]:
    """Return the arguments of `--args` (a list, or an object for named ones) and of `--arg`; None if not given."""
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
