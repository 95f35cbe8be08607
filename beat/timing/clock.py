"""Wall time: the only place that reads it, and the door through which instants come in.

Inside beat an instant is an aware UTC `datetime`; ticks are whole seconds and are computed as integers since the epoch.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta

from beat.errors import BadInstant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_remembered = functools.lru_cache(maxsize=4096)  # thousands of schedules share a few ticks


def now() -> datetime:
    """The present instant, by this machine's clock."""
    return datetime.now(UTC)


def utc(value: datetime, name: str = "instant") -> datetime:
    """`value` in UTC; refuses what is not an aware datetime. For what users hand in."""
    if not isinstance(value, datetime):
        raise BadInstant(
            f"{name} must be a datetime, not {type(value).__name__}: write datetime(2026, 11, 16, 9, tzinfo=UTC)"
        )
    if value.utcoffset() is None:
        raise BadInstant(
            f"{name} {value.isoformat()} has no time zone: "
            "write datetime(…, tzinfo=UTC) or tzinfo=ZoneInfo('Europe/Paris')"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as e:
        raise BadInstant(f"{name} {value.isoformat()} is outside the calendar") from e


def floor(instant: datetime) -> int:
    """The last whole second since the epoch at or before `instant`; refuses anything but aware UTC."""
    if not isinstance(instant, datetime) or instant.tzinfo is not UTC:
        _refuse_unless_utc(instant)
    since = instant - EPOCH
    return since.days * 86_400 + since.seconds


def ceil(instant: datetime) -> int:
    """The first whole second since the epoch at or after `instant`; refuses anything but aware UTC."""
    return floor(instant) + (instant.microsecond > 0)


def at(second: int) -> datetime:
    """The instant `second` seconds after the epoch."""
    try:
        return EPOCH + timedelta(0, second)
    except OverflowError as e:
        raise BadInstant("there are no ticks after the year 9999 or before the year 1") from e


def text(instant: datetime) -> str:
    """RFC 3339 in UTC, as kept in Redis and printed with `--json`: `2026-11-16T09:00:00Z`."""
    return _text(instant.astimezone(UTC))  # first: of an hour that comes twice, both are equal in their own zone


@_remembered
def _text(instant: datetime) -> str:
    short = "auto" if instant.microsecond % 1000 else "milliseconds" if instant.microsecond else "seconds"
    return instant.isoformat(timespec=short).replace("+00:00", "Z")


def read(written: str) -> datetime:
    """The instant that `text` wrote; refuses anything else."""
    try:
        return _read(written)
    except (ValueError, TypeError) as e:
        raise BadInstant(f"{written!r:.60} is not a time: write 2026-11-16T09:00:00Z") from e


def found(written: str) -> datetime | None:
    """The same; None for anything else, which anybody may have written."""
    try:
        return _read(written) if written else None
    except (ValueError, TypeError, BadInstant):
        return None


@_remembered
def _read(written: str) -> datetime:
    found = datetime.fromisoformat(written)
    return found if found.tzinfo is UTC else utc(found)


def from_ms(milliseconds: int) -> datetime:
    """The instant so many milliseconds after the epoch."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def to_ms(instant: datetime) -> int:
    """Whole milliseconds since the epoch."""
    return (instant - EPOCH) // _MS


def _refuse_unless_utc(instant: datetime) -> None:
    utc(instant)  # refuses what is no datetime, and what is naive
    # Asked about no instant, a zone answers only if its offset never changes: London is not UTC, not even in winter.
    if instant.tzinfo is None or instant.tzinfo.utcoffset(None) != timedelta(0):
        raise BadInstant(f"instant {instant.isoformat()} is not in UTC: write .astimezone(UTC)")
