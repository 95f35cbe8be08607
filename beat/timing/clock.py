"""Read the system clock, and convert instants to and from seconds, milliseconds and text.

Only this module reads wall-clock time. Inside beat, every instant is an aware `datetime` in UTC. Ticks are whole
seconds, so they are computed as integers since the epoch.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta

from beat.errors import BadInstant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_remembered = functools.lru_cache(maxsize=4096)  # thousands of schedules share a few ticks


def now() -> datetime:
    """Return the current instant by this machine's clock."""
    return datetime.now(UTC)


def utc(value: datetime, name: str = "instant") -> datetime:
    """Return a user's `value` in UTC; raise BadInstant unless it is an aware datetime."""
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
    """Return the last whole second at or before `instant`; raise BadInstant unless it is in UTC."""
    if not isinstance(instant, datetime) or instant.tzinfo is not UTC:
        _refuse_unless_utc(instant)
    since = instant - EPOCH
    return since.days * 86_400 + since.seconds


def ceil(instant: datetime) -> int:
    """Return the first whole second at or after `instant`; raise BadInstant unless it is in UTC."""
    return floor(instant) + (instant.microsecond > 0)


def at(second: int) -> datetime:
    """Return the instant that is `second` seconds after the epoch."""
    try:
        return EPOCH + timedelta(0, second)
    except OverflowError as e:
        raise BadInstant("there are no ticks after the year 9999 or before the year 1") from e


def text(instant: datetime) -> str:
    """Format `instant` as RFC 3339 in UTC, as Redis and `--json` have it: `2026-11-16T09:00:00Z`."""
    # Convert before the cache: in its own zone, both passes of a repeated hour compare equal.
    return _text(instant.astimezone(UTC))


@_remembered
def _text(instant: datetime) -> str:
    short = "auto" if instant.microsecond % 1000 else "milliseconds" if instant.microsecond else "seconds"
    return instant.isoformat(timespec=short).replace("+00:00", "Z")


def read(written: str) -> datetime:
    """Parse an instant that `text` formatted, or any ISO 8601 time with an offset; raise BadInstant otherwise."""
    try:
        return _read(written)
    except (ValueError, TypeError) as e:
        raise BadInstant(f"{written!r:.60} is not a time: write 2026-11-16T09:00:00Z") from e


def found(written: str) -> datetime | None:
    """Parse an instant as `read` does; return None instead of raising, because Redis may hold anything."""
    try:
        return _read(written) if written else None
    except (ValueError, TypeError, BadInstant):
        return None


@_remembered
def _read(written: str) -> datetime:
    found = datetime.fromisoformat(written)
    return found if found.tzinfo is UTC else utc(found)


def from_ms(milliseconds: int) -> datetime:
    """Return the instant that is `milliseconds` after the epoch."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def to_ms(instant: datetime) -> int:
    """Return the whole milliseconds from the epoch to `instant`, rounded down."""
    return (instant - EPOCH) // _MS


def _refuse_unless_utc(instant: datetime) -> None:
    utc(instant)  # raises for other types and for naive datetimes
    # `utcoffset(None)` is None for zones whose offset changes, so London is rejected even in winter.
    if instant.tzinfo is None or instant.tzinfo.utcoffset(None) != timedelta(0):
        raise BadInstant(f"instant {instant.isoformat()} is not in UTC: write .astimezone(UTC)")
