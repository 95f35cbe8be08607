"""The DSN of a project at Sentry: where its check-ins go, and with which key.

A key only lets one send; it is masked as a password is all the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OFF = "off"
"""In place of a DSN: nothing is sent, and nobody misses it."""
EXAMPLE = "https://key@o1.ingest.sentry.io/42"
_DSN = (
    r"(?a)(?P<scheme>https?)://(?P<key>[A-Za-z0-9_-]+)(?::[^\s@/?#]*)?@(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9_.~-]+)*)/(?P<project>[A-Za-z0-9_-]+)/?"
)


class Dsn(NamedTuple):
    """A DSN, taken apart."""

    key: str
    host: str
    """With its port, if it names one."""
    envelopes: str
    """The URL that takes what is sent."""


def read(text: str) -> Dsn | None:
    """None for what is no DSN."""
    found = re.fullmatch(_DSN, text)
    if found is None:
        return None
    base = f"{found['scheme']}://{found['host']}{found['path']}"
    return Dsn(found["key"], found["host"], f"{base}/api/{found['project']}/envelope/")


def masked(text: str) -> str:
    """A DSN without its key, and `off` as it is; of what is neither, nothing that could be a key."""
    if text == OFF:
        return text
    if found := re.fullmatch(_DSN, text):
        return f"{found['scheme']}://***@{found['host']}{found['path']}/{found['project']}"
    scheme = re.match(r"https?://", text, re.ASCII)
    return f"{scheme[0] if scheme else ''}***"


def checked(text: str | None) -> str | None:
    """A DSN, `off` or nothing; refuses the rest without showing it."""
    if text is None or text == OFF or read(text):
        return text
    raise ValueError(f"is not the DSN of a project at Sentry: write {EXAMPLE}, or {OFF} to send nothing")
