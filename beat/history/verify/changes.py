"""Check a change of the definition against the ticks before it and after it."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from beat.history.verify.findings import INSTANT
from beat.schedule import serialize
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from beat.history.ledger import Changed
    from beat.history.verify.findings import Findings
    from beat.schedule.schedule import Schedule


def leave(entry: Changed, rule: Schedule, pointer: datetime | None, findings: Findings, *, finished: bool) -> None:
    """Report a change that does not start where the old `rule` stood, at the tick `pointer`.

    Ticks between the two are missing. Ticks that were due and that the change dropped are reported as off. With
    `finished`, the old rule may have had no more ticks.
    """
    was, say, at = readable(entry.was or {}), findings.say, clock.text(entry.at)
    if was and was.timing_rev != rule.timing_rev:
        say(entry.at, f"the change of {at} replaced a rule that the ledger does not know")
    if entry.before != pointer and not (finished and entry.before is None):
        if entry.before and pointer and entry.before > pointer:
            findings.miss(rule, pointer, entry.before)
        else:
            say(entry.at, f"at the change of {at} {text(entry.before)} was next, and the ledger says {text(pointer)}")
    if entry.before and entry.before <= entry.at and entry.next != entry.before:
        findings.leave_out(rule, entry.before, entry.at + INSTANT)


def arrive(entry: Changed, rule: Schedule, newest: datetime, findings: Findings, *, finished: bool) -> None:
    """Report a change whose next tick is not the new rule's first tick after the change and after `newest`.

    A tick that was already due is accepted. With `finished`, so is the absence of a next tick.
    """
    base = max(entry.at, newest)
    if (entry.next and entry.next <= base) or (finished and entry.next is None):
        return
    following = rule.after(base)
    if entry.next and following and entry.next > following:
        findings.miss(rule, following, entry.next)
    elif entry.next != following:
        words = f"goes on with {text(entry.next)}, and the rule with {text(following)}"
        findings.say(entry.at, f"the change of {text(entry.at)} {words}")


def readable(rule: Mapping[str, Any]) -> Schedule | None:
    """Return a schedule with the ticks of this rule, or None if the rule is invalid."""
    try:
        return _ticking(json.dumps(dict(rule)))
    except (TypeError, ValueError, RecursionError):  # an invalid option is a ValueError, too
        return None


@functools.lru_cache(maxsize=100)
def _ticking(rule: str) -> Schedule:  # a ledger may repeat the same few rules a thousand times
    return serialize.ticking(json.loads(rule))


def text(instant: datetime | None) -> str:
    """Return the instant as text, or "nothing"."""
    return clock.text(instant) if instant else "nothing"
