"""Parse, check and mask the DSN of a Sentry project, which says where check-ins go and with which key.

The key only permits sending, but it is masked like a password.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OFF = "off"
"""The value that replaces a DSN to send nothing on purpose."""
EXAMPLE = "https://key@o1.ingest.sentry.io/42"
_DSN = (
    r"(?a)(?P<scheme>https?)://(?P<key>[A-Za-z0-9_-]+)(?::[^\s@/?#]*)?@(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9_.~-]+)*)/(?P<project>[A-Za-z0-9_-]+)/?"
)


class Dsn(NamedTuple):
    """The parts of a DSN."""

    key: str
    host: str
    """The host, with the port if the DSN has one."""
    envelopes: str
    """The URL to which check-ins are sent."""


def read(text: str) -> Dsn | None:
    """Parse a DSN; return None if the text is not one."""
    found = re.fullmatch(_DSN, text)
    if found is None:
        return None
    base = f"{found['scheme']}://{found['host']}{found['path']}"
    return Dsn(found["key"], found["host"], f"{base}/api/{found['project']}/envelope/")


def masked(text: str) -> str:
    """Return a DSN with its key masked, `off` unchanged, and any other text fully masked."""
    if text == OFF:
        return text
    if found := re.fullmatch(_DSN, text):
        return f"{found['scheme']}://***@{found['host']}{found['path']}/{found['project']}"
    scheme = re.match(r"https?://", text, re.ASCII)
    return f"{scheme[0] if scheme else ''}***"


def checked(text: str | None) -> str | None:
    """Return a valid DSN, `off` or None; raise ValueError, without showing the text, for anything else."""
    if text is None or text == OFF or read(text):
        return text
    raise ValueError(f"is not the DSN of a project at Sentry: write {EXAMPLE}, or {OFF} to send nothing")
