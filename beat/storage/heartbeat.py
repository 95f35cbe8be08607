"""One beat, as its heartbeat shows it. What is missing there, or garbled, reads as nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Instance(NamedTuple):
    """One beat, when it was last seen. What its heartbeat does not say is empty, or None."""

    name: str
    host: str
    pid: int | None
    version: str
    tzdata: str
    app: str
    schedules: int | None
    """How many its code declares."""
    fired: int | None
    started_at: datetime | None
    seen_at: datetime | None
    last_pass: datetime | None
    clock_offset_ms: int | None
    """How far its machine's clock is ahead of Redis'."""
    digest: str = ""
    """Under which its declarations are announced."""
    tz: str = ""
    """The zone of schedules that name none."""
    only: str = ""
    """The glob of the schedules that it registers, if it does not register all of its code."""


def read(name: str, found: Mapping[bytes, bytes]) -> Instance:
    """The beat of that name, by its hash in Redis."""
    told = {text(field): text(value) for field, value in found.items()}
    words = {field: told.get(field, "") for field in ("host", "version", "tzdata", "app", "digest", "tz", "only")}
    numbers = {field: _whole(told.get(field, "")) for field in ("pid", "schedules", "fired", "clock_offset_ms")}
    times = {field: clock.found(told.get(field, "")) for field in ("started_at", "seen_at", "last_pass")}
    values: dict[str, Any] = {**words, **numbers, **times}
    return Instance(name, **values)


def text(value: Any) -> str:
    """A word of Redis, whatever bytes it holds."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _whole(written: str) -> int | None:
    digits = written.removeprefix("-")
    return int(written) if digits.isascii() and digits.isdigit() and len(digits) < _LONG else None


_LONG = 16
