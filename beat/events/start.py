"""Parse where reading begins: `"all"`, `"now"`, an age such as `"24h"`, an instant, or after the id of an event."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from beat.errors import BadDuration, BadOption
from beat.storage.event_stream import START
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.storage.event_stream import Outbox

Since = datetime | timedelta | str | float | None
NEWEST = "$"
"""Stands for the id of the newest event."""

_ID = re.compile(r"\d{1,19}-\d{1,19}", re.ASCII)
_LARGEST = 2**64 - 1
_MS = timedelta(milliseconds=1)


def place(since: Since, after: str | None) -> Callable[[Outbox], str]:
    """Return a function that gives the id after which reading begins; for an age, it asks Redis for the time.

    Raises BadOption for an invalid id or for both arguments, and BadDuration or BadInstant for an invalid `since`.
    """
    if after is not None:
        if since is not None:
            raise BadOption("since and after say two things: give one of them")
        if not (isinstance(after, str) and _ID.fullmatch(after)):
            raise BadOption(f"after must be the id of an event, such as '1794819600000-0', not {after!r:.60}")
        return lambda _: after
    if since is None or since == "all":
        return lambda _: START
    if since == "now":
        return lambda _: NEWEST
    if isinstance(since, datetime):
        instant = clock.utc(since, "since")
    elif isinstance(since, str) and re.match(r"\d{4}-\d", since, re.ASCII):
        instant = clock.read(since)
    else:
        ago = duration(since, "since")
        return lambda outbox: _before(outbox.time_ms() - ago // _MS)
    return lambda _: _before(clock.to_ms(instant))


def duration(value: timedelta | str | float, name: str, least: timedelta = timedelta(0)) -> timedelta:
    """Parse a duration; raise BadDuration if it is shorter than `least`."""
    found = durations.parse(value, name)
    if found < least:
        raise BadDuration(f"{name} must be at least {durations.short(least)}, not {value!r:.60}")
    return found


def _before(ms: int) -> str:
    """Return the largest id before this millisecond."""
    return f"{ms - 1}-{_LARGEST}" if ms > 0 else START
