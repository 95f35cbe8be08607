"""The beats that are alive, as their heartbeats tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock
from beat.instance import Instance, read, text

if TYPE_CHECKING:
    from datetime import datetime

    from beat.connection import Redis
    from beat.keys import Keys

__all__ = ["Instance", "alive"]


def alive(client: Redis, keys: Keys, now: datetime) -> list[Instance]:
    """Those whose heartbeat has not lapsed, by name."""
    anybody: Any = client
    names = sorted(text(name) for name in anybody.zrangebyscore(keys.instances, clock.to_ms(now), "+inf"))
    with anybody.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hgetall(keys.instance(name))
        found = pipe.execute(raise_on_error=False)
    return [read(name, told) for name, told in zip(names, found, strict=True) if isinstance(told, dict) and told]
