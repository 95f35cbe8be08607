"""The page of one schedule: its state, policies, next ticks, statistics and ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from beat.client.describe import instants, policies, relations, show, tick_notes, why
from beat.errors import BadInstant
from beat.history.history import Change
from beat.timing.zones import zone
from beat.web import flash, rendering
from beat.web.charts import calendar, durations, shapes
from beat.web.pages import header, history
from beat.web.times import away, moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from starlette.responses import Response

    from beat.client.queries import Overview
    from beat.client.upcoming import NextTick
    from beat.history.statistics import Spread
    from beat.timing.zones import Zone
    from beat.web.request import Asked
    from beat.web.site import Site

_TICKS = 10
LINES = 10_000
"""Maximum number of ledger entries that are read; the command line shows older ones."""
_SHOWN = ("function", "queue", "workers", "description", "monitor", "declared", "source", "version")
_COUNTED = ("runs", "open", "waiting", "skipped")


def page(_site: Site, asked: Asked) -> Response:
    """Return the page of one schedule."""
    found = asked.client.show(header.schedule_id(asked), lines=LINES)
    where, wanted = zone(found.standing.tz), history.asked_for(asked.query)
    facts, top = show.state(found, where), header.of(asked, found, ticks=_TICKS)
    made = rendering.page(
        asked,
        "schedule.html",
        **top,
        facts={name: facts[name] for name in _SHOWN if facts.get(name)},
        counted=_counted(found, facts, where),
        policies=_policies(found, where),
        notes=_notes(found, top["ticks"]),
        calendar=_calendar(found, where, asked),
        outcomes=shapes.OUTCOMES,
        statistics=found.statistics,
        spreads=_spreads(found),
        durations=durations.drawn(found.lines, where),
        ledger=history.page(found.lines, wanted, where, found.now),
        why=_why(asked, found, where),
        notice=flash.told(asked),
    )
    return flash.forgotten(asked, made)


def _counted(found: Overview, facts: Mapping[str, str], where: Zone) -> dict[str, Any]:
    """Return the counters, and when the last success and failure were; a script keeps their age up to date."""
    known, now = found.standing, found.now
    last = {"last success": known.last_success, "last failure": known.last_failure}
    return {
        **{name: header.cut(facts[name]) for name in _COUNTED if facts.get(name)},
        **{name: Markup("{} ({})").format(moment(at, where), away(at, now)) for name, at in last.items() if at},
        **({"last error": header.cut(known.last_error)} if known.last_error else {}),
    }


def _policies(found: Overview, where: Zone) -> dict[str, str]:
    known = found.standing
    own = policies.words(known.policies, known.ticked) if known.policies else {}
    return {**own, **relations.words(known, found.places, where, found.now)}


def _notes(found: Overview, following: Sequence[NextTick]) -> list[str]:
    """Return the note on each of the next ticks."""
    known = found.standing
    if known.policies is None:
        return []
    notes = tick_notes.notes(known.policies, [each.tick for each in following])
    return [header.fires(each, note) for each, note in zip(following, notes, strict=True)]


def _calendar(found: Overview, where: Zone, asked: Asked) -> Any:
    oldest = found.lines[-1] if found.lines else None
    first = isinstance(oldest, Change) and oldest.type == "registered"
    before = "it was not there yet" if first else "not known"
    reach = calendar.Reach(instants.there(oldest.at, where).date() if oldest else None, before)
    here = asked.url(f"/schedules/{found.standing.schedule_id}")

    def link(day: date) -> str:
        return f"{here}?day={day.isoformat()}#ledger"

    today = instants.there(found.now, where).date()
    return calendar.drawn(calendar.by_day(found.lines, where), today, reach, link)


def _spreads(found: Overview) -> dict[str, tuple[str, ...]]:
    """Return the median, the 95th percentile and the maximum of each quantity that was measured."""
    told = found.statistics
    measured = {"duration": (told.duration, 1), "lateness": (told.late_ms, 1000), "wait in the queue": (told.wait, 1)}
    return {name: _spread(each, per) for name, (each, per) in measured.items() if each}


def _spread(found: Spread, per_second: int) -> tuple[str, ...]:
    return tuple(instants.span(value / per_second) for value in (found.p50, found.p95, found.max))


def _why(asked: Asked, found: Overview, where: Zone) -> dict[str, str]:
    """Return the time that the viewer asked about, with the answer or the problem."""
    written = asked.query.get("why", "").strip()[:200]
    if not written:
        return {"written": "", "at": "", "answer": "", "problem": ""}
    try:
        meant = instants.when(written, where, found.now)
        told = asked.client.why(found.standing.schedule_id, meant.instant)
    except BadInstant as e:
        return {"written": written, "at": "", "answer": "", "problem": str(e)}
    at = instants.both(meant.instant.replace(microsecond=0), where)
    note = f" ({meant.note})" if meant.note else ""
    return {"written": written, "at": f"{at}{note}", "answer": why.sentence(told, where, found.now), "problem": ""}
