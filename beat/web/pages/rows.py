"""The rows of the schedule list, with the content of each cell."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from beat.client import schedule_info
from beat.client.cache import Lately
from beat.client.describe import instants, list_row
from beat.history.history import Fired
from beat.timing.zones import zone
from beat.web import times
from beat.web.charts import bars
from beat.web.charts.bars import Bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from beat.client.listing import Listed
    from beat.client.schedule_info import Standing
    from beat.history.history import Passed
    from beat.timing.zones import Zone

    Url = Callable[..., str]

_RULES, _REMEMBERED = 2_000, 250
_IDLE = {"retired", "finished", "disabled"}
_lately: Lately[tuple[Fired | Passed, ...], Drawn] = Lately(_REMEMBERED)


class Looking(NamedTuple):
    """The facts that all rows of a page share: the time, the viewer's zone, and how addresses are made."""

    now: datetime
    viewer: Zone | None
    url: Url
    has_scheduler: bool = True


class Last(NamedTuple):
    """The newest run."""

    state: str
    """The class of its mark."""
    words: str
    href: str
    took: str
    at: datetime | None
    """When it ended; for an open run, since when it has been in its state."""


class Drawn(NamedTuple):
    """The newest runs, as bars and in words."""

    bars: Markup
    summary: str
    usual: str


class Row(NamedTuple):
    """One schedule in the list."""

    known: Standing
    href: str
    when: str
    """The rule in words."""
    cron: str
    """The cron expression as it was written; empty if the rule is not cron."""
    description: str
    coming: list_row.Coming
    coming_at: Markup
    """The next tick in the zones of the schedule and of the viewer."""
    last: Last | None
    bars: Markup
    summary: str
    usual: str
    mark: str
    """The class of the state."""
    state: str
    note: str

    @property
    def id(self) -> str:
        """Return the id of the schedule."""
        return self.known.schedule_id

    @property
    def kind(self) -> str:
        """Return the class of the row: `bad`, `idle` or empty."""
        if self.known.state == "broken" or self.known.consecutive_failures:
            return "bad"
        return "idle" if self.known.state in _IDLE else ""


def row(found: Listed, looking: Looking) -> Row:
    """Return the row of one schedule."""
    known = found.standing
    where, coming = zone(known.tz), list_row.coming(known, looking.now)
    href = looking.url(f"/schedules/{quote(known.schedule_id, safe='')}")
    drawn = _lately.made((href, known.tz), found.runs, lambda runs: _drawn(runs, where, href))
    rule = known.definition or known.rule
    return Row(
        known=known,
        href=href,
        when=_described(json.dumps(dict(known.rule))),
        cron=str(rule.get("cron", "")),
        description=str(known.definition.get("description") or ""),
        coming=coming,
        coming_at=times.moment(coming.at, where, looking.viewer, now=looking.now),
        last=_last(found.last, href),
        bars=drawn.bars,
        summary=drawn.summary,
        usual=drawn.usual,
        mark="held" if known.state == "active" and _is_idle(known, looking) else known.state or "broken",
        state=_state(known, where, looking),
        note=list_row.note(known),
    )


@functools.lru_cache(maxsize=_RULES)
def _described(rule: str) -> str:
    """Return a rule in words. It is cached, because parsing the rules of a page takes longer than drawing it."""
    found = schedule_info.rule(rule)
    return found.describe() if found else "its rule cannot be read"


def _is_idle(known: Standing, looking: Looking) -> bool:
    """Return whether no scheduler fires the schedule."""
    return bool(known.unannounced_at) or not looking.has_scheduler


def _state(known: Standing, where: Zone, looking: Looking) -> str:
    """Return the state in words, such as `paused until Mon 21:39:56 Berlin`; a week or more ahead, with the date."""
    if known.pause and known.pause.until:
        until = known.pause.until.replace(microsecond=0)
        own = instants.there(until, where)
        day = f"{own:%a} " if own.date() == instants.there(looking.now, where).date() else ""
        return f"paused until {day}{instants.near(until, where, looking.now)} {instants.place(where)}"
    if known.state == "active" and not known.unannounced_at and not looking.has_scheduler:
        return "active, no scheduler"
    return list_row.state(known)


def _last(run: Fired | None, href: str) -> Last | None:
    if run is None:
        return None
    link = _run(href, run.job_id)
    if run.state not in list_row.ENDED:
        word, since = list_row.going(run)
        return Last(run.state, word, link, "", since)
    took = "" if run.duration is None else instants.span(run.duration)
    return Last(run.state, run.state, link, took, run.ended_at or run.at)


def _drawn(runs: Sequence[Fired | Passed], where: Zone, href: str) -> Drawn:
    made = [_bar(each, where, href) for each in reversed(runs)]
    return Drawn(bars.drawn(made) if made else Markup(""), bars.summary(made), bars.usual(made))


def _bar(line: Fired | Passed, where: Zone, href: str) -> Bar:
    if isinstance(line, Fired):
        at = instants.local(line.tick or line.at, where)
        took = "" if line.duration is None else f" in {instants.span(line.duration)}"
        by = "" if line.tick else f", {line.triggered_by}"
        return Bar(line.state, line.duration, f"{at}: {line.state}{took}{by}", _run(href, line.job_id))
    many = "" if line.count == 1 else f" to {instants.local(line.last, where)}, {line.count:,} ticks"
    words = f"{instants.local(line.first, where)}{many}: skipped, {line.reason}"
    return Bar(bars.SKIPPED, None, words, _run(href, line.behind) if line.behind else href, line.count)


def _run(href: str, job_id: str) -> str:
    return f"{href}/runs/{quote(job_id, safe='')}"


def rows(found: Sequence[Listed], looking: Looking) -> list[Row]:
    """Return the rows of one page."""
    return [row(each, looking) for each in found]
