"""Check the options of routing (queues, groups, slow queues) and dependencies, alone and in combination."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast, get_args

from beat.config import validators
from beat.errors import BadOption
from beat.schedule import options, requires
from beat.schedule.mistakes import Mistakes
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_QUEUES = 100
_DAY = timedelta(days=1)
_FEWEST_QUEUES = 2
_USUAL_QUEUE = "default"


def refuse_contradictions(schedule: Any) -> None:
    """Raise BadOption for options that have no effect in this combination, or that contradict each other."""
    if schedule.follows is None and _values(schedule) == _NOTHING:  # a shortcut for most schedules
        return
    if schedule.queues and schedule.queue not in (_USUAL_QUEUE, schedule.queues[0]):
        raise BadOption(f"queue={schedule.queue!r} says nothing here: route= chooses among queues=: leave queue out")
    mistakes = Mistakes()
    for name, needed, fits in _TOGETHER:
        if (value := getattr(schedule, name)) not in (None, ()) and not fits(schedule):
            mistakes.found.append(BadOption(f"{name}={_shown(value)} says nothing here: {needed}"))
    mistakes.refuse()
    if schedule.follows is not None:
        _refuse_times(schedule)
    if schedule.id in {one.id for one in schedule.requires}:
        raise BadOption(f"requires names the schedule itself, {schedule.id!r}: name another, or leave it out")


_TOGETHER: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("queues", "write route='shortest' or another way to choose among them", lambda s: s.route),
    ("route", "write queues=['one', 'two'], among which it chooses", lambda s: s.queues),
    ("slow_after", "write slow_queue='slow', where the jobs go when they have become slow", lambda s: s.slow_queue),
    ("slow_times", "write slow_queue='slow', where the jobs go when they have become slow", lambda s: s.slow_queue),
    ("slow_window", "write slow_queue='slow', where the jobs go when they have become slow", lambda s: s.slow_queue),
    (
        "slow_queue",
        "route='broadcast' sends every tick to all of its queues, slow or not: leave one of the two out",
        lambda s: s.route != "broadcast",
    ),
    (
        "slow_queue",
        "its jobs go there already: name another queue, as in slow_queue='slow'",
        lambda s: s.slow_queue not in (s.queues or (s.queue,)),
    ),
)
_TIMES = ("start", "end", "misfire", "misfire_after", "catchup_window", "catchup_limit", "jitter")
_USUAL = (None, "once")


def _refuse_times(schedule: Any) -> None:
    """Raise BadOption for an option about times, because a schedule that follows another has none."""
    if schedule.follows == schedule.id:
        raise BadOption(f"follows is the id itself, {schedule.id!r}: name another, or give it an expression")
    rule = f"follows={schedule.follows!r} ticks when that schedule has succeeded, and has no times of its own"
    for name in _TIMES:
        if (value := getattr(schedule, name)) not in _USUAL:
            raise BadOption(f"{name}={_shown(value)} says nothing here: {rule}: leave it out")
    for one in schedule.requires:
        if one.within is None:
            raise BadOption(f"requires={one.id!r} says nothing here: {rule}: write Requires({one.id!r}, within='1h')")


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return repr(durations.short(value))
    if isinstance(value, datetime):
        return repr(value.isoformat())
    return repr(list(value)) if isinstance(value, tuple) else f"{value!r:.60}"


def _queues(value: object) -> tuple[str, ...]:
    if value is None or value == ():
        return ()
    if not isinstance(value, list | tuple):
        raise BadOption(f"queues must be a list, not {type(value).__name__}: write queues=['one', 'two']")
    found = tuple(options.queue(each, "queues:") for each in value)
    if len(found) < _FEWEST_QUEUES:
        raise BadOption("queues must be at least two, among which route= chooses: for one alone write queue=")
    if len(found) > MOST_QUEUES:
        raise BadOption(f"queues has {len(found):,} names, and may have {MOST_QUEUES}")
    for n, name in enumerate(found):
        if name in found[:n]:
            raise BadOption(f"queues has {name!r} twice: leave one of them out")
    return found


def _route(value: object) -> options.Route | None:
    if value is None:
        return None
    return cast("options.Route", validators.one_of(value, "route", get_args(options.Route)))


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "queues": lambda s: _queues(s.queues),
    "route": lambda s: _route(s.route),
    "group": lambda s: None if s.group is None else options.schedule_id(s.group, "group"),
    "slow_queue": lambda s: None if s.slow_queue is None else options.queue(s.slow_queue, "slow_queue"),
    "slow_after": lambda s: validators.span(s.slow_after, "slow_after"),
    "slow_times": lambda s: validators.number(s.slow_times, "slow_times", 1000),
    "slow_window": lambda s: validators.span(s.slow_window, "slow_window", most=_DAY),
    "requires": lambda s: requires.read(s.requires),
}
"""The check of each option."""
_values = operator.attrgetter(*CHECKS)
_NOTHING = ((), None, None, None, None, None, None, ())
