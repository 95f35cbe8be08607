"""Define the types of the settings: how each is parsed and checked, and its description in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from beat.config import redis_url, secrets, sentry_dsn, sources
from beat.errors import BadDuration
from beat.timing import durations
from beat.timing.zones import zone

_MS = timedelta(milliseconds=1)
_NAME = r"[^\W\d]\w*"
_SWITCHED = {"true": "on", "1": "on", "yes": "on", "false": "off", "0": "off", "no": "off"}


@dataclass(frozen=True)
class Reads:
    """The name of a type in words, and its range if pydantic's bounds do not express it."""

    kind: str
    range: str = ""


def _redis_url(url: str) -> str:
    if wrong := redis_url.problem(url):
        raise ValueError(wrong)
    return url


def _duration(value: object) -> timedelta | None:
    try:
        duration = None if value is None else durations.parse(value)
    except BadDuration:
        raise ValueError("is not a length of time: write seconds, or text such as '2s', '500ms', '1m30s'") from None
    if duration and duration % _MS:
        raise ValueError("is finer than a millisecond, which Redis cannot count: write text such as '2s', '500ms'")
    return duration


def _modules(names: tuple[str, ...]) -> tuple[str, ...]:
    # the loader checks what each name means
    if not all(name.strip() and name.isprintable() for name in names):
        raise ValueError("holds an empty name or a control character: write names such as app.tasks")
    return tuple(dict.fromkeys(names))


def _tz(value: str) -> str:
    if sources.safe(value) != value:  # BadZone would show the whole value
        raise ValueError("is not the name of a time zone, such as Europe/Paris")
    return zone(value).name


def _switch(value: object) -> str:
    """Return `on` or `off` for boolean words such as true, 1 or yes; other words stay as they are."""
    word = str(value).lower()
    return _SWITCHED.get(word, word)


_lower = BeforeValidator(lambda value: str(value).lower())
_digits = BeforeValidator(lambda v: v if v is None or re.fullmatch(r"\s*\d{1,9}\s*", str(v), re.ASCII) else "")
_split = BeforeValidator(lambda value: re.findall(r"[^\s,]+", value) if isinstance(value, str) else value)

Url = Annotated[str, AfterValidator(_redis_url), Reads("a URL", "redis://, rediss:// or unix://")]
Prefix = Annotated[
    str,
    Field(pattern=r"^(?!rq:)[A-Za-z0-9_:-]{0,63}:\Z"),
    Reads("text", "1 to 64 of A-Z a-z 0-9 _ : -, ending in :, not RQ's rq:"),
]
Modules = Annotated[tuple[str, ...], _split, AfterValidator(_modules), Reads("names", "app.tasks or app/tasks.py")]
App = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]{1,100}\Z"), Reads("a name", "1 to 100 of A-Z a-z 0-9 _ -")]
Setup = Annotated[
    str | None, Field(pattern=rf"^{_NAME}(\.{_NAME})*:{_NAME}\Z"), Reads("a function", "such as app.boot:setup")
]
ZoneName = Annotated[str, AfterValidator(_tz), Reads("a time zone", "such as Europe/Paris")]
Presets = Annotated[Mapping[str, str], Reads("a table", "name = expression")]
Queues = Annotated[Mapping[str, str], Reads("a table", "high, normal, low = queue")]
Groups = Annotated[Mapping[str, str], Reads("a table", "name = number, or max_running, when_full, max_waiting")]
Alerts = Annotated[Mapping[str, Any], BeforeValidator(secrets.table), Reads("a table", "channels and rules")]
Duration = Annotated[timedelta, BeforeValidator(_duration), Reads("a duration")]
MaybeDuration = Annotated[timedelta | None, BeforeValidator(_duration), Reads("a duration")]
Count = Annotated[int, _digits, Reads("a whole number")]
Dsn = Annotated[str | None, AfterValidator(sentry_dsn.checked), Reads("a URL", "the DSN of a project, or off")]
Level = Annotated[Literal["debug", "info", "warning", "error"], _lower, Reads("a word")]
Switch = Annotated[Literal["on", "off"], BeforeValidator(_switch), Reads("a word")]
Port = Annotated[int | None, _digits, Reads("a whole number")]
Host = Annotated[str, Field(pattern=r"\A[A-Za-z0-9.:_-]{1,253}\Z"), Reads("a name or address", "such as 0.0.0.0")]
HostGlob = Annotated[str, Field(pattern=r"\A[A-Za-z0-9.*?-]{1,253}\Z")]
HostGlobs = Annotated[tuple[HostGlob, ...], _split, Reads("names", "such as beat.example.com or *.example.com")]
Place = Annotated[
    str,
    Field(pattern=r"\A(/[A-Za-z0-9._~-]*[A-Za-z0-9_~-])*\Z", max_length=200),
    Reads("a path", "such as /beat, or nothing"),
]
Token = Annotated[str | None, AfterValidator(secrets.token), Reads("text", "16 to 200 characters, no spaces")]
Users = Annotated[Mapping[str, str], BeforeValidator(secrets.users), Reads("a table", "name = password")]
Glob = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_*?\[\]!-]{1,200}\Z")]
Globs = Annotated[tuple[Glob, ...], _split, Reads("ids", "with * ? or [a-z] for what may differ")]
Format = Annotated[Literal["text", "json"], _lower, Reads("a word")]
