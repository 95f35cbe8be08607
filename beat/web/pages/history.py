"""The ledger of a schedule, newest first, page by page: runs, skips, changes, and actions of operators."""

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
    """The filters and the position that the viewer asks for."""

    before: datetime | None = None
    outcome: str = ""
    day: date | None = None

    @property
    def query(self) -> dict[str, str]:
        """Return the filters as query parameters, without the position."""
        named = {"outcome": self.outcome, "day": self.day and self.day.isoformat()}
        return {name: value for name, value in named.items() if value}


class Row(NamedTuple):
    """One line, ready for the template."""

    id: str
    """The HTML id, the same each time the page is drawn."""
    when: datetime
    """The tick of the line, or the time at which it was written if it has none."""
    state: str
    job: str
    bar: Markup | str
    took: float | None
    note: str
    story: str


class Page(NamedTuple):
    """One page of the lines."""

    rows: list[Row]
    older: str
    """The instant before which the next page begins; empty on the last page."""
    wanted: Wanted
    total: int


def asked_for(query: Mapping[str, str]) -> Wanted:
    """Return the filters and the position in an address. Raise BadOption or BadInstant if one is invalid."""
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
    """Return one page of the lines that match. Lines written at the same instant stay on one page."""
    found = [line for line in lines if _takes(wanted, line, where)]
    # Instants must never increase down the page, even if Redis' clock was set back.
    ages = list(itertools.accumulate((line.at for line in found), min))
    first = next((n for n, at in enumerate(ages) if wanted.before is None or at < wanted.before), len(found))
    last = min(first + SIZE, len(found))
    while first < last < len(found) and ages[last] == ages[last - 1]:
        last += 1
    older = clock.text(ages[last - 1]) if first < last < len(found) else ""
    return Page([row(line, where, now) for line in found[first:last]], older, wanted, len(found))


def row(line: Line, where: Zone, now: datetime) -> Row:
    """Return a line of the ledger as a row."""
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
    """Return how late a run was and how long it waited in the queue, for a run without another note."""
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
    """Return an HTML id for the line. It is a digest, because a job id may contain any characters."""
    told: tuple[Any, ...] = (
        type(line).__name__,
        getattr(line, "job_id", ""),
        "" if isinstance(line, Fired) else line.at,
    )
    return f"line-{hashlib.sha256(repr(told).encode()).hexdigest()[:12]}"
