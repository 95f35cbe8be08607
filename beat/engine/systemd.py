"""Tell a service manager in systemd's protocol that the process is ready, alive or stopping.

Each message is a datagram to the socket of NOTIFY_SOCKET. Without that variable nothing is sent, and a datagram that
does not arrive is not an error.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE_S = 1
TURN_S = 0.5


class Notifier:
    """The messages of this process to its service manager."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._half_s = _limit_s(environ) / 2 if self._address else math.inf
        self._fed_at, self._status = -math.inf, ""

    @property
    def turn_s(self) -> float:
        """Return how often to call `alive` at least, in seconds."""
        return min(TURN_S, self._half_s / 2)

    def tell(self, *lines: str) -> None:
        """Send assignments such as `READY=1`; ignore errors."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_PATIENCE_S)
            sender.sendto("\n".join(lines).encode(), self._address)

    def status(self, words: str) -> None:
        """Send the status, unless it is the same as before."""
        if self._address and words != self._status:
            self._status = words
            self.tell(f"STATUS={words}")

    def alive(self, silent_s: float) -> None:
        """Feed systemd's watchdog about once per half of its time limit, unless a thread has been silent for longer."""
        now = time.monotonic()
        if silent_s <= self._half_s < math.inf and now - self._fed_at >= self._half_s - self.turn_s:
            self._fed_at = now
            self.tell("WATCHDOG=1")


def _address(written: str) -> bytes:
    """Return the address of the socket: a path or, with `@`, an abstract name; empty if it is neither."""
    if not written.startswith(("/", "@")):
        return b""
    name = os.fsencode(written)
    return b"\0" + name[1:] if written.startswith("@") else name


def _limit_s(environ: Mapping[str, str]) -> float:
    """Return the watchdog's time limit in seconds; infinity if there is none for this process."""
    micros, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    mine = not pid or pid == str(os.getpid())
    return int(micros) / 1e6 if mine and micros.isascii() and micros.isdigit() and int(micros) else math.inf
