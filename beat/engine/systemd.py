"""What a service manager is told, in systemd's words: ready, alive, stopping. Where none asks, nothing is said.

Each message is a datagram to the socket of NOTIFY_SOCKET; one that does not arrive is no error.
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
    """One process, as its service manager sees it."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._half_s = _limit_s(environ) / 2 if self._address else math.inf
        self._fed_at, self._status = -math.inf, ""

    @property
    def turn_s(self) -> float:
        """How often to call `alive`, at least."""
        return min(TURN_S, self._half_s / 2)

    def tell(self, *lines: str) -> None:
        """Says these assignments, as in `READY=1`."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_PATIENCE_S)
            sender.sendto("\n".join(lines).encode(), self._address)

    def status(self, words: str) -> None:
        """Says what is going on, when it is something else than before."""
        if self._address and words != self._status:
            self._status = words
            self.tell(f"STATUS={words}")

    def alive(self, silent_s: float) -> None:
        """Feeds the watchdog at half of its time, unless some thread has been silent for longer than that."""
        now = time.monotonic()
        if silent_s <= self._half_s < math.inf and now - self._fed_at >= self._half_s - self.turn_s:
            self._fed_at = now
            self.tell("WATCHDOG=1")


def _address(written: str) -> bytes:
    """The socket: a path, or with `@` a name in the abstract namespace; nothing for what is neither."""
    if not written.startswith(("/", "@")):
        return b""
    name = os.fsencode(written)
    return b"\0" + name[1:] if written.startswith("@") else name


def _limit_s(environ: Mapping[str, str]) -> float:
    """How long the watchdog waits to be fed: for ever where there is none, or it waits for another process."""
    micros, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    mine = not pid or pid == str(os.getpid())
    return int(micros) / 1e6 if mine and micros.isascii() and micros.isdigit() and int(micros) else math.inf
