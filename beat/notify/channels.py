"""Read and validate the channels to which alerts are sent.

A `Channel` is complete and valid, and neither its `repr` nor its `str` shows the URL's path or the secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, urlsplit

from beat.config import validators
from beat.errors import BadOption, did_you_mean

KINDS = ("webhook", "slack", "command")
FUNCTION = "function"
"""The kind of a channel that `@beat.on_event` makes; no setting can name it."""
TIMEOUT = timedelta(seconds=5)
MARGIN = timedelta(seconds=5)
"""How much longer than its channel's timeout the lease of a message lasts."""
_MOST_TIMEOUT = timedelta(minutes=1)
FIELDS = ("kind", "url", "url_env", "command", "secret", "secret_env", "timeout")
NAME = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


@dataclass(frozen=True)
class Channel:
    """One channel, complete and valid."""

    name: str
    kind: str
    url: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    command: tuple[str, ...] = field(default=(), repr=False)
    function: Callable[[dict[str, Any]], object] | None = field(default=None, repr=False)
    timeout: timedelta = TIMEOUT

    def __str__(self) -> str:
        """Return the kind with the host or the program name, and no secret."""
        if self.kind == "command":
            return f"command {os.path.basename(self.command[0])}"  # noqa: PTH119 (only its name is shown)
        if self.url:
            return f"{self.kind} at {urlsplit(self.url).hostname}"
        return self.kind


def read(name: str, given: object, place: str, environ: Mapping[str, str]) -> Channel:
    """Return the channel that one table of the settings describes.

    Raises BadOption with a message that starts with `place` and shows no secret.
    """
    if not isinstance(given, Mapping):
        raise BadOption(f"{place} must be a table, with `kind` and `url` or `command`, not {type(given).__name__}")
    if not NAME.fullmatch(str(name)):
        raise BadOption(f"{place}: a channel is named by 1 to 60 of A-Z a-z 0-9 _ -, as in 'ops'")
    for each in given:
        if each not in FIELDS:
            meant = did_you_mean(str(each), FIELDS)
            raise BadOption(f"{place} has no {each!r:.60}: there are {', '.join(FIELDS)}.{meant}")
    try:
        return _made(name, given, environ)
    except BadOption as e:
        raise BadOption(f"{place}: {e.message}") from None


def _made(name: str, given: Mapping[str, Any], environ: Mapping[str, str]) -> Channel:
    kind = validators.one_of(given.get("kind", "command" if "command" in given else "webhook"), "kind", KINDS)
    timeout = validators.span(given.get("timeout"), "timeout", timedelta(milliseconds=100), _MOST_TIMEOUT) or TIMEOUT
    if kind == "command":
        for each in ("url", "url_env", "secret", "secret_env"):
            if each in given:
                raise BadOption(f"{each} says nothing here: a command has none")
        return Channel(name, kind, command=_command(given.get("command")), timeout=timeout)
    if "command" in given:
        raise BadOption(f"command says nothing here: kind is {kind}")
    secret = _given("secret", given, environ)
    if not _is_utf8(secret):
        raise BadOption("secret is not UTF-8: encode it, as in base64")
    if secret and kind == "slack":
        raise BadOption("secret says nothing here: a Slack webhook is not signed, its URL is the secret")
    return Channel(name, kind, url=_url(_given("url", given, environ)), secret=secret, timeout=timeout)


def _given(name: str, given: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return a field's value, or that of the environment variable in `<name>_env`; errors never show it."""
    variable = given.get(f"{name}_env")
    if variable is not None and name in given:
        raise BadOption(f"{name} and {name}_env say two things: give one of them")
    if variable is not None:
        if not isinstance(variable, str) or not environ.get(variable, "").strip():
            raise BadOption(f"{name}_env must name a variable that is set: this one is not, or it is no name at all")
        return environ[variable].strip()
    value = given.get(name, "")
    if not isinstance(value, str):
        raise BadOption(f"{name} must be text, not {type(value).__name__}")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _url(url: str) -> str:
    example = "write url = 'https://hooks.example.com/…', or url_env = 'NAME' of a variable that holds it"
    if not url:
        raise BadOption(f"url is missing: {example}")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadOption(f"url holds a blank, or a character that no URL has: {example}")
    try:
        parts: SplitResult = urlsplit(url)
        port_is_sound = parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise BadOption(f"url is not a URL: {example}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_sound:
        raise BadOption(f"url must begin with https:// or http://, and name a host: {example}")
    if "@" in parts.netloc:
        raise BadOption(f"url holds a user name or a password, which is not sent: {example}")
    return url


def _command(given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        raise BadOption("command must be a list of words, as in ['/usr/local/bin/page', '--loud']: there is no shell")
    if not given[0] or any("\0" in each for each in given):
        raise BadOption("command names no program")
    return tuple(given)


def lease_ms(channel: Channel) -> int:
    """Return for how many ms a message is hidden from other schedulers while one of them sends it."""
    return (channel.timeout + MARGIN) // timedelta(milliseconds=1)
