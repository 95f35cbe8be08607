"""Check the settings that hold secrets: the alerts table, and the token and users of the web UI.

Their values are never displayed, not even in errors. Only counts are, such as `2 users`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def table(value: object) -> object:
    """Return the alerts table, given as a mapping or as a JSON object; `beat.notify.alerts` checks its contents."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise ValueError("must be a table: write [tool.beat.alerts.channels.ops], or one JSON object")  # noqa: TRY004 (pydantic's)
    return found


def count_alerts(alerts: Mapping[str, Any]) -> str:
    """Return the size of the alerts table without its secrets, such as `2 channels, 1 rule`."""
    sizes = {name: len(found) for name in ("channels", "rules") if isinstance(found := alerts.get(name), dict | list)}
    return ", ".join(f"{number} {name.removesuffix('s') if number == 1 else name}" for name, number in sizes.items())


SECRETS = ("web_token", "web_users")
"""The settings that hold the token and the users."""
HIDDEN = "***"
_TOKEN = r"[!-~]{16,200}"  # noqa: S105 (a pattern)
_USER = r"[^\s:,]{1,64}"
_SHORTEST, _LONGEST = 12, 200
"""The length of a password, in characters."""


def token(value: str | None) -> str | None:
    """Return the token or None; raise ValueError, without showing the token, if it is too short or malformed."""
    if value is not None and not re.fullmatch(_TOKEN, value):
        raise ValueError("is no token: 16 to 200 letters, digits or signs, no spaces, as `openssl rand -hex 16` prints")
    return value


def users(value: object) -> Mapping[str, str]:
    """Return the passwords by name, given as a mapping, a JSON object or `alice:password,bob:password`."""
    found = _pairs(value.strip()) if isinstance(value, str) else value
    if not isinstance(found, Mapping) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise ValueError("must be a table: write name:password,name:password, or one JSON object")
    for name, password in found.items():
        if not re.fullmatch(_USER, name) or not name.isprintable():
            raise ValueError("holds a name that cannot be: 1 to 64 characters without spaces, colons and commas")
        if len(password) < _SHORTEST:
            raise ValueError(f"has a password that is too short: write {_SHORTEST} characters or more")
        if len(password) > _LONGEST or not password.isprintable():
            raise ValueError(f"has a password that cannot be: write {_SHORTEST} to {_LONGEST} characters, on one line")
    return dict(found)


def count_users(found: Mapping[str, str]) -> str:
    """Return the number of users without their secrets, such as `2 users`; "" if there are none."""
    return f"{len(found)} user{'s' * (len(found) != 1)}" if found else ""


def _pairs(text: str) -> object:
    if text.startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=list)
        except (ValueError, RecursionError):
            return None
    else:
        split = [pair.strip().partition(":") for pair in text.split(",") if pair.strip()]
        pairs = [(name, password) for name, colon, password in split if colon]
        if len(pairs) != len(split):
            return None
    names = [name for name, _ in pairs]
    if len({*names}) != len(names):
        raise ValueError("has a name twice")
    return dict(pairs)
