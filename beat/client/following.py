"""What followed a success at a time that somebody names: in that minute, or in that second if one was named."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.history import Fired, Passed, Waits

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from beat.client.answers import Answer
    from beat.history import Line

_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def end_of(instant: datetime) -> datetime:
    """Return the end of the minute or, if a second was named, of the second that begins with `instant`."""
    return instant + (_SECOND if instant.second or instant.microsecond else _MINUTE)


def look(lines: Sequence[Line], waiting: Collection[datetime], instant: datetime) -> tuple[Answer, dict[str, Any]]:
    """The answer that says most, and what goes with it."""
    end = end_of(instant)
    runs = tuple(line for line in lines if isinstance(line, Fired) and line.tick and instant <= line.tick < end)
    if runs:
        return "enqueued", {"runs": runs}
    if any(instant <= tick < end for tick in waiting):
        told = (line for line in lines if isinstance(line, Waits) and instant <= line.tick < end)
        return "waiting", {"waits": next(told, None)}
    passed = (line for line in lines if isinstance(line, Passed) and line.first < end and instant <= line.last)
    if skipped := next(passed, None):
        return "skipped", {"passed": skipped}
    ticks = [line.tick for line in lines if isinstance(line, Fired) and line.tick and line.after]
    before = max((tick for tick in ticks if tick < instant), default=None)
    return "no_success", {"before": before, "after": min((tick for tick in ticks if tick >= end), default=None)}
