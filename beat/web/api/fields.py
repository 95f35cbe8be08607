"""The fields of API requests. One declaration both checks what was sent and describes it in the OpenAPI document.

So the document and the checks cannot differ. Each refusal names the field. Times are written as on the command line, in
the zone of a schedule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat.client.describe import instants
from beat.errors import BadOption, BeatError, NoRedis, did_you_mean
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.describe.instants import Meant
    from beat.timing.zones import Zone


def zone_of(client: Client, schedule_id: str | None) -> Zone:
    """Return the zone of a schedule: without an id that of the settings, and UTC for one that cannot be read."""
    if schedule_id is None:
        return zone(client.settings.tz)
    try:
        return zone(client.get(schedule_id).tz)
    except NoRedis:
        raise
    except BeatError:
        return zone("UTC")


def past(text: str | None, where: Zone, now: datetime, name: str) -> datetime | None:
    """Return the past instant of a text, which is a time or a length of time before `now`."""
    return None if text is None else instants.since(text, where, now, name)


def ahead(text: str | None, where: Zone, now: datetime, name: str) -> Meant | None:
    """Return the coming instant of a text, which is a time or a length of time from `now`."""
    return None if text is None else instants.coming(text, where, now, name)


_DIGITS = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a request."""

    name: str
    about: str
    """The description for people."""
    example: Any = None
    default: Any = None
    required: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the field. It leaves out null, which a body may have for every field."""
        raise NotImplementedError

    def value(self, given: Any) -> Any:
        """Return the value that a program sent as JSON. Raise BadOption if the schema does not allow it."""
        raise NotImplementedError

    def written(self, text: str) -> Any:
        """Return the value of a query parameter. Raise BadOption if the schema does not allow it."""
        return self.value(text)

    def refuse(self, given: object, wanted: str) -> BadOption:
        """Return the error which says what the value must be."""
        hint = f", as in {self.example!r}" if self.example is not None else ""
        return BadOption(f"{self.name} {_shown(given)} must be {wanted}{hint}")


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """A text of limited length."""

    longest: int = 200
    kind: str = ""
    """The `format` in the schema, a hint for programs."""
    pattern: str = ""
    """The regular expression that the whole text must match."""

    def schema(self) -> dict[str, Any]:
        """Return the schema of a string."""
        kind = {"format": self.kind} if self.kind else {}
        pattern = {"pattern": f"^{self.pattern}$"} if self.pattern else {}
        return {"type": "string", "minLength": 1, "maxLength": self.longest, **kind, **pattern}

    def value(self, given: Any) -> Any:
        """Return the text unchanged."""
        if not isinstance(given, str) or not 1 <= len(given) <= self.longest:
            raise self.refuse(given, f"a text of 1 to {self.longest:,} characters")
        if self.pattern and not re.fullmatch(self.pattern, given):
            raise self.refuse(given, f"of the form {self.pattern}")
        return given


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """A whole number."""

    least: int = 0
    most: int = 1_000_000_000

    def schema(self) -> dict[str, Any]:
        """Return the schema of an integer with its bounds."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def value(self, given: Any) -> Any:
        """Return the number; JSON may write 1.0 for 1."""
        number = int(given) if isinstance(given, float) and given.is_integer() else given
        if type(number) is not int or not self.least <= number <= self.most:
            raise self.refuse(given, f"a whole number from {self.least:,} to {self.most:,}")
        return number

    def written(self, text: str) -> Any:
        """Return the number that is written in ASCII digits."""
        return self.value(int(text) if _DIGITS.fullmatch(text) else text)


@dataclass(frozen=True, kw_only=True)
class Flag(Field):
    """True or false."""

    default: Any = False

    def schema(self) -> dict[str, Any]:
        """Return the schema of a boolean."""
        return {"type": "boolean"}

    def value(self, given: Any) -> Any:
        """Return the boolean; 0 and 1 are refused."""
        if not isinstance(given, bool):
            raise self.refuse(given, "true or false")
        return given

    def written(self, text: str) -> Any:
        """Return the boolean that is written as `true` or `false`."""
        return self.value(_FLAGS.get(text, text))


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of a few words."""

    of: Sequence[str]

    def schema(self) -> dict[str, Any]:
        """Return the schema of an enumeration."""
        return {"type": "string", "enum": list(self.of)}

    def value(self, given: Any) -> Any:
        """Return the word."""
        if not isinstance(given, str) or given not in self.of:
            hint = did_you_mean(given, self.of) if isinstance(given, str) else ""
            raise BadOption(f"{self.name} {_shown(given)} must be one of {', '.join(self.of)}.{hint}")
        return given


@dataclass(frozen=True, kw_only=True)
class Choices(Choice):
    """Some of a few words; in an address, commas separate them."""

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of the words."""
        return {"type": "array", "items": super().schema(), "minItems": 1, "maxItems": len(self.of)}

    def value(self, given: Any) -> Any:
        """Return the words."""
        if not isinstance(given, list) or not 1 <= len(given) <= len(self.of):
            raise self.refuse(given, f"1 to {len(self.of)} of {', '.join(self.of)}")
        return [Choice.value(self, each) for each in given]

    def written(self, text: str) -> Any:
        """Return the words between commas."""
        return self.value(text.split(","))


@dataclass(frozen=True, kw_only=True)
class Listed(Field):
    """A list of any values."""

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of anything."""
        return {"type": "array", "items": {}}

    def value(self, given: Any) -> Any:
        """Return the list unchanged."""
        if not isinstance(given, list):
            raise self.refuse(given, "a list")
        return given


@dataclass(frozen=True, kw_only=True)
class Named(Field):
    """An object of any values."""

    def schema(self) -> dict[str, Any]:
        """Return the schema of an object of anything."""
        return {"type": "object", "additionalProperties": True}

    def value(self, given: Any) -> Any:
        """Return the object unchanged."""
        if not isinstance(given, dict):
            raise self.refuse(given, "an object")
        return given


def query(fields: Sequence[Field], sent: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of a query string, or their defaults. Raise BadOption for unknown, repeated or invalid ones."""
    known = {field.name: field for field in fields}
    found: dict[str, Any] = {}
    for name, text in sent:
        if name not in known:
            raise _unknown(name, known)
        if name in found:
            raise BadOption(f"{name} is there twice: give it once")
        found[name] = known[name].written(text)
    return _whole(fields, found)


def body(fields: Sequence[Field], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a document, or their defaults; null is the same as a missing value."""
    known = {field.name: field for field in fields}
    for name in sent:
        if name not in known:
            raise _unknown(name, known)
    return _whole(fields, {name: known[name].value(each) for name, each in sent.items() if each is not None})


def _whole(fields: Sequence[Field], found: Mapping[str, Any]) -> dict[str, Any]:
    for field in fields:
        if field.required and field.name not in found:
            hint = f": write {field.name}={field.example}" if field.example is not None else ""
            raise BadOption(f"{field.name} is missing{hint}")
    return {field.name: found.get(field.name, field.default) for field in fields}


def _unknown(name: str, known: Iterable[str]) -> BadOption:
    names = list(known)
    told = did_you_mean(name, names) or (f" There are {', '.join(names)}." if names else " There are none here.")
    return BadOption(f"{_shown(name)} is no field of this request.{told}")


def _shown(given: object) -> str:
    """Return the value for an error message, in ASCII and cut to less than a line."""
    text = ascii(given) if isinstance(given, str | int | float | bool | None) else f"of type {_TYPES[type(given)]}"
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


_MOST = 60
_TYPES: dict[type, str] = {dict: "object", list: "array"}


SCHEDULE = Text(name="schedule_id", about="The id of a schedule.", example="report", longest=1000, required=True)
JOB = Text(name="job_id", about="The id of an RQ job.", example="beat_report_1763359200", longest=1000, required=True)
TZ = Text(
    name="tz",
    about="An IANA time zone. Default: the setting tz, or UTC.",
    example="Europe/Berlin",
    longest=100,
    kind="time-zone",
)
PAST = "a length of time before now (24h, 7d), a day, or a time, in the zone of the schedule unless it has an offset"
SINCE = Text(name="since", about=f"Nothing older than this: {PAST}.", example="24h", longest=60, kind="past")
UNTIL = Text(
    name="until", about=f"Nothing written from then on: {PAST}.", example="2026-11-16T02:00Z", longest=60, kind="past"
)
AHEAD = (
    "a length of time from now (2h), a time of day (09:00), a day (monday, tomorrow, 2026-11-20: its beginning) or "
    "both, in the zone of the schedule; or 2026-11-20T09:00Z"
)
PAUSED_UNTIL = Text(
    name="until",
    about=f"When it goes on by itself: {AHEAD}. Default: when an operator resumes it.",
    example="2h",
    longest=60,
    kind="ahead",
)
REASON = Text(name="reason", about="Why: everybody who looks will see it.", example="the disk is full", longest=500)
VERSION = Whole(
    name="expected_version",
    about="Refuse the change with 409 if the schedule has another version by now: another client has changed it.",
    example=7,
)
CRON = Text(
    name="cron", about="Five fields, or the name of a preset.", example="0 9 * * mon-fri", longest=256, kind="cron"
)
EVERY = Text(name="every", about="An interval instead: 10s, 15m, 1h30m, 1d.", example="15m", longest=60, kind="period")
