"""The API endpoints that read schedules, their ticks and their runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from beat.client.describe import decisions, export, instants, load, relations, show, tick_notes, upcoming, why, workers
from beat.client.history import WORDS
from beat.client.listing import STATES
from beat.client.ordering import ORDERS
from beat.client.timeline import FEWEST, LONGEST, MOST
from beat.errors import BadOption, UnknownSchedule
from beat.schedule import options
from beat.schedule.rule import clocked
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.zones import zone
from beat.web.api import fields
from beat.web.api.endpoint import Endpoint
from beat.web.api.fields import CRON, EVERY, JOB, SCHEDULE, SINCE, TZ, UNTIL, Choice, Choices, Flag, Text, Whole
from beat.web.api.models import instant, many, maybe, number, of, opened, record, seconds, text, things
from beat.web.charts import calendar
from beat.web.charts.shapes import OUTCOMES
from beat.web.pages.schedule import LINES

if TYPE_CHECKING:
    from beat.client.client import Client
    from beat.client.listing import Listed
    from beat.client.queries import Overview
    from beat.timing.zones import Zone
    from beat.web.api.endpoint import Question


_PAGE, _KEPT_S = 500, 10
_MOST_RUNS = 5_000
"""Maximum number of runs in one answer, because writing it as JSON blocks all other threads."""
FILTERS = ("state", "failing", "overridden", "source", "app", "queue", "func", "match", "sort")


def schedules(question: Question) -> dict[str, Any]:
    """Return one page of schedules, and the position after which the next page begins."""
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
        "beats": [decisions.times(each._asdict()) for each in beats],
    }


def _row(found: Listed, runs: int) -> dict[str, Any]:
    newest = {"runs": [decisions.plain(each) for each in found.runs[:runs]]} if runs else {}
    return {**export.row(found), **newest}


def schedule(question: Question) -> dict[str, Any]:
    """Return everything about one schedule, in data and in words."""
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
        "open_runs": [decisions.plain(run) for run in found.open_runs],
        "waiting": [clock.text(tick) for tick in found.waiting],
        "queues": workers.plain(found.queues),
        "places": relations.plain(found.places),
        "ticks": upcoming.of(found.standing, coming, where, found.now),
        "arguments": _arguments(client, schedule_id),
    }


def _days(found: Overview, where: Zone) -> list[dict[str, Any]]:
    """Return the outcomes of the ticks of each day, as the calendar in the web UI counts them."""
    shown = calendar.last(calendar.by_day(found.lines, where), instants.there(found.now, where).date())
    return [{"day": day.isoformat(), **{name: counts[name] for name in OUTCOMES}} for day, counts in shown]


def history(question: Question) -> dict[str, Any]:
    """Return the ledger lines of one schedule, or of all."""
    client, schedule_id = question.client, question.given.get("schedule_id")
    now, where = client.now(), fields.zone_of(client, schedule_id)
    lines = client.history(
        schedule_id,
        since=fields.past(question["since"], where, now, "since"),
        until=fields.past(question["until"], where, now, "until"),
        outcome=question["outcome"],
        limit=question["limit"],
    )
    return {"lines": [decisions.plain(line) for line in lines]}


def run(question: Question) -> dict[str, Any]:
    """Return one run, found by the id of its job."""
    client, job_id = question.client, question["job_id"]
    found = client.get_run(job_id)
    if found is None:
        raise HTTPException(404, f"the history has no job {job_id!r:.110}: it was trimmed, or is none of beat's")
    where = fields.zone_of(client, found.schedule_id)
    return {
        "run": decisions.plain(found),
        "arguments": _arguments(client, found.schedule_id, job_id),
        "sentence": decisions.story(found, where, client.now()),
    }


def reason(question: Question) -> dict[str, Any]:
    """Return what became of one tick."""
    client, schedule_id = question.client, question["schedule_id"]
    where, now = zone(client.get(schedule_id).tz), client.now()
    meant = instants.when(question["time"], where, now)
    told = client.why(schedule_id, meant.instant)
    return {**why.plain(told), "sentence": why.sentence(told, where, now), "note": meant.note or None}


def timeline(question: Question) -> dict[str, Any]:
    """Return the load of past and coming hours. The same request within `_KEPT_S` gets the same answer."""
    hours, slices, tz = question["hours"], question["slices"], question["tz"]
    where = zone(question.client.settings.tz if tz is None else tz)

    def look() -> dict[str, Any]:
        return load.plain(question.client.timeline(hours, slices=slices, tz=where.name))

    return {**question.site.kept(f"timeline {hours} {slices} {where.name}", _KEPT_S, look), "tz": where.name}


def preview(question: Question) -> dict[str, Any]:
    """Return the next ticks of a rule, without changing anything."""
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
    begin = fields.past(question["from"], where, now, "from") or now
    found = list(itertools.islice(tick_notes.ticks_after(rule, begin), question["n"]))
    return upcoming.plain(rule, where, found, now)


def _arguments(client: Client, schedule_id: str, job_id: str | None = None) -> dict[str, Any] | None:
    """Return the arguments of a schedule, or of a job; None if they no longer exist."""
    try:
        found = client.arguments(schedule_id, job_id)
    except UnknownSchedule:
        return None
    return found and {"args": list(found.args), "kwargs": dict(found.kwargs), "problem": found.problem or None}


_GLOB = "may be a glob"
_OUTCOME = Choices(
    name="outcome", about="Only runs that ended so, open ones, or what was skipped.", example="failed,lost", of=WORDS
)
_LINES = Whole(name="limit", about="How many lines at most.", example=20, default=50, least=1, most=500)
_SLICE = record(
    start=instant(), end=instant(), succeeded=number(), failed=number(), stopped=number(), lost=number(),
    open=number("Not known to have ended"), skipped=number(), coming=number("Ticks, after now"),
)  # fmt: skip
_DAY = record(
    day=text("By the clocks of the zone of the schedule", format="date"), **{name: number() for name in OUTCOMES}
)

ENDPOINTS = (
    Endpoint(
        path="/timeline",
        name="timeline",
        summary="The load of the last and the next hours",
        about="What ran, by outcome, and what will, slice by slice; and the instants at which schedules pile up.",
        answer=timeline,
        query=(
            Whole(name="hours", about="How far to both sides of now.", example=24, default=24, least=1, most=LONGEST),
            Whole(name="slices", about="How many slices at most.", example=100, default=100, least=FEWEST, most=MOST),
            TZ,
        ),
        shown=("hours",),
        shape=record(
            now=instant(),
            step=seconds("The length of a slice; now cuts one in two"),
            tz=text("At whose full hours slices begin"),
            slices=many(_SLICE),
            pile_ups=many(record(at=instant(), times=number(), schedules=number(), names=many(text()))),
            more_pile_ups=number(),
            schedules=number(),
            active=number(),
            overdue=number("Ticks that are due and not decided yet"),
            partial=number("Schedules whose history does not reach back so far"),
            whole_from=maybe(instant()),
            unreadable=number("Schedules whose rule cannot be read"),
            often=number("Schedules that tick too often to be looked at for pile-ups"),
        ),
    ),
    Endpoint(
        path="/schedules",
        name="schedules",
        summary="Schedules, a page at a time",
        about="To read on, ask again with the same filters and `after` set to the `next` of the answer.",
        answer=schedules,
        query=(
            Text(name="match", about="A glob over ids, or a part of them.", example="customer_*"),
            Choice(name="state", about="Only those.", example="paused", of=STATES),
            Flag(name="failing", about="Only those that failed when they last ran."),
            Flag(name="overridden", about="Only those with another rule than their code's."),
            Text(name="source", about=f"Only those from code, or from data (api); {_GLOB}.", example="code"),
            Text(name="app", about=f"Only those of an application; {_GLOB}.", example="billing"),
            Text(name="queue", about=f"Only those whose jobs go there; {_GLOB}.", example="reports"),
            Text(name="func", about=f"Only those of a function; {_GLOB}.", example="app.tasks.*"),
            Choice(name="sort", about="In which order.", example="next", default="id", of=tuple(ORDERS)),
            Text(name="after", about="Go on after this: an id, or the `next` of a page.", longest=200),
            Whole(name="limit", about="How many at most.", example=100, default=100, least=1, most=500),
            Whole(
                name="runs",
                about="Of each its newest runs; in all at most 5,000.",
                example=30,
                default=0,
                most=100,
            ),
        ),
        shown=("state", "sort"),
        shape=record(
            schedules=many(of("Schedule")),
            next=maybe(text("What to give as `after` for the next page; null on the last")),
            counts=of("Counts"),
            beats=many(of("Beat")),
        ),
        refusals=(404,),
    ),
    Endpoint(
        path="/schedules/{schedule_id}",
        name="schedule",
        summary="One schedule, and how it has been doing",
        about="Where it stands, what the code says and what was overridden, its next ticks with what changes of the "
        "clocks do to them, statistics of its history, its queues and who works at them.",
        answer=schedule,
        within=(SCHEDULE,),
        query=(Whole(name="ticks", about="How many of the next ticks.", example=10, default=10, least=1, most=100),),
        shown=("ticks",),
        shape=record(
            now=instant("By Redis' clock"),
            schedule=of("Shown"),
            words=things("The same facts in sentences, by name"),
            statistics=of("Statistics"),
            days=many(_DAY, "Of the last 90 days, those on which there was something; oldest first"),
            open_runs=many(of("Run")),
            waiting=many(instant(), "Ticks that wait for an earlier run to end"),
            queues=many(of("Queue")),
            places=of("Places"),
            ticks=many(of("Coming")),
            arguments=maybe(of("Arguments")),
        ),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/history",
        name="schedule_history",
        summary="What became of every tick of a schedule, newest first",
        answer=history,
        within=(SCHEDULE,),
        query=(SINCE, UNTIL, _OUTCOME, _LINES),
        shown=("since", "outcome"),
        shape=record(lines=many(of("Line"))),
        refusals=(404,),
    ),
    Endpoint(
        path="/history",
        name="history",
        summary="What became of the ticks of all schedules, newest first",
        answer=history,
        query=(SINCE, UNTIL, _OUTCOME, _LINES),
        shown=("since", "outcome"),
        shape=record(lines=many(of("Line"))),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/why",
        name="why",
        summary="What became of one tick, or why there is none",
        answer=reason,
        within=(SCHEDULE,),
        query=(
            Text(
                name="time",
                about="03:00 (the latest that is past) or '2026-11-16 03:00', both in the zone of the schedule; "
                "2026-11-16T02:00Z; or '2h ago'.",
                example="03:00",
                longest=60,
                kind="past",
                required=True,
            ),
        ),
        shown=("time",),
        shape=opened(
            record(
                schedule=text(),
                instant=instant(),
                tz=text(),
                answer=text("In a word"),
                sentence=text("The answer, as what follows the time and a colon"),
                note=maybe(text("What there is to say about the time that was asked for")),
                runs=many(of("Run")),
            )
        ),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/runs/{job_id}",
        name="run",
        summary="One run, by the id of its job",
        about="Its times, its worker and attempts, its report or traceback, and the arguments it was called with.",
        answer=run,
        within=(JOB,),
        shape=record(
            run=of("Run"), arguments=maybe(of("Arguments")), sentence=text("From its tick to its end, in words")
        ),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/preview",
        name="preview",
        summary="The next ticks of a rule, without changing anything",
        about="Give `cron` or `every`. Each tick says what a change of the clocks does to it.",
        answer=preview,
        query=(
            CRON,
            EVERY,
            TZ,
            Flag(name="seconds", about="The expression has six fields, seconds first."),
            Text(name="id", about="The schedule whose id decides what H is.", example="report", longest=100),
            Text(name="from", about="Begin here, not now: 2026-03-28, 2026-03-28T12:00Z.", longest=60, kind="past"),
            Whole(name="n", about="How many ticks.", example=5, default=5, least=1, most=100),
        ),
        shown=("cron", "tz"),
        shape=record(
            expression=text(),
            normalised=text(),
            description=text("The rule in words"),
            tz=text(),
            ticks=many(of("Tick")),
        ),
    ),
)
