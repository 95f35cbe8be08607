"""The beats that are alive, as their heartbeats tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat import clock
from beat.client.standing import instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.connection import Redis
    from beat.keys import Keys


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


def alive(client: Redis, keys: Keys, now: datetime) -> list[Instance]:
    """Those whose heartbeat has not lapsed, by name."""
    anybody: Any = client
    names = sorted(_text(name) for name in anybody.zrangebyscore(keys.instances, clock.to_ms(now), "+inf"))
    with anybody.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hgetall(keys.instance(name))
        found = pipe.execute(raise_on_error=False)
    return [_read(name, told) for name, told in zip(names, found, strict=True) if isinstance(told, dict) and told]


def _read(name: str, found: Mapping[bytes, bytes]) -> Instance:
    told = {_text(field): _text(value) for field, value in found.items()}
    words = {field: told.get(field, "") for field in ("host", "version", "tzdata", "app")}
    numbers = {field: _whole(told.get(field, "")) for field in ("pid", "schedules", "fired", "clock_offset_ms")}
    times = {field: instant(told.get(field, "")) for field in ("started_at", "seen_at", "last_pass")}
    values: dict[str, Any] = {**words, **numbers, **times}
    return Instance(name, **values)


def _whole(written: str) -> int | None:
    digits = written.removeprefix("-")
    return int(written) if digits.isascii() and digits.isdigit() and len(digits) < _LONG else None


_LONG = 16


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
