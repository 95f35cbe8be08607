"""The questions about schedules, their ticks and their runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from beat import clock, options
from beat.cron import Cron
from beat.errors import BadOption, UnknownSchedule
from beat.timing import clocked
from beat.web.api import asked_times
from beat.web.drawing import days
from beat.web.drawing.shapes import OUTCOMES
from beat.web.pages.schedule import LINES
from beat.words import exported, instants, load, placing, show, staffing, telling, ticks, upcoming, why
from beat.zones import zone

if TYPE_CHECKING:
    from beat.client import Client
    from beat.client.listing import Listed
    from beat.client.questions import Overview
    from beat.web.api.endpoint import Question
    from beat.zones import Zone

_PAGE, _KEPT_S = 500, 10
_MOST_RUNS = 5_000
"""In one answer: while it is written as JSON, nothing else of the process moves."""
FILTERS = ("state", "failing", "overridden", "source", "app", "queue", "func", "match", "sort")


def schedules(question: Question) -> dict[str, Any]:
    """A page of them, and after which the next one begins."""
    limit, runs = question["limit"], question["runs"]
    if limit * runs > _MOST_RUNS:
        raise BadOption(
            f"{limit} schedules with {runs} runs each are too much for one answer: ask for no more than "
            f"{_MOST_RUNS:,} runs, as with limit={_MOST_RUNS // runs}, and then for the next page"
        )
    asked = {name: question[name] for name in (*FILTERS, "after")}
    rows = question.client.schedules(**asked, runs=max(runs, 1), page=min(limit + 1, _PAGE))
    found = list(itertools.islice(rows, limit + 1))
    counts, beats = question.client.counts(), question.client.beats()
    return {
        "schedules": [_row(each, runs) for each in found[:limit]],
        "next": found[limit - 1].place if len(found) > limit else None,
        "counts": counts._asdict(),
        "beats": [telling.times(each._asdict()) for each in beats],
    }


def _row(found: Listed, runs: int) -> dict[str, Any]:
    newest = {"runs": [telling.plain(each) for each in found.runs[:runs]]} if runs else {}
    return {**exported.row(found), **newest}


def schedule(question: Question) -> dict[str, Any]:
    """All that there is to say about one, in data and in words."""
    client, schedule_id = question.client, question["schedule_id"]
    found = client.show(schedule_id, lines=LINES)
    where = zone(found.standing.tz)
    coming = client.next_ticks(schedule_id, question["ticks"])
    words = {name: said for name, said in show.state(found, where).items() if said}
    return {
        "now": clock.text(found.now),
        "schedule": show.plain(found.standing),
        "words": words,
        "statistics": show.measured(found.statistics),
        "days": _days(found, where),
        "open_runs": [telling.plain(run) for run in found.open_runs],
        "waiting": [clock.text(tick) for tick in found.waiting],
        "queues": staffing.plain(found.queues),
        "places": placing.plain(found.places),
        "ticks": upcoming.of(found.standing, coming, where, found.now),
        "arguments": _arguments(client, schedule_id),
    }


def _days(found: Overview, where: Zone) -> list[dict[str, Any]]:
    """What became of the ticks of each day, as the calendar of the page has it."""
    shown = days.last(days.by_day(found.lines, where), instants.there(found.now, where).date())
    return [{"day": day.isoformat(), **{name: counts[name] for name in OUTCOMES}} for day, counts in shown]


def history(question: Question) -> dict[str, Any]:
    """The lines of one ledger, or of all."""
    client, schedule_id = question.client, question.given.get("schedule_id")
    now, where = client.now(), asked_times.zone_of(client, schedule_id)
    lines = client.history(
        schedule_id,
        since=asked_times.past(question["since"], where, now, "since"),
        until=asked_times.past(question["until"], where, now, "until"),
        outcome=question["outcome"],
        limit=question["limit"],
    )
    return {"lines": [telling.plain(line) for line in lines]}


def run(question: Question) -> dict[str, Any]:
    """One run, by its job."""
    client, job_id = question.client, question["job_id"]
    found = client.get_run(job_id)
    if found is None:
        raise HTTPException(404, f"the history has no job {job_id!r:.110}: it was trimmed, or is none of beat's")
    where = asked_times.zone_of(client, found.schedule_id)
    return {
        "run": telling.plain(found),
        "arguments": _arguments(client, found.schedule_id, job_id),
        "sentence": telling.story(found, where, client.now()),
    }


def reason(question: Question) -> dict[str, Any]:
    """What became of one tick."""
    client, schedule_id = question.client, question["schedule_id"]
    where, now = zone(client.get(schedule_id).tz), client.now()
    meant = instants.when(question["time"], where, now)
    told = client.why(schedule_id, meant.instant)
    return {**why.plain(told), "sentence": why.sentence(told, where, now), "note": meant.note or None}


def timeline(question: Question) -> dict[str, Any]:
    """The load; what somebody has asked for just now is not looked for again."""
    hours, slices, tz = question["hours"], question["slices"], question["tz"]
    where = zone(question.client.settings.tz if tz is None else tz)

    def look() -> dict[str, Any]:
        return load.plain(question.client.timeline(hours, slices=slices, tz=where.name))

    return {**question.site.kept(f"timeline {hours} {slices} {where.name}", _KEPT_S, look), "tz": where.name}


def preview(question: Question) -> dict[str, Any]:
    """The ticks of a rule that somebody tries."""
    cron, every, seed = question["cron"], question["every"], question["id"]
    if (cron is None) == (every is None):
        raise BadOption("give one rule to look at: cron='0 9 * * *', or every='15m'")
    settings = question.client.settings
    where = zone(settings.tz if question["tz"] is None else question["tz"])
    rule = clocked(cron, every=every, tz=where.name, seconds=question["seconds"], presets=settings.presets)
    if isinstance(rule, Cron) and rule.hashed:
        if seed is None:
            raise BadOption("H stands for what a schedule's id makes of it: give the id, too")
        rule = rule.seeded(options.schedule_id(seed))
    now = clock.now()
    begin = asked_times.past(question["from"], where, now, "from") or now
    found = list(itertools.islice(ticks.ticks_after(rule, begin), question["n"]))
    return upcoming.plain(rule, where, found, now)


def _arguments(client: Client, schedule_id: str, job_id: str | None = None) -> dict[str, Any] | None:
    """Those with which it is called, or was; None where they are gone."""
    try:
        found = client.arguments(schedule_id, job_id)
    except UnknownSchedule:
        return None
    return found and {"args": list(found.args), "kwargs": dict(found.kwargs), "problem": found.problem or None}
