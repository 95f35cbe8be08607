"""Close the connections of slow clients, so that they cannot block the web UI for others.

uvicorn limits how many connections there are and how long an idle one stays open. It has no deadline for a request that
has begun to arrive, nor for an answer that the client does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

MOST_CONNECTIONS = 250
"""Further connections are closed immediately, because they would use up the file descriptors of the scheduler."""
_RECEIVE_S, _SEND_S = 10.0, 60.0
"""Seconds for a whole request to arrive, and seconds for its answer to be read."""
_END_S = 0.8
"""Seconds for open answers when the server stops; slightly less than uvicorn waits, so no connection stays open."""


class Deadline(H11Protocol):
    """One connection, closed when a request or its answer takes too long."""

    _timer: asyncio.TimerHandle | None = None
    _receiving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the connection, or close it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of the answer once the request is complete."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Start a new deadline: for the next request, or for the client to read the rest of the answer."""
        super().on_response_complete()
        self._clear_deadline()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._clear_deadline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Leave clients a moment to read their answers, then close the connection."""
        super().shutdown()
        self.loop.call_later(_END_S, self.transport.abort)

    def _set_deadline(self) -> None:
        """Start the deadline of the current phase. Within a phase it keeps running, so single bytes gain no time."""
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
