"""Read and validate alert rules: which events of which schedules or queues to report, and to which channel."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from beat.config import validators
from beat.errors import BadOption, did_you_mean
from beat.notify.alerts import templates
from beat.schedule import globs
from beat.timing import durations

EVENTS = {
    "failed": "a run failed",
    "lost": "a run vanished, or its worker died with it",
    "recovered": "it is over",
    "late_fire": "a tick is due and has not fired",
    "late_start": "a run was fired and has not started",
    "late_end": "a run has started and not ended",
    "no_worker": "ticks go to a queue that no worker reads",
    "broken": "what Redis holds about a schedule cannot be used",
    "no_beat": "no scheduler was running",
}
"""The events that a rule can name, with a description."""
AFTER = {
    "late_fire": timedelta(minutes=1),
    "late_start": timedelta(minutes=10),
    "late_end": timedelta(hours=1),
    "no_beat": timedelta(minutes=1),
}
"""How long each kind of trouble may last before beat alerts, unless the rule says otherwise."""
RUN = ("failed", "lost")
"""The events that a successful run ends."""
LEAST, MOST = timedelta(seconds=1), timedelta(days=30)
LEAST_NO_BEAT = timedelta(seconds=30)
"""The minimum for `no_beat`, because another scheduler needs some seconds to take over."""
FIELDS = (
    "name",
    "on",
    "schedules",
    "queues",
    "times",
    "channel",
    "after",
    "escalate_after",
    "escalate_to",
    "template",
)
_QUEUE = 200


@dataclass(frozen=True)
class Rule:
    """One rule, complete and valid."""

    name: str
    on: tuple[str, ...]
    channel: str
    schedules: tuple[str, ...] = ("*",)
    queues: tuple[str, ...] = ("*",)
    times: int = 1
    """How many runs in a row must fail before an incident opens."""
    after: timedelta | None = None
    escalate_after: int | timedelta | None = None
    """`escalate_to` also gets a message after this many failures in a row, or after this time."""
    escalate_to: str | None = None
    template: str | None = None

    @property
    def troubles(self) -> tuple[str, ...]:
        """Return the events that open an incident; a rule for `recovered` alone opens one without a message."""
        return tuple(each for each in self.on if each != "recovered") or RUN

    @property
    def is_silent(self) -> bool:
        """Return whether the rule sends a message only when the incident closes."""
        return self.on == ("recovered",)

    @property
    def channels(self) -> tuple[str, ...]:
        """Return all channels that the rule may use."""
        return (self.channel, self.escalate_to) if self.escalate_to else (self.channel,)

    def lasts(self, event: str) -> timedelta:
        """Return how long an event may last before the rule alerts."""
        return self.after or AFTER[event]

    def bears(self, event: str, lasted: timedelta | None) -> bool:
        """Return whether an event has not lasted long enough to alert."""
        return lasted is not None and lasted < self.lasts(event)

    def concerns(self, event: str, subject: str) -> bool:
        """Return whether the rule is about this event of this schedule or queue."""
        if event not in self.troubles:
            return False
        if event == "no_beat":
            return True
        wanted = self.queues if event == "no_worker" else self.schedules
        return any(fnmatch.fnmatchcase(subject, glob) for glob in wanted)

    def __str__(self) -> str:
        """Return the rule as text, as in `failed 3 times in a row of report-* → ops`."""
        of = [*(self.schedules if self.schedules != ("*",) else ()), *(self.queues if self.queues != ("*",) else ())]
        parts = [
            " or ".join(self.on),
            f"{self.times} times in a row" if self.times > 1 else "",
            f"of {', '.join(of)}" if of else "",
            f"for {durations.short(self.after)}" if self.after else "",
            f"→ {self.channel}",
        ]
        limit = self.escalate_after
        told = f"{limit} in a row" if isinstance(limit, int) else durations.short(limit) if limit else ""
        return " ".join(filter(None, parts)) + (f"; after {told} → {self.escalate_to}" if told else "")


def read(given: object, place: str) -> Rule:
    """Return the rule that one table describes; raise BadOption with a message that starts with `place`."""
    if not isinstance(given, Mapping):
        raise BadOption(f"{place} must be a table, with `on` and `channel`, not {type(given).__name__}")
    for each in given:
        if each not in FIELDS:
            raise BadOption(f"{place} has no {each!r:.60}: there are {', '.join(FIELDS)}.{_meant(each, FIELDS)}")
    try:
        return _made(given)
    except BadOption as e:
        raise BadOption(f"{place}: {e.message}") from None


def _made(given: Mapping[str, Any]) -> Rule:
    on = _events(given.get("on"))
    rule = Rule(
        name=validators.identifier(given["name"], "name") if "name" in given else _name(on, given),
        on=on,
        channel=_channel(given.get("channel"), "channel"),
        schedules=tuple(_glob(each) for each in _several(given.get("schedules", "*"), "schedules")),
        queues=tuple(_several(given.get("queues", "*"), "queues")),
        times=validators.number(given.get("times"), "times", 1000) or 1,
        after=validators.span(given.get("after"), "after", LEAST, MOST),
        escalate_after=_escalation(given.get("escalate_after")),
        escalate_to=_channel(given["escalate_to"], "escalate_to") if "escalate_to" in given else None,
        template=_template(given.get("template")),
    )
    _fits_together(rule, given)
    return rule


def _events(given: object) -> tuple[str, ...]:
    if given is None:
        raise BadOption(f"`on` is missing: write on = 'failed', or one or several of {', '.join(EVENTS)}")
    found = _several(given, "on")
    for each in found:
        if each not in EVENTS:
            raise BadOption(f"on {each!r:.60} is not an event: there are {', '.join(EVENTS)}.{_meant(each, EVENTS)}")
    return tuple(dict.fromkeys(found))


def _fits_together(rule: Rule, given: Mapping[str, Any]) -> None:
    """Raise BadOption for an option that has no effect in this rule."""
    of_runs = [each for each in rule.troubles if each in RUN]
    if "times" in given and not of_runs:
        raise BadOption(f"times says nothing here: it counts runs that are failed or lost, not {', '.join(rule.on)}")
    if "after" in given and not any(each in AFTER for each in rule.on):
        raise BadOption(f"after says nothing here: it is for {', '.join(AFTER)}")
    if "no_beat" in rule.on and rule.lasts("no_beat") < LEAST_NO_BEAT:
        raise BadOption(
            f"after must be at least {durations.short(LEAST_NO_BEAT)} for no_beat: a beat takes over in less"
        )
    if "queues" in given and "no_worker" not in rule.on:
        raise BadOption("queues says nothing here: it is for no_worker; for the others name schedules")
    if "schedules" in given and set(rule.troubles) <= {"no_worker", "no_beat"}:
        raise BadOption(f"schedules says nothing here: {', '.join(rule.on)} is about no schedule")
    _escalates(rule, of_runs)


def _escalates(rule: Rule, of_runs: list[str]) -> None:
    if (rule.escalate_to is None) != (rule.escalate_after is None):
        raise BadOption("escalate_after and escalate_to belong together: give both, or none")
    if isinstance(rule.escalate_after, int) and rule.escalate_after <= rule.times:
        raise BadOption(f"escalate_after {rule.escalate_after} must be more than times, which is {rule.times}")
    if isinstance(rule.escalate_after, int) and not of_runs:
        raise BadOption("escalate_after counts runs that are failed or lost; for others write a time, as in '30m'")
    if rule.escalate_to == rule.channel:
        raise BadOption("escalate_to says nothing here: it is the channel that was told before")
    if rule.escalate_to and rule.is_silent:
        raise BadOption("escalate_to says nothing here: what is over is not escalated")


def _several(given: object, name: str) -> list[str]:
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    if not found or not all(
        isinstance(each, str) and each and each.isprintable() and len(each) <= _QUEUE for each in found
    ):
        raise BadOption(f"{name} must be a word or a list of words, not {given!r:.60}")
    return [validators.text(each) for each in found]


def _glob(written: str) -> str:
    globs.checked(written, "schedules")
    return written


def _channel(given: object, name: str) -> str:
    if not isinstance(given, str) or not given:
        raise BadOption(f"{name} must be the name of a channel, as in {name} = 'ops'")
    return given


def _escalation(given: object) -> int | timedelta | None:
    if isinstance(given, int) or given is None:
        return validators.number(given, "escalate_after", 1000)
    return validators.span(given, "escalate_after", LEAST, MOST)


def _template(given: object) -> str | None:
    if given is None:
        return None
    if wrong := templates.wrong_with(given):
        raise BadOption(f"template {wrong}")
    return str(given)


def _name(on: tuple[str, ...], given: Mapping[str, Any]) -> str:
    """Return a name that is the same for the same rule in every scheduler."""
    written = json.dumps({name: str(given[name]) for name in sorted(given)})
    return f"{'-'.join(on)[:60]}-{hashlib.sha256(written.encode()).hexdigest()[:6]}"


def _meant(word: object, names: Any) -> str:
    return did_you_mean(str(word), names)
