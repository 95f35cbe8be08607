"""Read schedules from JSON as `beat list --json` prints it, for `Client.add_all`.

Fields that are not options of a schedule, such as its state or next tick, are ignored.
"""

from __future__ import annotations

import difflib
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from beat.client.add import Wanted
from beat.client.describe import SCHEMA_VERSION
from beat.client.describe.export import BESIDE
from beat.config import masking
from beat.errors import BadOption, BeatError
from beat.schedule import options, rq_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.schedule.options import Options

_EXAMPLE = '{"schedules": [{"id": "report", "func": "app.tasks.report", "cron": "0 9 * * *"}]}'
_OWN = {"func", "cron"}
_NEAR = 0.8
"""The similarity from which a name counts as a misspelt option: `next_run` is not meant to be `max_runs`."""


class Unread(NamedTuple):
    """An entry that cannot be added."""

    id: str
    error: BeatError | None
    """The reason, or None if the code declares the schedule, because that comes with the code."""


def read(text: str) -> tuple[list[Wanted | Unread], list[str]]:
    """Return the schedules of a document, and warnings about it. Raise BadOption if it is not such a document."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise BadOption(f"the file is no JSON: {e!s:.100}; it must hold what `beat list --json` prints") from e
    entries = found.get("schedules") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise BadOption(f"the file holds no list of schedules: write {_EXAMPLE}, as `beat list --json` does")
    if isinstance(found, dict) and found.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise BadOption(
            f"the file has schema_version {found['schema_version']!r:.20}: this beat reads {SCHEMA_VERSION}"
        )
    warnings: dict[str, None] = {}
    return [_entry(each, n, warnings) for n, each in enumerate(entries, 1)], list(warnings)


def _entry(found: object, number: int, warnings: dict[str, None]) -> Wanted | Unread:
    name = str(found["id"]) if isinstance(found, dict) and found.get("id") else f"entry {number}"
    try:
        if not isinstance(found, dict):
            raise BadOption(f"it is no object: write {_EXAMPLE}")
        if found.get("source") == "code":
            return Unread(name, None)
        for needed in ("id", "func"):
            if not isinstance(found.get(needed), str) or not found[needed]:
                raise BadOption(f"it has no {needed}: write {_EXAMPLE}")
        if place := next(_masked_places(found), None):
            raise BadOption(f"{place} is masked ({masking.MASK}): export with `beat list --json --reveal`")
        warnings |= dict.fromkeys(_strange(found))
        return Wanted(found["id"], found["func"], found.get("cron"), given(found))
    except BeatError as e:
        return Unread(name, e)


def given(found: Mapping[str, Any]) -> Options:
    """Return the options among these values as `@periodic` takes them. Raise BadOption for an invalid start or end."""
    named = {name: found[name] for name in options.Options.__annotations__ if found.get(name) is not None}
    named.pop("id", None)
    for name in {"start", "end"} & named.keys():
        named[name] = _instant(named[name], name)
    if isinstance(named.get("retry"), dict):
        named["retry"] = {"interval" if name == "intervals" else name: each for name, each in named["retry"].items()}
    for name in {"on_success", "on_failure", "on_stopped"} & named.keys():
        named[name] = _callback(named[name])
    return cast("Options", named)


def _instant(value: object, name: str) -> datetime:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError as e:
        raise BadOption(f"{name} {value!r:.60} is no time: write 2026-11-20T09:00:00Z") from e


def _callback(value: Any) -> Any:
    if isinstance(value, dict) and "func" in value:
        return rq_options.Callback(func=value["func"], timeout=value.get("timeout"))
    return value


def _masked_places(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places of values that were exported with their secrets masked."""
    left: list[tuple[str, Any]] = [(name, found.get(name)) for name in options.Options.__annotations__]
    while left:
        place, value = left.pop()
        if isinstance(value, str) and masking.MASK in value:
            yield place
        named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        left += [(f"{place}.{name}", item) for name, item in named]


def _strange(found: Mapping[str, Any]) -> list[str]:
    """Return a warning for each name that is no option but resembles one."""
    known = [*options.Options.__annotations__, *_OWN]
    others = [name for name in found if name not in {*known, *BESIDE}]
    near = {name: difflib.get_close_matches(name, known, n=1, cutoff=_NEAR) for name in others}
    return [
        f"{name!r:.60} is no option, and is left out. Did you mean {nearest[0]!r}?"
        for name, nearest in near.items()
        if nearest
    ]
