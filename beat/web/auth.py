"""Authenticate requests by a token, by a user's password, or by a function of the application around the web UI.

Secrets are compared in constant time and never shown.

The web UI slows down clients that guess passwords, and logs a warning. It checks at most ten different wrong passwords
per minute and address, and answers further ones with 429 unchecked. Three exceptions protect legitimate users:

- The same wrong password again is not a new guess, so an open page with an old password locks no other user out.
- A browser that has signed in keeps a proof of it in a cookie and is never slowed down. An attacker at the same
  address, such as that of a proxy, cannot have it, because the proof is bound to the correct name and password.
- Tokens are always checked. They have 16 characters or more, so guessing them is hopeless, and programs keep no
  cookies.

An IPv6 client can take any address of its /64 network, so that network counts as one address. Memory is bounded: beat
first forgets the address whose last wrong password is oldest.
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
"""The recorded author of a change whose request carries no user name."""
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_LONGEST = 80


@dataclass(frozen=True, kw_only=True)
class Access:
    """The access rules of one web UI."""

    token: str | None = field(default=None, repr=False)
    """Accepted as `Authorization: Bearer`, or as the password of any user name."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords by user name."""
    authorize: Authorize | None = None
    """Replaces token and users in a mounted app. Returns the user's name or True, or None or False to refuse."""
    hosts: tuple[str, ...] | None = ()
    """Accepted host names or globs, besides IP addresses and localhost; None accepts every host."""
    read_only: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the access rules of the settings. Raise ConfigError if others could get in without a password."""
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
        """Return whether requests must authenticate."""
        return bool(self.token or self.users or self.authorize is not None)

    async def who(self, request: Request, *, checks_passwords: bool = True) -> str | None:
        """Return the user's name; None for an unknown user. `checks_passwords=False` still checks the token."""
        if self.authorize is not None:  # a callable object may be falsy
            return _let_in(
                await _told(self.authorize, Request(request.scope))
            )  # no body: only the endpoint may read it
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
        except (binascii.Error, ValueError):  # not base64, not ASCII, or not UTF-8
            return None
        known = _same(password, users.get(name, _NO_PASSWORD))
        by_token = _same(password, self.token or _NO_PASSWORD)
        if known:
            return _name(name)
        return (NOBODY if name in self.users else _name(name)) if by_token else None  # the token impersonates no user

    def knows(self, host: str) -> bool:
        """Return whether this Host header is accepted. IP addresses always are: DNS rebinding needs a name."""
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
"""Compared when there is no password, so that refusing an unknown user takes as long as refusing a known one."""


async def _told(authorize: Authorize, request: Request) -> Any:
    """Return the answer of `authorize`. A function that is not async may block, so it runs in a thread."""
    if inspect.iscoroutinefunction(authorize):
        found: Any = authorize(request)
    else:
        found = await run_in_threadpool(authorize, request)
    return await found if inspect.isawaitable(found) else found


def _let_in(found: Any) -> str | None:
    """Return the user's name, or None for a refusal. Raise TypeError for any other answer, such as a redirect."""
    if found is None or found is False:
        return None
    if found is True:
        return NOBODY
    if not isinstance(found, str):
        raise TypeError(f"authorize must return a name, True, False or None, and returned {type(found).__name__}")
    return _name(found) if found.strip() else None


def _name(given: str) -> str:
    """Return the name as the ledger may store it; `web` if it is empty or not printable."""
    name = given.strip()[:_LONGEST]
    return name if name and name.isprintable() else NOBODY


def _same(given: str, wanted: str) -> bool:
    """Return whether two secrets are equal, in a time that reveals neither their difference nor their lengths."""
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
"""The name of the cookie that proves an earlier sign-in."""


class Strangers:
    """The recent wrong passwords of one web UI. Only digests of them are kept, and none is logged."""

    def __init__(self) -> None:
        self._unlogged, self._next_line = 0, 0.0
        self._key = secrets.token_bytes(32)
        self._wrong = OrderedDict[str, dict[bytes, float]]()
        """By address: when each wrong password was first given, on the monotonic clock."""

    def wait_s(self, request: Request) -> float:
        """Return for how many seconds the password of this request stays unchecked; 0 if it may be checked now."""
        guess = self._guess(request)
        if guess is None or self.is_proven(request):
            return 0.0
        now, wrong = time.monotonic(), self._wrong.get(_address(request), {})
        recent = [at for at in wrong.values() if now - at < _WINDOW_S]
        if guess in wrong or len(recent) < _MOST_WRONG:
            return 0.0
        return recent[0] + _WINDOW_S - now

    def note(self, request: Request) -> None:
        """Remember a wrong password, and log at most one line a second.

        A request without credentials does not count: browsers send one before they ask the user for a password.
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
        """Return the proof that the name and password of this request were correct."""
        given = request.headers.get("authorization", "")
        return hmac.digest(self._key, given.encode("latin-1", "replace"), "sha256").hex()

    def is_proven(self, request: Request) -> bool:
        """Return whether the request carries the proof of an earlier sign-in with the same name and password."""
        return hmac.compare_digest(request.cookies.get(PROOF, "").encode(), self.proof(request).encode())

    def _guess(self, request: Request) -> bytes | None:
        """Return a digest of the name and password of a request; None if it has a token or no credentials."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        return hashlib.blake2b(given.strip().encode("latin-1", "replace"), key=self._key, digest_size=16).digest()


def _address(request: Request) -> str:
    """Return the client's IPv4 address, its IPv6 /64 network, or its host name; empty if it has none."""
    host = request.client.host if request.client else ""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ascii(host)[1:61].rstrip("'")
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
