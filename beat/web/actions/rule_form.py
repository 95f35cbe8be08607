"""A rule as the fields of a form, and a preview of its ticks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from beat.client import upcoming
from beat.client.describe import tick_notes
from beat.errors import BadCron, BadDuration, BadInstant, BadZone, DeclarationError, Refused
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.queries import Overview
    from beat.client.schedule_info import Standing
    from beat.client.upcoming import NextTick
    from beat.timing.zones import Zone

FIELDS = ("second", "minute", "hour", "day", "month", "weekday")
_LONGEST = 256
_SHOWN = 5
_FIVE, _SIX = 5, 6
_FIELD_OF = {BadZone: "tz", BadDuration: "every", BadInstant: "at"}
PRESETS = (
    ("every 5 minutes", {"minute": "*/5"}),
    ("hourly", {"minute": "0"}),
    ("daily at 09:00", {"minute": "0", "hour": "9"}),
    ("weekdays at 09:00", {"minute": "0", "hour": "9", "weekday": "mon-fri"}),
    ("Mondays at 09:00", {"minute": "0", "hour": "9", "weekday": "mon"}),
    ("first of the month", {"minute": "0", "hour": "9", "day": "1"}),
)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The values of the form fields."""

    kind: str = "cron"
    """`cron` or `every`."""
    second: str = ""
    minute: str = "*"
    hour: str = "*"
    day: str = "*"
    month: str = "*"
    weekday: str = "*"
    every: str = ""
    tz: str = "UTC"

    @classmethod
    def of(cls, known: Standing) -> Self:
        """Return the fields of a schedule's current rule."""
        found = known.definition or known.rule
        every = str(found.get("every", ""))
        words = str(found.get("cron", "")).split()
        if len(words) not in {_FIVE, _SIX} and known.policies and "cron" in found:
            words = getattr(known.policies.timing, "normalised", "").split()
        named = dict(zip(FIELDS[-len(words) :], words, strict=True)) if len(words) in {_FIVE, _SIX} else {}
        return cls(kind="every" if every else "cron", every=every, tz=known.tz, **named)

    def written(self, typed: Mapping[str, str]) -> Self:
        """Return the rule with the values that the user typed. An empty cron field becomes `*`, except for seconds."""
        given = {name: typed[name].strip()[:_LONGEST] for name in asdict(self) if name in typed}
        given |= {name: given[name] or "*" for name in FIELDS[1:] if name in given}
        given["kind"] = given.get("kind", self.kind) if given.get("kind", self.kind) in {"cron", "every"} else "cron"
        return replace(self, **given)

    @property
    def expression(self) -> str:
        """Return the cron expression of the fields."""
        return " ".join(value for name in FIELDS if (value := getattr(self, name)))

    @property
    def wish(self) -> dict[str, Any]:
        """Return the arguments of `Client.reschedule` that set this rule."""
        if self.kind == "every":
            return {"every": self.every}
        return {"expression": self.expression, "seconds": bool(self.second), "tz": self.tz}

    @property
    def plain(self) -> dict[str, str]:
        """Return the values by the names of the fields."""
        return asdict(self)

    def field_at(self, place: int) -> str:
        """Return the name of the field that contains the character at `place` of the expression."""
        for name in FIELDS:
            size = len(getattr(self, name))
            if size and place <= size:
                return name
            place -= size + bool(size)
        return "weekday"


class Preview(NamedTuple):
    """What a rule would do, or the problem and the field that causes it."""

    words: str = ""
    ticks: list[tuple[NextTick, str]] = []  # noqa: RUF012 (never changed)
    where: Zone = zone("UTC")
    is_same: bool = False
    problem: str = ""
    field: str = ""


def preview(client: Client, found: Overview, rule: Rule) -> Preview:
    """Return the preview of a rule, without changing anything."""
    known = found.standing
    if rule == Rule.of(known):
        return _seen(known, found.now)._replace(is_same=True)
    try:
        would_be = client.reschedule(known.schedule_id, **rule.wish, dry_run=True)
    except Refused as e:
        if "that very rule" in str(e):
            return _seen(known, found.now)._replace(is_same=True)
        return Preview(problem=str(e))
    except DeclarationError as e:
        return Preview(problem=_told(e), field=_field(e, rule))
    return _seen(would_be, found.now)


def _seen(known: Standing, now: datetime) -> Preview:
    following = upcoming.ticks(known, _SHOWN, resumed=now)
    if known.policies is None or known.schedule is None:
        return Preview()
    notes = tick_notes.notes(known.policies, [each.tick for each in following])
    return Preview(known.schedule.describe(), list(zip(following, notes, strict=True)), zone(known.tz))


def as_declared(client: Client, found: Overview) -> Preview:
    """Return the preview of the code's rule if an operator's rule overrides it, else an empty one."""
    if found.standing.override is None:
        return Preview()
    try:
        return _seen(client.reschedule(found.standing.schedule_id, reset=True, dry_run=True), found.now)
    except (Refused, DeclarationError) as e:
        return Preview(problem=str(e))


def _field(error: DeclarationError, rule: Rule) -> str:
    if isinstance(error, BadCron):
        return rule.field_at(error.span[0]) if error.span else "minute"
    return _FIELD_OF.get(type(error), "")


def _told(error: DeclarationError) -> str:
    """Return the message of an error, with the form's field names instead of those in Python."""
    return error.message.replace("seconds=True", "the field second").replace("every=", "every ")
