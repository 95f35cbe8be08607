"""Slow down clients that try passwords, and tell the operator of them.

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

import hashlib
import hmac
import ipaddress
import logging
import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

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
