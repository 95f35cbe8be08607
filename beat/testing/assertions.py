"""Assert when a schedule ticks, and show expected and actual ticks in its own zone if they differ."""

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
"""An aware datetime, or text such as "2026-03-29T03:00" in the zone of the schedule."""

NO_SCHEDULE = "import the module that declares them, or pass registry=…"
_MOST_ROWS = 20


def assert_fires(
    schedule_id: str, *, between: tuple[When, When], at: When | Iterable[When], registry: Registry | None = None
) -> None:
    """Fail unless the schedule ticks at exactly these instants within `between`, whose end is excluded.

    Text is read in the zone of the schedule. A time that occurs twice there means the first occurrence, unless the text
    has an offset. `registry` defaults to the one behind `beat.periodic`.
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
    """Fail if the schedule ticks within `between`, whose end is excluded."""
    __tracebackhide__ = True
    assert_fires(schedule_id, between=between, at=(), registry=registry)


def compare(schedule: Schedule, expected: Iterable[datetime], actual: Iterable[datetime], title: str) -> None:
    """Fail unless `expected` and `actual` are the same instants; `title` says what the schedule does wrong."""
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
    """Return the schedule with this id, or raise UnknownSchedule, which suggests the nearest id."""
    known = registries.default_registry if registry is None else registry
    if not len(known):
        raise UnknownSchedule(f"there is no schedule {schedule_id!r:.120}, nor any other: {NO_SCHEDULE}")
    return known.get(schedule_id)


def instants(schedule: Schedule, at: When | Iterable[When]) -> list[datetime]:
    """Return these instants in UTC, sorted. Raise BadInstant for a local time that DST skips in the schedule's zone."""
    listed = at if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    return sorted(_instant(schedule, when, exact=True) for when in listed)


def shown(schedule: Schedule, tick: datetime) -> str:
    """Return an instant as text in the schedule's zone."""
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
    """Return in brackets what a DST change did to a tick, or an empty text."""
    previous = schedule.before(tick)
    note = schedule.timing.note(previous, tick) if previous and isinstance(schedule.timing, Cron) else ""
    return f"  ({note})" if note else ""
