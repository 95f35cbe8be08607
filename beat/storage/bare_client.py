"""Ask Redis a few questions over a bare socket, because importing redis-py takes longer than a health probe should.

It supports what most URLs need: a password, a database and TLS. For any other URL, use redis-py.
"""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

_PORT = 6379
_LINE = re.compile(rb"[+-](?P<words>[^\r\n]*)\r\n|[:$*](?P<number>\d{1,12})\r\n")
_LONGEST_LINE = 10_000
_IGNORED = {"socket_timeout", "socket_connect_timeout", "socket_keepalive", "health_check_interval", "protocol"}
_UNDERSTOOD = {"db", "ssl_ca_certs", "ssl_cert_reqs"} | _IGNORED
Reply = bytes | int | list["Reply"] | Exception


class Refused(Exception):
    """Redis replied with an error."""


@dataclass(frozen=True)
class Place:
    """The address of a Redis, and the commands to send first."""

    address: tuple[str, int] | str
    """Host and port, or the path of a Unix socket."""
    greeting: tuple[tuple[str, ...], ...] = field(repr=False)
    tls: Mapping[str, str] | None = None
    """The URL's TLS options; None for a plain connection."""

    def connect(self, patience_s: float) -> socket.socket:
        """Return a connection with this timeout for each operation; raise OSError on failure."""
        if not isinstance(self.address, str):
            found = socket.create_connection(self.address, patience_s)
        else:
            found = socket.socket(socket.AF_UNIX)
            found.settimeout(patience_s)
        try:
            if isinstance(self.address, str):
                found.connect(self.address)
            return found if self.tls is None else _secured(found, self.address[0], self.tls)
        except BaseException:
            found.close()
            raise


def place(url: str) -> Place | None:
    """Return what a bare socket needs for this URL, or None if the URL needs redis-py."""
    parts = urlsplit(url)
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if given.keys() - _UNDERSTOOD or given.get("ssl_cert_reqs", "none") not in {"none", "required"}:
        return None
    local = parts.scheme == "unix"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    login = (("AUTH", user, password) if user else ("AUTH", password),) if user or password else ()
    number = given.get("db", "" if local else parts.path.strip("/"))
    chosen = (("SELECT", number),) if number.strip("0") else ()
    address = unquote(parts.path) if local else (unquote(parts.hostname or "localhost"), parts.port or _PORT)
    return Place(address, (*login, *chosen), given if parts.scheme == "rediss" else None)


def _secured(bare: socket.socket, host: str, told: Mapping[str, str]) -> socket.socket:
    import ssl  # noqa: PLC0415 (most probes do not need it)

    context = ssl.create_default_context()
    if told.get("ssl_cert_reqs") == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "ssl_ca_certs" in told:
        context.load_verify_locations(told["ssl_ca_certs"])
    return context.wrap_socket(bare, server_hostname=host)


@contextlib.contextmanager
def line(to: Place, patience_s: float) -> Iterator[Line]:
    """Open a connection for the `with` block; raise OSError after the timeout, or Refused if the login fails."""
    with to.connect(patience_s) as connected, connected.makefile("rb") as replies:
        found = Line(connected, replies)
        for reply in found.ask(to.greeting):
            if isinstance(reply, Exception):
                raise reply
        yield found


class Line:
    """A connection to one Redis."""

    def __init__(self, connected: socket.socket, replies: IO[bytes]) -> None:
        self._socket, self._replies = connected, replies

    def ask(self, commands: Sequence[Sequence[str]]) -> list[Reply]:
        """Send the commands and return the replies in order, an exception in the place of each rejected one."""
        self._socket.sendall(b"".join(map(_packed, commands)))
        return [self._reply() for _ in commands]

    def _reply(self) -> Reply:
        line = self._replies.readline(_LONGEST_LINE)
        if not line:
            raise ConnectionError("the connection was closed")
        found = _LINE.fullmatch(line)
        if not found:
            raise ConnectionError(f"it does not speak the protocol of Redis: {line[:20]!r}")
        if found["words"] is not None:
            return found["words"] if line[:1] == b"+" else Refused(found["words"].decode(errors="replace"))
        number = int(found["number"])
        if line[:1] == b":":
            return number
        if line[:1] == b"*":
            return [self._reply() for _ in range(number)]
        value = self._replies.read(number + 2)
        if len(value) < number + 2:
            raise ConnectionError("the connection was closed")
        return value[:-2]


def _packed(words: Sequence[str]) -> bytes:
    written = [word.encode() for word in words]
    return b"*%d\r\n" % len(written) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in written)
