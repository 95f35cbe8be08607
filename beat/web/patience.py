"""How long the server of the page waits for who asks, and for how many: nobody keeps it from others by being slow.

uvicorn waits for ever for a request that has begun, and takes every connection; beside a beat those are its files, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

AT_ONCE = 200
"""Connections; who else comes is told to come again, and far beyond that hears nothing."""
_BEYOND = AT_ONCE + 50
_ASK_S, _TAKE_S = 10.0, 60.0
"""From the first byte of a request, or from the connection, to the last; and from there until the answer is taken."""

_END_S = 0.8
"""When the server ends; a little less than uvicorn waits, so that no connection is left behind."""


class Patient(H11Protocol):
    """One connection."""

    _until: asyncio.TimerHandle | None = None
    _asking = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody comes."""
        super().connection_made(transport)
        if len(self.connections) > _BEYOND:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Somebody speaks."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Somebody has the answer, and may ask again."""
        super().on_response_complete()
        self._forget()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody goes."""
        self._forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server ends: what is not taken by then is not waited for."""
        super().shutdown()
        self.loop.call_later(_END_S, self.transport.abort)

    def _watch(self) -> None:
        """Begins to wait anew only where it is for something else: a byte now and then wins no time."""
        asking = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.get_write_buffer_size()
        if self._until and asking == self._asking:
            return
        self._forget()
        self._asking = asking
        self._until = self.loop.call_later(_ASK_S if asking else _TAKE_S, self.transport.abort)

    def _forget(self) -> None:
        if self._until:
            self._until.cancel()
        self._until = None
