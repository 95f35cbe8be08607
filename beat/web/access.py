"""Who may ask, and by which name of the page: a token, users, or what the application around it says.

Secrets are compared in a time that tells nothing about them, and are never shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import inspect
import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from beat.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from beat.settings import Settings

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
