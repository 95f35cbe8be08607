"""Parse the heartbeat of a scheduler; missing and invalid fields are empty or None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Instance(NamedTuple):
    """A scheduler, as its latest heartbeat shows it."""

    name: str
    host: str
    pid: int | None
    version: str
    tzdata: str
    app: str
    schedules: int | None
    """How many schedules its code declares."""
    fired: int | None
    started_at: datetime | None
    seen_at: datetime | None
    last_pass: datetime | None
    clock_offset_ms: int | None
    """How far the clock of its machine is ahead of Redis' clock."""
    digest: str = ""
    """The digest of its announced declarations."""
    tz: str = ""
    """The zone of schedules that name none."""
    only: str = ""
    """A glob for the ids that it registers; empty if it registers all of its code."""


def read(name: str, found: Mapping[bytes, bytes]) -> Instance:
    """Return the scheduler of that name, given its hash in Redis."""
    told = {text(field): text(value) for field, value in found.items()}
    words = {field: told.get(field, "") for field in ("host", "version", "tzdata", "app", "digest", "tz", "only")}
    numbers = {field: _whole(told.get(field, "")) for field in ("pid", "schedules", "fired", "clock_offset_ms")}
    times = {field: clock.found(told.get(field, "")) for field in ("started_at", "seen_at", "last_pass")}
    values: dict[str, Any] = {**words, **numbers, **times}
    return Instance(name, **values)


def text(value: Any) -> str:
    """Return a value from Redis as text, whatever bytes it holds."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _whole(written: str) -> int | None:
    digits = written.removeprefix("-")
    return int(written) if digits.isascii() and digits.isdigit() and len(digits) < _LONG else None


_LONG = 16
