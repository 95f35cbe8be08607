"""Compare two definitions of a schedule, option by option."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.config import masking
from beat.schedule import digests, monitor
from beat.schedule.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NESTED = ("kwargs", "meta", "retry")
_LEFT_OUT = {"id", "declared"}
"""Options that are not compared, because a new id or place in the code does not change the definition."""
_MAY_BE_SECRET = {"args", "kwargs", "meta"}
_LONGEST = 100
_DEFAULTS = {
    each.name: digests.plain(each.default) for each in fields(Schedule) if isinstance(each.default, str | bool)
}


class Difference(NamedTuple):
    """An option whose value differs; `kwargs`, `meta` and `retry` are compared key by key, as in `kwargs.token`."""

    option: str
    was: Any
    """The old value as in JSON; None if there was none."""
    becomes: Any


def differences(was: Mapping[str, Any], becomes: Mapping[str, Any]) -> list[Difference]:
    """Return the options that differ, in the order of the new definition."""
    names = dict.fromkeys([*becomes, *was])
    return [each for name in names if name not in _LEFT_OUT for each in _compared(name, was, becomes)]


def masked(each: Difference) -> Difference:
    """Return the difference with secrets masked; if the masked values are equal, mark the new one "(another)"."""
    name, _, key = each.option.partition(".")
    old, new = (_masked(name, key, value) for value in (each.was, each.becomes))
    is_hidden = old == new and (old, new) != (each.was, each.becomes)
    return Difference(masking.masked(each.option), old, f"{shown(new)} (another)" if is_hidden else new)


def _masked(name: str, key: str, value: Any) -> Any:
    if name == "monitor":
        return monitor.hidden({name: value})[name]
    if not key:
        return masking.shown({name: value})[name]
    [found] = masking.shown({name: {key: value}})[name].values()  # by position, because the key may be masked, too
    return found


def plain(written: str) -> dict[str, Any]:
    """Return a stored definition as a dict; {} if it is unreadable."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def summary(was: Mapping[str, Any], becomes: Mapping[str, Any]) -> str:
    """Return the differences in one line, such as `queue default → mail; kwargs.token changed`.

    The values of arguments are omitted, because they may be secret.
    """
    return "; ".join(
        f"{each.option} changed"
        if each.option.partition(".")[0] in _MAY_BE_SECRET
        else f"{each.option} {shown(each.was):.{_LONGEST}} → {shown(each.becomes):.{_LONGEST}}"
        for each in map(masked, differences(was, becomes))  # mask before cutting, so that no half of a password shows
    )


def shown(value: Any) -> str:
    """Return the value of an option for display."""
    if value in (None, ""):
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compared(name: str, was: Mapping[str, Any], becomes: Mapping[str, Any]) -> Iterator[Difference]:
    old, new = (each.get(name, _DEFAULTS.get(name)) for each in (was, becomes))
    if old == new and type(old) is type(new):
        return
    if name in _NESTED and isinstance(old or {}, dict) and isinstance(new or {}, dict):
        old, new = old or {}, new or {}
        for key in dict.fromkeys([*new, *old]):
            if old.get(key) != new.get(key) or (key in old) != (key in new):
                yield Difference(f"{name}.{key}", old.get(key), new.get(key))
        return
    yield Difference(name, old, new)
