"""Define the dead-man monitor of a schedule: the service that beat informs of runs, and that alerts if they stop.

With a ping URL, anyone can report a run as successful. The URL is therefore stored whole, but displayed masked.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from beat.config import sentry_dsn, validators
from beat.errors import BadOption, did_you_mean
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from beat.timing.durations import Duration

SENTRY = "sentry"
HIDDEN = "***"
LONGEST_SLUG = 50
_LONGEST_URL = 500
_EXAMPLES = "'https://hc-ping.com/<uuid>', 'sentry' or 'sentry:nightly-report'"
_SLUG = re.compile(rf"(?![0-9]+\Z)[a-z0-9_-]{{1,{LONGEST_SLUG}}}", re.ASCII)
_WORD = re.compile(r"[A-Za-z]{0,20}", re.ASCII)
_URL = re.compile(r"https?://\S*", re.ASCII)
_MINUTE, _MONTH = timedelta(minutes=1), timedelta(days=28)
_NAMES = ("grace", "max_runtime")


@dataclass(frozen=True, init=False, repr=False)
class Monitor:
    """A ping URL such as those of healthchecks.io, or a Sentry Crons monitor with its slug.

    Sentry reports a run that starts later than `grace`, or takes longer than `max_runtime`. Ping URLs accept neither,
    because their service has its own settings for them.
    """

    where: str
    grace: timedelta | None
    max_runtime: timedelta | None

    def __init__(self, where: str, grace: Duration | None = None, max_runtime: Duration | None = None) -> None:
        object.__setattr__(self, "where", _where(where))
        object.__setattr__(self, "grace", validators.span(grace, "grace", _MINUTE, _MONTH))
        object.__setattr__(self, "max_runtime", validators.span(max_runtime, "max_runtime", _MINUTE, _MONTH))
        for name in _NAMES:
            if not self.of_sentry and (value := getattr(self, name)):
                told = "the service behind a ping URL has its own: set it there, and leave it out here"
                raise BadOption(f"monitor: {name}={durations.short(value)!r} says nothing here: {told}")

    @classmethod
    def read(cls, text: str) -> Monitor:
        """Parse the text of `written`, such as `sentry:nightly grace=5m`; raise BadOption if it is malformed."""
        where, *rest = text.split() or [""]
        more: dict[str, Any] = {}
        for each in rest:
            name, _, value = each.partition("=")
            if name not in _NAMES or name in more:
                raise BadOption(f"monitor: {each!r:.60} is none of {', '.join(f'{known}=5m' for known in _NAMES)}")
            more[name] = value
        return cls(where, **more)

    @property
    def of_sentry(self) -> bool:
        """Return whether the monitor is one of Sentry Crons."""
        return self.where.partition(":")[0] == SENTRY

    @property
    def service(self) -> str:
        """Return the service without secrets: `Sentry`, or the host of the ping URL."""
        return "Sentry" if self.of_sentry else urlsplit(self.where).netloc

    @property
    def slug(self) -> str:
        """Return the slug given for Sentry; "" if the schedule's id is used."""
        return self.where.partition(":")[2] if self.of_sentry else ""

    def written(self) -> str:
        """Return the full text with its secrets, for Redis only; use `str` to display it."""
        return " ".join([self.where, *self._more()])

    def __str__(self) -> str:
        return masked(self.written())

    def __repr__(self) -> str:
        return f"Monitor({str(self)!r})"

    def _more(self) -> Iterator[str]:
        for name in _NAMES:
            if value := getattr(self, name):
                yield f"{name}={durations.short(value)}"


def read(value: object) -> Monitor | None:
    """Return the monitor that an option's value means: a Monitor, its text, or None."""
    if value is None or isinstance(value, Monitor):
        return value
    if isinstance(value, str):
        return Monitor.read(validators.text(value))
    raise BadOption(f"monitor must be {_EXAMPLES}, or a beat.Monitor, not {type(value).__name__}")


def refuse_contradictions(schedule: Any) -> None:
    """Raise BadOption if monitor='sentry' needs the id as its slug, and the id is not a valid slug."""
    monitor: Monitor | None = schedule.monitor
    if monitor and monitor.where == SENTRY and not _SLUG.fullmatch(slug_of(schedule)):
        raise BadOption(
            f"monitor='sentry' goes by the id, and {schedule.id!r} is no slug: Sentry takes up to {LONGEST_SLUG} of "
            "a-z 0-9 _ -, not digits alone: write monitor='sentry:a-shorter-name'"
        )


def slug_of(schedule: Any) -> str:
    """Return the slug of a schedule's monitor at Sentry."""
    return str(schedule.monitor.slug or schedule.id.lower())


def is_allowed(found: Monitor, hosts: Iterable[str]) -> bool:
    """Return whether a schedule from data may use this monitor: Sentry, or a ping URL at an allowed host."""
    if found.of_sentry:
        return True
    host = urlsplit(found.where).hostname or ""
    return any(fnmatch.fnmatchcase(host, glob.lower()) for glob in hosts)


def without_dsn(schedules: Iterable[Any], dsn: str | None) -> Iterator[BadOption]:
    """Yield an error for each schedule with a Sentry monitor if no DSN is set."""
    for each in schedules if dsn is None else ():
        if each.monitor and each.monitor.of_sentry:
            error = BadOption(
                f"schedule {each.id!r} has monitor={str(each.monitor)!r}, and there is no DSN: set BEAT_SENTRY_DSN "
                f"(or SENTRY_DSN), or BEAT_SENTRY_DSN={sentry_dsn.OFF} to send nothing"
            )
            error.where = str(each.declared) if each.declared else None
            yield error


def masked(text: str) -> str:
    """Return the text of a monitor for display; of a ping URL, only scheme and host remain."""
    where, space, rest = text.partition(" ")
    if where.partition(":")[0] == SENTRY or _WORD.fullmatch(where):
        return text
    found = re.match(r"https?://[A-Za-z0-9.-]{1,100}(?::\d{1,5})?(?=/)", where, re.ASCII)
    return f"{found[0]}/{HIDDEN}{space}{rest}" if found else HIDDEN


def hidden(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a definition with its monitor masked."""
    found = dict(definition)
    if (monitor := found.get("monitor")) is not None:
        found["monitor"] = masked(monitor) if isinstance(monitor, str) else HIDDEN
    return found


def _where(value: object) -> str:
    if not isinstance(value, str):
        raise BadOption(f"monitor must be {_EXAMPLES}, not {type(value).__name__}")
    text = validators.text(value)
    kind, colon, slug = text.partition(":")
    if kind == SENTRY:
        if colon and not _SLUG.fullmatch(slug):
            raise BadOption(
                f"monitor {text!r:.80}: {slug!r:.60} is no slug of Sentry's: write up to {LONGEST_SLUG} of "
                "a-z 0-9 _ -, not digits alone, as in 'sentry:nightly-report'"
            )
        return text
    if not _URL.fullmatch(text):
        raise BadOption(f"monitor {masked(text)!r} must be {_EXAMPLES}.{did_you_mean(kind, [SENTRY])}")
    if wrong := _problem(text):
        raise BadOption(f"monitor {masked(text)!r} {wrong}")
    return text


def _problem(url: str) -> str:
    """Return what is wrong with a ping URL, or "" if it is valid."""
    try:
        found = urlsplit(url)
        _ = found.port
    except ValueError:
        return "has no port from 1 to 65535, or no host: write https://hc-ping.com/<uuid>"
    path = found.path.rstrip("/")
    if len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable():
        return f"must be at most {_LONGEST_URL} plain characters"
    if not found.hostname:
        return "names no host: write https://hc-ping.com/<uuid>"
    if "@" in found.netloc:
        return "holds a user or a password, which no ping URL needs: take them out"
    if found.fragment or "#" in url:
        return "holds a #, and what comes after it is never sent: take it out"
    if not path:
        return f"names no check: write {found.scheme}://{found.netloc}/<uuid>"
    if HIDDEN in path:
        return "is masked, as beat shows it: write the whole URL"
    last = path.rpartition("/")[2]
    return f"ends with /{last}, which beat adds itself: leave it out" if last in {"start", "fail", "log"} else ""
