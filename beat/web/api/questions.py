"""The endpoints that look: their addresses, fields and shapes."""

from __future__ import annotations

from beat.client.candidates import STATES
from beat.client.load import FEWEST, LONGEST, MOST
from beat.client.orders import ORDERS
from beat.client.reading import WORDS
from beat.web.api import looking
from beat.web.api.endpoint import Endpoint
from beat.web.api.fields import Choice, Choices, Flag, Text, Whole
from beat.web.api.inputs import CRON, EVERY, JOB, SCHEDULE, SINCE, TZ, UNTIL
from beat.web.api.shapes import instant, many, maybe, number, of, opened, record, seconds, text, things
from beat.web.drawing.shapes import OUTCOMES

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
        answer=looking.timeline,
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
        answer=looking.schedules,
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
        answer=looking.schedule,
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
        answer=looking.history,
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
        answer=looking.history,
        query=(SINCE, UNTIL, _OUTCOME, _LINES),
        shown=("since", "outcome"),
        shape=record(lines=many(of("Line"))),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/why",
        name="why",
        summary="What became of one tick, or why there is none",
        answer=looking.reason,
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
        answer=looking.run,
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
        answer=looking.preview,
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
