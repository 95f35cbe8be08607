"""The overview page: the state in one sentence, and the schedules that need attention.

It reads only indexes and the event stream, so ten thousand schedules take no longer than ten. Only the day strip reads
all schedules, so it is computed in the background, and the page waits for it a moment at most.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple

from beat.client.describe import list_row, summary
from beat.history.history import Fired
from beat.timing import clock
from beat.timing.zones import zone
from beat.web import heartbeats, rendering, times
from beat.web.charts import day_strip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from starlette.responses import Response

    from beat.client.listing import Counts, Listed
    from beat.client.overview import Attendance, Due
    from beat.client.schedule_info import Standing
    from beat.storage.heartbeat import Instance
    from beat.web.request import Asked
    from beat.web.site import Site

FEW = 500
"""The number of schedules up to which it is quick to read all of them."""
_TROUBLES = 10
_RUNS = 20
_STRIP_S = 20
_HOURS, _SLICES = 24, 100
_BAD = ("failed", "lost")


class Trouble(NamedTuple):
    """A schedule that needs attention."""

    known: Standing
    mark: str
    word: str
    why: str
    since: datetime | None
    job: str = ""
    """The id of the job that failed, if known."""


def show(site: Site, asked: Asked) -> Response:
    """Return the overview page."""
    client = asked.client
    counts, there, due = client.counts(), client.attendance(), client.due()
    missing = heartbeats.missing(there)
    stuck = heartbeats.stuck(there.beats, there.now, client.settings.interval)
    situation = situated(counts, there, due, missing, stuck)
    troubles = list(itertools.islice(_troubles(asked, counts, there, due), _TROUBLES))
    number = counts.failing + counts.broken + len(due.late) + due.more_late + len(due.held)
    return rendering.page(
        asked,
        "overview.html",
        counts=counts,
        situation=situation,
        state=summary.state(situation),
        level=summary.level(situation),
        troubles=troubles,
        more=max(0, number - len(troubles)),
        beats=there.beats,
        stuck={each.name for each in stuck},
        missing=missing,
        coming=due.coming,
        runs=client.latest() if counts.schedules else [],
        strip=_strip(site, asked, counts.schedules) if counts.schedules else None,
        following=times.following,
        rule=list_row.rule,
        now=there.now,
    )


def situated(
    counts: Counts, there: Attendance, due: Due, missing: list[heartbeats.Missing], stuck: list[Instance]
) -> summary.Situation:
    """Return the facts for the sentence at the top of the overview."""
    first = due.coming[0] if due.coming else None
    return summary.Situation(
        now=there.now,
        active=counts.active,
        paused=counts.paused,
        broken=counts.broken,
        failing=counts.failing,
        late=len(due.late) + due.more_late,
        held=len(due.held),
        beats=len(there.beats),
        stuck=tuple(each.name for each in stuck),
        missing=tuple(each.name for each in missing) if there.beats else (),
        hold_until=there.hold_until,
        clock_s=(there.now - clock.now()).total_seconds(),
        next_id=first.schedule_id if first else "",
        next_at=first.due_at if first else None,
    )


def _troubles(asked: Asked, counts: Counts, there: Attendance, due: Due) -> Iterator[Trouble]:
    """Yield the schedules that need attention, the worst first."""
    client, beats = asked.client, len(there.beats)
    if counts.broken:
        for row in client.schedules(state="broken", page=_TROUBLES):
            yield Trouble(row.standing, "broken", "broken", list_row.note(row.standing), row.standing.updated_at)
    if counts.failing:
        for row in client.schedules(failing=True, sort="failures", runs=_RUNS, page=_TROUBLES):
            yield _failing(row)
    for known in due.late:
        yield Trouble(known, "late", "late", summary.due(known, beats, there.now), known.due_at)
    for known in due.held:
        yield Trouble(known, "held", "held", summary.due(known, beats, there.now), known.unannounced_at)


def _failing(row: Listed) -> Trouble:
    """Return the trouble of a failing schedule, since its first failure in a row if that is among its newest runs."""
    known, number = row.standing, row.standing.consecutive_failures
    failed = [run for run in row.runs if isinstance(run, Fired) and run.state in _BAD]
    since = failed[number - 1].at if 0 < number <= len(failed) else None
    word = "failing" if number == 1 else f"failed {number:,}×"
    return Trouble(known, "failed", word, known.last_error, since, failed[0].job_id if failed else "")


def _strip(site: Site, asked: Asked, schedules: int) -> dict[str, object] | None:
    """Return the strip of 24 hours before and after now for the template; None while it is not ready."""
    make = functools.partial(site.client.timeline, _HOURS, slices=_SLICES, tz="UTC")
    found = site.aside.newest("strip", _STRIP_S, make, quick=schedules <= FEW)
    if found is None:
        return None
    where = asked.viewer or zone("UTC")
    return {
        "drawing": day_strip.strip(found, where),
        "sums": day_strip.sums(found),
        "hours": day_strip.hours(found, where),
        "scale": day_strip.Scale.of(found.slices),
        "found": found,
        "where": where,
    }
