"""What a beat says of itself in its heartbeat."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from beat import clock, zones
from beat._version import __version__

if TYPE_CHECKING:
    from beat.ticker import Ticker


def process() -> dict[str, str]:
    """What the heartbeat says of this process."""
    return {
        "host": socket.gethostname(),
        "pid": str(os.getpid()),
        "version": __version__,
        "tzdata": zones.version(),
        "started_at": clock.text(clock.now().replace(microsecond=0)),
    }


def passed(ticker: Ticker) -> dict[str, str]:
    """What the heartbeat says of the ticker; before its first pass Redis' clock is not known."""
    if not ticker.passed_ms:
        return {}
    return {
        "last_pass": clock.text(clock.from_ms(int(ticker.passed_ms))),
        "clock_offset_ms": str(round(clock.to_ms(clock.now()) - ticker.clock.now_ms())),
    }
