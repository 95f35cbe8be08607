"""Cut slow clients off, so that they keep the page from nobody.

uvicorn limits how many are served at a time and how long an idle connection stays. It has no deadline for a request
that has begun to arrive, nor for an answer that nobody reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

MOST_CONNECTIONS = 250
"""More are closed at once: beside a scheduler they would take its file descriptors."""
_RECEIVE_S, _SEND_S = 10.0, 60.0
"""For a whole request to arrive, and for its answer to be read."""
_END_S = 0.8
"""When the server ends; a little less than uvicorn waits, so that no connection is left open."""


class Deadline(H11Protocol):
    """One connection, cut off when a request or its answer takes too long."""

    _timer: asyncio.TimerHandle | None = None
    _receiving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close a connection too many; give any other its deadline."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Give the answer a deadline of its own once the request is whole."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Begin anew: with the next request, or until the rest of the answer is read."""
        super().on_response_complete()
        self._clear_deadline()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._clear_deadline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Give what is not read yet a moment, because the server ends."""
        super().shutdown()
        self.loop.call_later(_END_S, self.transport.abort)

    def _set_deadline(self) -> None:
        """Keep the deadline unless the connection waits for something else by now: a byte now and then wins no time."""
        receiving = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.get_write_buffer_size()
        if self._timer and receiving == self._receiving:
            return
        self._clear_deadline()
        self._receiving = receiving
        self._timer = self.loop.call_later(_RECEIVE_S if receiving else _SEND_S, self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
