"""The ledger of a schedule, newest first, page by page: runs, skips, changes and what operators did."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.describe import decisions, instants
from beat.client.history import WORDS
from beat.errors import BadInstant, BadOption
from beat.history.history import OPEN, Action, Change, Fired, Passed, Waits
from beat.timing import clock
from beat.web.charts import calendar, run_bar, shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from markupsafe import Markup

    from beat.history.history import Line
    from beat.timing.zones import Zone

SIZE = 25


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which lines somebody wants to see."""

    before: datetime | None = None
    outcome: str = ""
    day: date | None = None

    @property
    def query(self) -> dict[str, str]:
        """What says so in an address, but for the place."""
        named = {"outcome": self.outcome, "day": self.day and self.day.isoformat()}
        return {name: value for name, value in named.items() if value}


class Row(NamedTuple):
    """One line, ready to be shown."""

    id: str
    """The same whenever the page is drawn again."""
    when: datetime
    """Its tick; of what has none, when it was."""
    state: str
    job: str
    bar: Markup | str
    took: float | None
    note: str
    story: str


class Page(NamedTuple):
    """Some of the lines."""

    rows: list[Row]
    older: str
    """Before which the next page begins; nothing on the last one."""
    wanted: Wanted
    total: int


def asked_for(query: Mapping[str, str]) -> Wanted:
    """Refuses what is no time, no outcome and no day."""
    outcome, written, day = query.get("outcome", ""), query.get("before", ""), query.get("day", "")
    if outcome and outcome not in WORDS:
        raise BadOption(f"outcome {outcome!r:.60} must be one of {', '.join(WORDS)}")
    try:
        return Wanted(
            before=clock.read(written) if written else None,
            outcome=outcome,
            day=date.fromisoformat(day) if day else None,
        )
    except BadInstant as e:
        raise BadInstant(f"before {written!r:.60} is not an instant: write 2026-11-16T09:00:00Z") from e
    except ValueError as e:
        raise BadInstant(f"day {day!r:.60} is not a day: write 2026-11-16") from e


def page(lines: Sequence[Line], wanted: Wanted, where: Zone, now: datetime) -> Page:
    """Those of the lines; what was written at the very same instant is never torn apart."""
    found = [line for line in lines if _takes(wanted, line, where)]
    # No line is older than those above it say, even where Redis' clock was set back.
    ages = list(itertools.accumulate((line.at for line in found), min))
    first = next((n for n, at in enumerate(ages) if wanted.before is None or at < wanted.before), len(found))
    last = min(first + SIZE, len(found))
    while first < last < len(found) and ages[last] == ages[last - 1]:
        last += 1
    older = clock.text(ages[last - 1]) if first < last < len(found) else ""
    return Page([row(line, where, now) for line in found[first:last]], older, wanted, len(found))


def row(line: Line, where: Zone, now: datetime) -> Row:
    """A line with its words."""
    run = line if isinstance(line, Fired) else None
    return Row(
        id=_id(line),
        when=_when(line),
        state=decisions.outcome(line),
        job=run.job_id if run else "",
        bar=run_bar.drawn(run, now) if run else "",
        took=run.duration if run else None,
        note=decisions.note(line, where) or (_waited(run) if run else ""),
        story=decisions.story(line, where, now),
    )


def _waited(run: Fired) -> str:
    """How it came to its start, where there is nothing else to say."""
    late = "" if run.late_ms is None else f"{instants.span(max(0, run.late_ms) / 1000)} late"
    queued = "" if run.wait is None else f"{instants.span(run.wait)} in the queue"
    return ", ".join(part for part in (late, queued) if part)


def _takes(wanted: Wanted, line: Line, where: Zone) -> bool:
    if wanted.day and not calendar.is_of(line, wanted.day, where):
        return False
    if not wanted.outcome:
        return True
    if wanted.outcome == OPEN and isinstance(line, Fired):
        return shapes.outcome(line.state) == OPEN
    return decisions.outcome(line) == wanted.outcome and not isinstance(line, Change | Action)


def _when(line: Line) -> datetime:
    match line:
        case Fired() | Waits():
            return line.tick or line.at
        case Passed():
            return line.first
        case Change() | Action():
            return line.at


def _id(line: Line) -> str:
    """Names the line in the page, whatever its job is called."""
    told: tuple[Any, ...] = (
        type(line).__name__,
        getattr(line, "job_id", ""),
        "" if isinstance(line, Fired) else line.at,
    )
    return f"line-{hashlib.sha256(repr(told).encode()).hexdigest()[:12]}"
