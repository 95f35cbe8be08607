"""The Redis protocol, as far as a proxy needs it: where one value ends, and the words of a request.

Nothing is decoded or changed: what goes in comes out, byte for byte, cut into whole values of RESP2 or RESP3.
"""

from __future__ import annotations

END = b"\r\n"
_SUBSCRIBING = {b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe"}
_PUSHED = _SUBSCRIBING | {b"message", b"pmessage", b"smessage"}


class Frames:
    """A stream of bytes, cut into whole values, however they arrive.

    Each element is looked at once, not again with every piece that arrives: a long reply costs no more than its length.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._at = 0
        self._missing = 1  # values until this one is whole: an array of three is three more

    def feed(self, piece: bytes) -> None:
        self._bytes += piece

    def pop(self) -> bytes | None:
        """The next whole value, or None while some of it is still to come."""
        while self._missing:
            if not self._step():
                return None
        frame = bytes(self._bytes[: self._at])
        del self._bytes[: self._at]
        self._at, self._missing = 0, 1
        return frame

    def _step(self) -> bool:
        """Pass one header, and its bytes if it has any; False while it is not all there."""
        line = self._bytes.find(END, self._at)
        if line < 0:
            return False
        kind, rest = self._bytes[self._at : self._at + 1], self._bytes[self._at + 1 : line]
        end = line + len(END)
        if kind in b"$=!" and int(rest) >= 0:  # bulk and verbatim strings, bulk errors; -1 is RESP2's null
            end += int(rest) + len(END)
            if len(self._bytes) < end:
                return False
        elif kind in b"*~>":
            self._missing += max(int(rest), 0)
        elif kind in b"%|":
            self._missing += 2 * int(rest) + (kind == b"|")  # attributes stand before the value they belong to
        self._at = end
        self._missing -= 1
        return True


def words(request: bytes) -> list[bytes]:
    """The command and its arguments, of an array of strings or of an inline command."""
    if not request.startswith(b"*"):
        return request.split()
    found, at = [], request.index(END) + len(END)
    while at < len(request):
        line = request.index(END, at)
        start, length = line + len(END), int(request[at + 1 : line])
        found.append(request[start : start + length])
        at = start + length + len(END)
    return found


def has_reply(request: bytes) -> bool:
    """False for SUBSCRIBE and its kin: what they are told, once for each channel, is pushed."""
    return _first_word(request).lower() not in _SUBSCRIBING


def is_pushed(reply: bytes, *, subscribed: bool) -> bool:
    """Whether this came unasked; on a connection of RESP2 that has `subscribed`, only the first word tells."""
    return reply.startswith(b">") or (subscribed and reply.startswith(b"*") and _first_word(reply) in _PUSHED)


def _first_word(frame: bytes) -> bytes:
    parts = frame.split(END, 3)  # header, header of the first, the first, the rest
    return parts[2] if frame.startswith(b"*") and len(parts) > 2 else frame.partition(b" ")[0].strip()
