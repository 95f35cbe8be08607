"""Who may ask, and by which name of the page: a token, users, or what the application around it says.

Secrets are compared in a time that tells nothing about them, and are never shown.

Slow down clients that try passwords, and tell the operator of them.

Of one address beat checks at most ten different wrong passwords a minute; further ones get 429 without a look at them.
What could be abused is left out of that rule:

- The same wrong password again is no new try, so a page that is open with an old password locks nobody out.
- A browser that has signed in keeps a proof of it in a cookie, and is never slowed down. An attacker on the same
  address, such as that of a proxy, cannot have it: the proof is bound to the name and password that were right.
- Tokens are always checked. They have 16 characters or more, so trying them is hopeless, and programs keep no cookies.

An IPv6 client can take any address of its /64 network, so that network counts as one address. The memory is bounded:
beat forgets the address that failed longest ago first.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import inspect
import ipaddress
import logging
import re
import secrets
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from beat.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from beat.config.settings import Settings

    Authorize = Callable[[Request], Awaitable[str | bool | None] | str | bool | None]


NOBODY = "web"
"""Who makes a change where nobody has to say who they are."""
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_LONGEST = 80


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may do what."""

    token: str | None = field(default=None, repr=False)
    """As `Authorization: Bearer`, or as the password of any name."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names and passwords."""
    authorize: Authorize | None = None
    """Asked instead, where the app is mounted: the name of who asks, or True; None or False to refuse."""
    hosts: tuple[str, ...] | None = ()
    """Names under which the page is reached, beside addresses and localhost; None to ask no questions."""
    read_only: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the settings have it; refuses a page that others could reach, and that asks nobody who they are."""
        asks = bool(settings.web_token or settings.web_users)
        if not asks and not _is_loopback(settings.web_host):
            raise ConfigError(
                f"the web UI would be open to whoever reaches {settings.web_host}: set BEAT_WEB_TOKEN or "
                "BEAT_WEB_USERS, or leave it at 127.0.0.1 (web_host)"
            )
        return cls(
            token=settings.web_token,
            users=settings.web_users,
            hosts=(settings.web_host, *settings.web_hosts),
            read_only=settings.web_read_only == "on",
        )

    @property
    def asks(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self.token or self.users or self.authorize is not None)

    async def who(self, request: Request, *, checks_passwords: bool = True) -> str | None:
        """Return the name of the client; None for a stranger. Tokens are checked even where passwords are not."""
        if self.authorize is not None:  # one that counts as false is still to be asked
            return _let_in(await _told(self.authorize, Request(request.scope)))  # without its body: that is the page's
        if not self.asks:
            return NOBODY
        return self._named(request.headers.get("authorization", ""), self.users if checks_passwords else {})

    def _named(self, header: str, users: Mapping[str, str]) -> str | None:
        kind, _, given = header.partition(" ")
        if kind.lower() == "bearer":
            return NOBODY if self.token and _same(given.strip(), self.token) else None
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
        except (binascii.Error, ValueError):  # no base64, no ASCII, no UTF-8
            return None
        known = _same(password, users.get(name, _NO_PASSWORD))
        by_token = _same(password, self.token or _NO_PASSWORD)
        if known:
            return _name(name)
        return (NOBODY if name in self.users else _name(name)) if by_token else None  # nobody has another's name

    def knows(self, host: str) -> bool:
        """Whether the page may be asked for by this name: an address cannot be pointed elsewhere, a name can."""
        if self.hosts is None:
            return True
        found = _HOST.fullmatch(host)
        name = found["name"].strip("[]").lower().rstrip(".") if found else ""
        if not name:
            return False
        if name in {"localhost", socket.gethostname().lower()} or _is_address(name):
            return True
        return any(fnmatchcase(name, each.lower()) for each in self.hosts)


_NO_PASSWORD = secrets.token_hex()
"""That of those who have none: it takes as long to find it wrong."""


async def _told(authorize: Authorize, request: Request) -> Any:
    """What it says; one that is not async may ask a database, and is called in a thread."""
    if inspect.iscoroutinefunction(authorize):
        found: Any = authorize(request)
    else:
        found = await run_in_threadpool(authorize, request)
    return await found if inspect.isawaitable(found) else found


def _let_in(found: Any) -> str | None:
    """Who that is. What says neither yes nor no, as a redirection that somebody returns, opens nothing."""
    if found is None or found is False:
        return None
    if found is True:
        return NOBODY
    if not isinstance(found, str):
        raise TypeError(f"authorize must return a name, True, False or None, and returned {type(found).__name__}")
    return _name(found) if found.strip() else None


def _name(given: str) -> str:
    """As it may stand in the ledger."""
    name = given.strip()[:_LONGEST]
    return name if name and name.isprintable() else NOBODY


def _same(given: str, wanted: str) -> bool:
    """In a time that tells neither where they differ nor how long they are."""
    one, other = (hashlib.sha256(text.encode(errors="replace")).digest() for text in (given, wanted))
    return hmac.compare_digest(one, other)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


_log = logging.getLogger("beat.web")
_EVERY_S = 1.0
_MOST_WRONG, _WINDOW_S = 10, 60.0
_MOST_ADDRESSES = 1_000
PROOF = "beat_known"
"""The cookie of a browser that has signed in."""


class Strangers:
    """The wrong passwords that one web UI was given lately. Only digests of them are kept, and none is logged."""

    def __init__(self) -> None:
        self._unlogged, self._next_line = 0, 0.0
        self._key = secrets.token_bytes(32)
        self._wrong = OrderedDict[str, dict[bytes, float]]()
        """By address: when each of them was first given."""

    def wait_s(self, request: Request) -> float:
        """Return for how long beat checks no password of this request; 0 where it does."""
        guess = self._guess(request)
        if guess is None or self.is_proven(request):
            return 0.0
        now, wrong = time.monotonic(), self._wrong.get(_address(request), {})
        recent = [at for at in wrong.values() if now - at < _WINDOW_S]
        if guess in wrong or len(recent) < _MOST_WRONG:
            return 0.0
        return recent[0] + _WINDOW_S - now

    def note(self, request: Request) -> None:
        """Remember a wrong password, and log a line a second at most.

        A request without any is that of a browser that has yet to be asked.
        """
        if not request.headers.get("authorization"):
            return
        now, address = time.monotonic(), _address(request)
        guess = self._guess(request)
        if guess is not None:
            wrong = self._wrong.pop(address, {})
            recent = {digest: at for digest, at in wrong.items() if now - at < _WINDOW_S}
            self._wrong[address] = {guess: now} if not recent else {**recent, guess: recent.get(guess, now)}
            while len(self._wrong) > _MOST_ADDRESSES:
                self._wrong.popitem(last=False)
        self._unlogged += 1
        if now < self._next_line:
            return
        more = f", {self._unlogged} times since the last such line" if self._unlogged > 1 else ""
        _log.warning("wrong token or password from %s%s", address or "an unknown address", more)
        self._unlogged, self._next_line = 0, now + _EVERY_S

    def proof(self, request: Request) -> str:
        """Return what shows later that the name and password of this request were right."""
        given = request.headers.get("authorization", "")
        return hmac.digest(self._key, given.encode("latin-1", "replace"), "sha256").hex()

    def is_proven(self, request: Request) -> bool:
        """Return whether the browser has shown that its name and password were right before."""
        return hmac.compare_digest(request.cookies.get(PROOF, "").encode(), self.proof(request).encode())

    def _guess(self, request: Request) -> bytes | None:
        """Return a digest of the name and password of a request; None for a token or nothing."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        return hashlib.blake2b(given.strip().encode("latin-1", "replace"), key=self._key, digest_size=16).digest()


def _address(request: Request) -> str:
    """Return the address of a client, or its /64 network; nothing where it has none."""
    host = request.client.host if request.client else ""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ascii(host)[1:61].rstrip("'")
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
