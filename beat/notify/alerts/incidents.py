"""Decide what a sign changes: the state of an incident, and which messages are sent.

The same sign on the same state always leads to the same decision, so a decision can be repeated until it is written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import quote

from beat.errors import BadInstant
from beat.notify.alerts import templates
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.events.event import Notice
    from beat.notify.alerts.rules import Rule


RUNS = "run"
"""The family of trouble that a successful run ends."""
_MOST = 10**9
_ERROR = 500


@dataclass(frozen=True)
class Sign:
    """One observation about a schedule, a queue or the schedulers."""

    kind: Literal["trouble", "well", "undone", "still", "gone"]
    """`undone`: RQ runs a failed job again. `still`: time has passed. `gone`: the schedule no longer exists."""
    event: str
    """The event name that rules use."""
    subject: str
    id: str
    """The id of the event that reported it, or another value that stays the same when the sign is repeated."""
    at: datetime
    since: datetime | None = None
    """When it began, if earlier than `at`."""
    lasted: timedelta | None = None
    """How long it has been observed, for events whose rule has a limit."""
    job: str = ""
    tick: str = ""
    error: str = ""

    @property
    def family(self) -> str:
        """Return the family, whose trouble ends together: a success ends both `failed` and `lost`."""
        return RUNS if self.event in {"failed", "lost"} else self.event

    def name(self, rule: Rule) -> str:
        """Return the name of the incident's state in Redis."""
        return f"{rule.name}:{self.family}:{self.subject}"


@dataclass(frozen=True)
class State:
    """The state of one problem: first only a count; once `incident` has an id, an open incident."""

    event: str
    count: int
    since: str
    last: str
    """When it was last observed."""
    job: str = ""
    tick: str = ""
    error: str = ""
    incident: str = ""
    told: tuple[str, ...] = ()
    """The channels that received a message about it."""
    number: int = 0
    """How many messages were sent about it."""

    @classmethod
    def read(cls, written: str) -> Self | None:
        """Return the state that `text` wrote, or None for anything else, because other programs can write to Redis."""
        try:
            found = json.loads(written)
            told = tuple(found.pop("told", ()))
            made = cls(**found, told=told)
            clock.read(made.since), clock.read(made.last)
        except (ValueError, TypeError, AttributeError, RecursionError, BadInstant):
            return None
        texts = (made.event, made.job, made.tick, made.error, made.incident, *told)
        numbers = (made.count, made.number)
        sound = all(isinstance(each, str) for each in texts) and all(type(n) is int and 0 <= n < _MOST for n in numbers)
        return made if sound and " " not in made.incident else None

    def by(self, now: datetime) -> Self:
        """Return the state with no time later than `now`.

        Redis' clock may have gone back since it was written, and a later time would hide new signs.
        """
        since, last = (min(each, clock.text(now), key=clock.read) for each in (self.since, self.last))
        return replace(self, since=since, last=last)

    def text(self) -> str:
        """Return the JSON text that Redis stores."""
        empty = type(self)("", 0, "", "")
        return json.dumps({name: value for name, value in asdict(self).items() if value != getattr(empty, name)})


class Message(NamedTuple):
    """A message to send through a channel."""

    channel: str
    key: str
    """The incident and the number of the message within it; lower numbers are sent first."""
    text: str
    """The alert as JSON."""


class Decided(NamedTuple):
    """The decision on a sign."""

    state: State | None
    """The new state; None if there is nothing to remember."""
    messages: tuple[Message, ...] = ()


def step(rule: Rule, state: State | None, sign: Sign) -> Decided:
    """Return what a sign changes under one rule, given the current state."""
    match sign.kind:
        case "trouble":
            return _troubled(rule, state, sign)
        case "well":
            return _over(rule, state, sign)
        case "gone":
            return Decided(None)
        case "undone" if state and not state.incident and state.count <= 1:
            return Decided(None)
        case "undone" if state and not state.incident:
            return Decided(replace(state, count=state.count - 1, job=""))  # its next failure counts again
        case "still" if state:
            return _escalated(rule, state, sign)
    return Decided(state)


def unheard(state: State | None, decided: Decided) -> Decided:
    """Return the decision without its messages, so that a later step can still send them."""
    if decided.state is None:
        return Decided(None)
    before = state or State("", 0, "", "")
    return Decided(replace(decided.state, incident=before.incident, told=before.told, number=before.number))


def _troubled(rule: Rule, state: State | None, sign: Sign) -> Decided:
    at, began = clock.text(sign.at), clock.text(sign.since or sign.at)
    if sign.event == "no_worker":
        state = None  # the event marks a start, so any earlier trouble is over
    if state and sign.job and sign.job == state.job:
        return Decided(state)  # another part of the same tick
    if state and sign.family != RUNS:
        return Decided(state)  # the trouble continues
    before = state or State(sign.event, 0, began, at)
    found = replace(
        before,
        event=sign.event,
        count=before.count + 1,
        last=at if sign.at >= clock.read(before.last) else before.last,
        job=sign.job,
        tick=sign.tick,
        error=sign.error[:_ERROR],
    )
    if not found.incident and found.count >= rule.times:
        found = replace(found, incident=_id(rule, sign))
        if not rule.is_silent:
            return _tell(rule, found, sign, "opened", (rule.channel,))
    return _escalated(rule, found, sign)


def _over(rule: Rule, state: State | None, sign: Sign) -> Decided:
    if not state:
        return Decided(None)
    if sign.family == RUNS and (sign.job == state.job or sign.at < clock.read(state.last)):
        return Decided(state)  # part of the failed run, or it ended before the failure
    if not state.incident or "recovered" not in rule.on:
        return Decided(None)
    told = (rule.channel,) if rule.is_silent else state.told
    return Decided(None, _tell(rule, state, sign, "closed", told).messages)


def _escalated(rule: Rule, state: State, sign: Sign) -> Decided:
    limit, channel = rule.escalate_after, rule.escalate_to
    if not (limit and channel and state.incident) or channel in state.told:
        return Decided(state)
    lasted = sign.at - clock.read(state.since)
    if (lasted >= limit) if isinstance(limit, timedelta) else (state.count >= limit):
        return _tell(rule, state, sign, "escalated", (channel,))
    return Decided(state)


def _tell(rule: Rule, state: State, sign: Sign, how: str, channels: tuple[str, ...]) -> Decided:
    number = state.number + 1
    facts = _facts(rule, state, sign, how)
    said = json.dumps({**facts, "text": templates.filled(rule.template, facts)})
    told = tuple(dict.fromkeys((*state.told, *channels)))
    messages = tuple(Message(each, f"{state.incident} {number}", said) for each in channels)
    return Decided(replace(state, number=number, told=told), messages)


def _facts(rule: Rule, state: State, sign: Sign, how: str) -> Mapping[str, Any]:
    of_queue, of_none = state.event == "no_worker", state.event == "no_beat"
    return {
        "incident": state.incident,
        "state": how,
        "event": state.event,
        "rule": rule.name,
        "schedule": None if of_queue or of_none else sign.subject,
        "queue": sign.subject if of_queue else None,
        "count": state.count,
        "since": state.since,
        "at": clock.text(sign.at),
        "job": state.job or None,
        "tick": state.tick or None,
        "error": state.error or None,
    }


def _id(rule: Rule, sign: Sign) -> str:
    """Return the id of an incident, which depends only on the rule and the sign that opened it."""
    return ".".join(quote(each, safe="") for each in (rule.name, sign.family, sign.subject, sign.id) if each)


def of(notice: Notice) -> Sign | None:
    """Return the sign that a notice of the event stream gives, or None if it gives none."""
    match notice.type:
        case "failed" | "lost":
            return _of_run("trouble", notice.type, notice)
        case "succeeded":
            return _of_run("well", "failed", notice)
        case "reopened" if notice.entry.get("was") in {"failed", "lost"}:
            return _of_run("undone", "failed", notice)
        case "removed" | "retired":
            return _of_run("gone", "failed", notice)
        case "no_worker" if queue := _word(notice.entry, "queue"):
            return Sign("trouble", "no_worker", queue, notice.id, notice.at)
        case "worker_back" if queue := _word(notice.entry, "queue"):
            return Sign("well", "no_worker", queue, notice.id, notice.at)
    return None


def _of_run(kind: Any, event: str, notice: Notice) -> Sign | None:
    if not notice.schedule_id:
        return None
    return Sign(
        kind,
        event,
        notice.schedule_id,
        notice.id,
        clock.found(_word(notice.entry, "ended")) or notice.at,
        job=_word(notice.entry, "of") or notice.job_id or "",
        tick="" if notice.tick is None else clock.text(notice.tick),
        error=_error(notice.entry.get("error")),
    )


def _error(found: Any) -> str:
    """Return an error on one line, as in `KeyError: no such user`."""
    if isinstance(found, dict):
        parts = (found.get("type"), found.get("message"))
        found = ": ".join(str(each) for each in parts if each)
    return " ".join(str(found or "").split())


def _word(entry: Mapping[str, Any], name: str) -> str:
    found = entry.get(name)
    return found if isinstance(found, str) else ""
