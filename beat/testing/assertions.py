"""Says when a schedule ticks, and shows both sides where that is not so, by the clocks of its own zone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from beat.errors import BadInstant, UnknownSchedule
from beat.schedule import registry as registries
from beat.testing.simulation import ticks
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.zones import zone

if TYPE_CHECKING:
    from beat.schedule.registry import Registry
    from beat.schedule.schedule import Schedule

When = datetime | str
"""An aware datetime, or text such as "2026-03-29T03:00", which is read in the zone of the schedule."""

NO_SCHEDULE = "import the module that declares them, or pass registry=…"
_MOST_ROWS = 20


def assert_fires(
    schedule_id: str, *, between: tuple[When, When], at: When | Iterable[When], registry: Registry | None = None
) -> None:
    """Fails unless the schedule ticks at exactly these instants, from the first of `between` on and before the second.

    Text is read in the zone of the schedule; a time that comes twice there is the first of both, unless an offset is
    written. `registry` is the one behind `beat.periodic` unless another is given.
    """
    __tracebackhide__ = True
    schedule = find(schedule_id, registry)
    first, last = (_instant(schedule, when) for when in between)
    span = f"from {shown(schedule, first)} on and before {shown(schedule, last)}"
    if first >= last:
        raise BadInstant(f"there is no time {span}: write between=(start, end)")
    expected = instants(schedule, at)
    if outside := [tick for tick in expected if not first <= tick < last]:
        raise BadInstant(f"{shown(schedule, outside[0])} is not {span}: nobody would see a tick there")
    title = f"does not fire as expected {span}" if expected else f"is not silent {span}"
    compare(schedule, expected, list(ticks(schedule, first, last)), title)


def assert_silent(schedule_id: str, *, between: tuple[When, When], registry: Registry | None = None) -> None:
    """Fails if the schedule ticks from the first of `between` on and before the second."""
    __tracebackhide__ = True
    assert_fires(schedule_id, between=between, at=(), registry=registry)


def compare(schedule: Schedule, expected: Iterable[datetime], actual: Iterable[datetime], title: str) -> None:
    """Fails unless both are the same instants; `title` says what the schedule does wrong."""
    __tracebackhide__ = True
    wanted, found = set(expected), set(actual)
    if wanted == found:
        return
    rows = [
        (tick, shown(schedule, tick) if tick in wanted else "-", shown(schedule, tick) if tick in found else "-")
        for tick in sorted(wanted | found)
    ]
    wrong = [row for row in rows if "-" in row]
    told = rows if len(rows) <= _MOST_ROWS else wrong[:_MOST_ROWS]
    width = max(len("expected"), *(len(expects) for _, expects, _ in told))
    lines = [
        f"schedule {schedule.id!r} {title}",
        f"({schedule.describe()}{'' if schedule.enabled else '; but it is disabled'})",
        "",
        f"  {'expected':{width}}  fires",
    ]
    for tick, expects, fires in told:
        note = _note(schedule, tick) if fires != "-" else ""
        lines.append(f"{'!' if '-' in (expects, fires) else ' '} {expects:{width}}  {fires}{note}")
    if len(told) < len(rows):
        lines.append(f"  … {len(rows)} in all, {len(wrong)} of them not as expected")
    raise AssertionError("\n".join(lines))


def find(schedule_id: str, registry: Registry | None) -> Schedule:
    """The schedule of that id; raises UnknownSchedule, with the nearest name."""
    known = registries.default_registry if registry is None else registry
    if not len(known):
        raise UnknownSchedule(f"there is no schedule {schedule_id!r:.120}, nor any other: {NO_SCHEDULE}")
    return known.get(schedule_id)


def instants(schedule: Schedule, at: When | Iterable[When]) -> list[datetime]:
    """These instants in UTC and in order; refuses a time that no clock of the schedule's zone ever shows."""
    listed = at if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    return sorted(_instant(schedule, when, exact=True) for when in listed)


def shown(schedule: Schedule, tick: datetime) -> str:
    """An instant by the clocks of the schedule's zone."""
    fine = ":%S" if tick.second else ""
    return tick.astimezone(zone(str(schedule.tz)).info).strftime(f"%a %Y-%m-%d %H:%M{fine} %Z")


def _instant(schedule: Schedule, when: When, *, exact: bool = False) -> datetime:
    if not isinstance(when, str):
        return clock.utc(when)
    try:
        written = datetime.fromisoformat(when)
    except ValueError as e:
        raise BadInstant(f"{when!r:.60} is not a time: write 2026-03-29T03:00 or 2026-03-29T01:00Z") from e
    if written.tzinfo is not None:
        return clock.utc(written)
    where = zone(str(schedule.tz))
    found = clock.utc(written.replace(tzinfo=where.info))
    if exact and found.astimezone(where.info).replace(tzinfo=None) != written:
        raise BadInstant(f"{when!r} does not exist in {where.name}: the clock jumps forward over it")
    return found


def _note(schedule: Schedule, tick: datetime) -> str:
    """What a change of the clocks did to a tick, in brackets; mostly nothing."""
    previous = schedule.before(tick)
    note = schedule.timing.note(previous, tick) if previous and isinstance(schedule.timing, Cron) else ""
    return f"  ({note})" if note else ""
