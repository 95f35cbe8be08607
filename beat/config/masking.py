"""Mask secrets before they are displayed: values whose names look secret, and passwords in URLs.

The command line and the web UI both use this module, so they mask the same values.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

MASK = "•••"
_DEEPEST = 100
_DEEPEST_SHOWN = 60
_NAMES = re.compile(r"[A-Za-z_]\w{0,100}", re.ASCII)
_THEIRS = frozenset(("args", "kwargs", "meta", "details"))
"""Keys of documents below which users chose the names, so that only there a name can mark a secret."""
_WORDS = frozenset((
    "password", "passwords", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "secret", "secrets", "token",
    "tokens", "apikey", "auth", "authorization", "authentication", "bearer", "credential", "credentials", "cred",
    "creds", "privatekey", "dsn", "cookie", "cookies", "session", "sessionid", "jwt", "otp", "totp", "pin", "cvv",
    "cvc", "iban", "ssn", "signature", "sig", "salt", "hmac", "webhook",
))  # fmt: skip
_PARTS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "privatekey",
    "accesskey",
    "jwt",
)
"""Words that mark a secret even inside a longer name, because no harmless word contains them."""
_KEYS = frozenset(("api", "private", "access", "secret", "signing", "encryption", "ssh", "account", "master", "shared"))
"""Words that make a following `key` a secret; `key` alone is usually the key of a dict."""
_HARMLESS = frozenset(("tokens_used", "max_tokens", "token_count", "token_limit"))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_URL = r"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://"
_IN_URL = re.compile(rf"({_URL}[^\s/?#@:'\"]*:)[^\s/'\"]+(?=@)|({_URL})[^\s/?#@:'\"]+(?=@)")
"""The password in a URL, up to its last @; also a user without a password, because it may be a token."""
_IN_REDIS_URL = re.compile(r"\b((?:rediss?|unix)://(?:[^\s/?#@:'\"]*:)?)[^\s'\"@]{1,300}(?=@)")
"""The password in a Redis URL, even with a / that should be written as %2F. The limit keeps matching linear."""
_CUT_SHORT = re.compile(rf"({_URL}[^\s/?#@:\['\"]*:)(?!\d{{1,5}}(?:[\s.…,;)]|\Z))[^\s/'\"…@]+?(?=\s?…|\.\.\.|\Z)")
"""The start of a password in a URL that was truncated before its @; a port does not match."""
_IN_QUERY = re.compile(r"([?&]([A-Za-z0-9_.-]{1,100})=)[^\s&#'\"]+")
_BEARER = re.compile(r"\b((?i:bearer|basic)\s+)(?=.[a-z.-]*[A-Z0-9_~+/=])[A-Za-z0-9._~+/=-]{8,}")
"""The token of an Authorization header: it has a digit, sign or capital, unlike the words "basic authentication"."""


def looks_secret(name: object) -> bool:
    """Return whether a name looks like that of a secret: `api_token`, `dbPassword`, `SENTRY-DSN`."""
    if not isinstance(name, str):
        return False
    words = [word.lower() for word in re.split(r"[^A-Za-z0-9]+", _HUMP.sub("_", name[:_LONGEST])) if word]
    whole = "".join(words)
    if "_".join(words) in _HARMLESS:
        return False
    pairs = itertools.pairwise(words)
    keys = any(first in _KEYS and second in {"key", "keys"} for first, second in pairs)
    return keys or not _WORDS.isdisjoint(words) or any(part in whole for part in _PARTS)


_LONGEST = 300


def masked(value: Any, name: object = "", _depth: int = 0) -> Any:
    """Return a copy made of dicts and lists, with secrets masked by their names and in URLs."""
    if looks_secret(name) and value is not None and not isinstance(value, bool):
        return MASK
    if _depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {_key(key): masked(item, key, _depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, "", _depth + 1) for item in value]
    return without_passwords(value) if isinstance(value, str) else value


def _key(key: object) -> object:
    return without_passwords(key) if isinstance(key, str) else key


def without_passwords(text: str) -> str:
    """Mask the passwords in a text: `redis://ann:•••@host`, `https://host/?token=•••`, `Bearer •••`."""
    if "://" in text:
        text = _IN_REDIS_URL.sub(rf"\1{MASK}", _IN_URL.sub(rf"\1\2{MASK}", text))
        text = _CUT_SHORT.sub(rf"\1{MASK}", text)
    if "=" in text:
        text = _IN_QUERY.sub(lambda found: f"{found[1]}{MASK}" if looks_secret(found[2]) else found[0], text)
    return _BEARER.sub(rf"\1{MASK}", text)


def shown(value: Any, name: str = "") -> Any:
    """Return a document as JSON values with its secrets masked.

    Names mark secrets only in values that users wrote: arguments, `meta` and the details of reports.
    """
    if name in _THEIRS:
        return _masked_below(_sound(value))
    if isinstance(value, dict):
        return {key: shown(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    return masked(_sound(value))


def _masked_below(value: Any) -> Any:
    """Mask the values whose names look secret, and any text that contains such a name."""
    # Arguments that JSON cannot represent arrive as their repr. The secret may be anywhere in it, so mask all of it.
    if isinstance(value, str) and any(looks_secret(word) for word in _NAMES.findall(value)):
        return MASK
    return masked(value)


def _sound(value: Any, depth: int = 0) -> Any:
    """Return JSON values: NaN and infinity become None, other types text, and too deep levels `…`."""
    if depth > _DEEPEST_SHOWN:
        return "…"
    if isinstance(value, dict):
        return {str(key): _sound(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
