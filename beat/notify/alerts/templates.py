"""Write the text of an alert: beat's own sentence, or the user's template with a fixed set of fields."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from beat.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS = (
    "incident",
    "state",
    "event",
    "rule",
    "schedule",
    "queue",
    "count",
    "since",
    "at",
    "job",
    "tick",
    "error",
    "text",
)
"""The fields that a template can name."""
_LONGEST = 2000


def wrong_with(template: object) -> str:
    """Return what is wrong with a template, or an empty string."""
    if not isinstance(template, str) or not template.strip() or len(template) > _LONGEST:
        return f"must be text of up to {_LONGEST:,} characters, as in '{{schedule}} failed: {{error}}'"
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as e:
        return f"{template!r:.60} cannot be read: {e}; for a brace alone write {{{{ or }}}}"
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        if field not in FIELDS:
            return f"has no field {field!r:.60}: there are {', '.join(FIELDS)}.{did_you_mean(field, FIELDS)}"
        if spec or conversion:
            return f"can only name {{{field}}} as it is, without `{'!' if conversion else ':'}`"
    return ""


def filled(template: str | None, facts: Mapping[str, object]) -> str:
    """Return the filled template, or beat's own sentence if it is None; a missing fact becomes empty text."""
    text = sentence(facts)
    if template is None:
        return text
    shown = {name: "" if facts.get(name) is None else str(facts[name]) for name in FIELDS}
    return template.format_map({**shown, "text": text})


def sentence(facts: Mapping[str, object]) -> str:
    """Return what has happened as a sentence for people."""
    subject = f"{facts['schedule'] or facts['queue'] or 'beat'}"
    said = _closed(subject, facts) if facts["state"] == "closed" else _opened(subject, facts)
    return f"still: {said}" if facts["state"] == "escalated" else said


def _opened(subject: str, facts: Mapping[str, object]) -> str:
    count, since, error = facts["count"], facts["since"], facts["error"]
    why = f": {error}" if error else ""
    match facts["event"]:
        case "failed" | "lost" as how:
            verb = "failed" if how == "failed" else "was lost"
            return f"{subject} {verb}{f', {count} times in a row since {since}' if count != 1 else ''}{why}"
        case "late_fire":
            return f"{subject} was due at {facts['tick']}, and has not fired"
        case "late_start":
            return f"{subject} was queued at {since}, and has not started: {facts['job']}"
        case "late_end":
            return f"{subject} started at {since}, and has not ended: {facts['job']}"
        case "no_worker":
            return f"ticks go to the queue {subject}, and no live worker reads it"
        case "broken":
            return f"{subject} is broken, and does not fire{why}"
        case "no_beat":
            return f"no scheduler was running from {since} to {facts['at']}"
        case _:
            return str(facts["text"])


def _closed(subject: str, facts: Mapping[str, object]) -> str:
    since = facts["since"]
    match facts["event"]:
        case "failed" | "lost":
            count = facts["count"]
            times = "once" if count == 1 else f"{count} times in a row"
            return f"{subject} has succeeded again: it had failed {times} since {since}"
        case "late_fire":
            return f"{subject} is no longer late"
        case "late_start":
            return f"{subject} waits no longer: {facts['job']}"
        case "late_end":
            return f"{subject} has ended: {facts['job']}"
        case "no_worker":
            return f"a worker reads the queue {subject} again: none had since {since}"
        case _:
            return f"{subject} is in order again"
