"""Find missing and stuck schedulers by their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.client import liveness

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from beat.client.overview import Attendance
    from beat.storage.heartbeat import Instance


class Missing(NamedTuple):
    """A scheduler whose heartbeat expired, so it did not stop cleanly."""

    name: str
    since: datetime
    """When its heartbeat expired."""


def missing(there: Attendance) -> list[Missing]:
    """Return the schedulers whose heartbeat expired and that no later one has replaced, newest first."""
    started = max((each.started_at for each in there.beats if each.started_at), default=None)
    found = [Missing(name, at) for name, at in there.lapsed if started is None or started <= at]
    return sorted(found, key=lambda each: each.since, reverse=True)


def stuck(beats: Iterable[Instance], now: datetime, interval: timedelta) -> list[Instance]:
    """Return the schedulers that send heartbeats but have not looked for due ticks for too long.

    How long is too long depends on `interval`, the time that a scheduler rests between two cycles.
    """
    limit = liveness.limit(interval)
    return [each for each in beats if (since := each.last_pass or each.started_at) and now - since > limit]
