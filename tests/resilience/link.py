"""One connection through the proxy: two sockets and one thread, one command at a time.

A command is forwarded only when the reply to the one before has been delivered, so that a fault can strike between two
commands of one pipeline, and what follows a cut never reaches the server.
"""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.resilience.resp import Frames, has_reply, is_pushed

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 1 << 16


@dataclass
class World:
    """What all connections of one proxy share."""

    wire: threading.Lock = field(default_factory=threading.Lock)
    """Held for every send and receive, and all the time by a proxy that is frozen."""
    closing: threading.Event = field(default_factory=threading.Event)


class Link:
    """A client's connection and the connection to the server that stands behind it; the hands of a fault."""

    def __init__(self, client: socket.socket, server: socket.socket, world: World) -> None:
        self._client, self._server, self._world = client, server, world
        self._requests, self._replies = Frames(), Frames()
        self._open, self._client_left, self._subscribed = True, False, False
        self.request = b""
        """The command at hand."""
        self.patient = False
        """See a command through although its client has left: for a fault that has begun."""
        for side in (client, server):
            if side.family == socket.AF_INET:
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self, handle: Callable[[Link], None]) -> None:
        """Call `handle` for each command, and pass on what is pushed, until one side leaves or the link is cut."""
        with suppress(ConnectionError):
            while self._open and not self._client_left:
                if (pushed := self._replies.pop()) is not None:
                    self.answer(pushed)
                elif (request := self._requests.pop()) is not None:
                    self.request = request
                    handle(self)
                else:
                    self._receive()

    def ask(self) -> bytes:
        """Forward the command and read its whole reply: empty for SUBSCRIBE and its kin, whose answers are pushed."""
        self._send(self._server, self.request)
        if not has_reply(self.request):
            self._subscribed = True
            return b""
        while True:
            while (reply := self._replies.pop()) is None:
                self._receive()
            if not is_pushed(reply, subscribed=self._subscribed):
                return reply
            self.answer(reply)

    def answer(self, reply: bytes) -> None:
        """Deliver to the client; one that has left misses it."""
        try:
            self._send(self._client, reply)
        except ConnectionError:
            self.cut()

    def cut(self) -> None:
        """Close both sides: nothing more goes through, not even what has been read already."""
        self._open = False
        for side in (self._client, self._server):
            with suppress(OSError):  # its other end may have closed it already
                side.shutdown(socket.SHUT_RDWR)

    def wait(self, until: float | threading.Event | Callable[[], bool]) -> None:
        """Hold the command for so many seconds, or until a fact; a proxy that closes cuts it short."""
        closing = self._world.closing
        if isinstance(until, int | float):
            closing.wait(until)
        else:
            reached = until.is_set if isinstance(until, threading.Event) else until
            while not reached() and not closing.wait(0.01):
                pass
        if closing.is_set():
            raise ConnectionAbortedError

    def _send(self, side: socket.socket, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                with self._world.wire:
                    rest = rest[side.send(rest, socket.MSG_DONTWAIT) :]
            except BlockingIOError:  # a client that is still sending a long pipeline does not read: take it in
                self._receive(or_send_to=side)

    def _receive(self, or_send_to: socket.socket | None = None) -> None:
        """Wait until a side has sent something, and take it in."""
        sides = [(self._server, self._replies), (self._client, self._requests)][: 1 if self._client_left else 2]
        poll = select.poll()
        for side, _ in sides:
            poll.register(side, select.POLLIN | (select.POLLOUT if side is or_send_to else 0))
        ready = {fd for fd, _ in poll.poll()}
        for side, frames in sides:
            if side.fileno() in ready and (piece := self._read(side)) is not None:
                frames.feed(piece)

    def _read(self, side: socket.socket) -> bytes | None:
        """What has come from a side, None if nothing has; raises when it has left and the link with it."""
        try:
            with self._world.wire:
                piece = side.recv(PIECE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except ConnectionError:
            piece = b""
        if not piece and (side is self._server or not self.patient):
            raise ConnectionResetError
        self._client_left |= not piece
        return piece
