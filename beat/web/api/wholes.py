"""The endpoints about the installation as a whole: their addresses, fields and shapes."""

from __future__ import annotations

from beat.web.api import installation
from beat.web.api.endpoint import Endpoint
from beat.web.api.fields import Text, Whole
from beat.web.api.shapes import flag, instant, many, maybe, number, of, record, text, word

_BEATS = {
    "beats": many(of("Alive"), "The schedulers that are running, by name"),
    "missing": many(of("Missing"), "Schedulers that went without a word"),
}

ENDPOINTS = (
    Endpoint(
        path="/overview",
        name="overview",
        summary="How it is doing, in one sentence and in numbers",
        about="What is late and held, what comes next, what ran last, and which schedulers are running.",
        answer=installation.overview,
        shape=record(
            now=instant("By Redis' clock"),
            sentence=text("As the web UI says it"),
            level=word("bad", "warn", "good", "none", about="How bad it is; none where there is no schedule yet"),
            counts=of("Counts"),
            **_BEATS,
            late=many(of("Declared"), "Due for longer than a scheduler may need, and not decided"),
            more_late=number(),
            held=many(of("Declared"), "Due, and no running scheduler declares them"),
            coming=many(of("Declared"), "Those that are due next"),
            latest=many(of("Run"), "The newest runs of all schedules"),
        ),
    ),
    Endpoint(
        path="/system",
        name="system",
        summary="Schedulers and their clocks, Redis, queues and workers",
        answer=installation.system,
        shape=record(
            now=instant("By Redis' clock"),
            **_BEATS,
            hold_until=maybe(instant("Redis' clock has jumped, and nothing fires until then")),
            redis=many(of("Finding"), "What the doctor says about the server"),
            findings=many(of("Finding"), "What the doctor says about the schedulers"),
            queues=many(of("Queue"), "To which ticks of any schedule may go"),
            groups=many(of("Group")),
        ),
    ),
    Endpoint(
        path="/actions",
        name="actions",
        summary="Who did what to schedules, newest first",
        about="Read from the newest events, which are not kept for ever: `since` says how far back they go. A pause or "
        "a rule that is in force is told however old it is.",
        answer=installation.actions,
        query=(
            Text(name="by", about="Only what that person or beat did.", example="ann@host", longest=500),
            Whole(name="limit", about="How many at most.", example=50, default=50, least=1, most=500),
        ),
        shown=("limit",),
        shape=record(
            actions=many(
                record(
                    at=instant(),
                    by=text(),
                    type=text("registered, paused, resumed, rescheduled, removed …, or manual and backfill of runs"),
                    schedule=text(),
                    line=maybe(of("Line")),
                )
            ),
            since=maybe(instant()),
            whole=flag("Whether there are no older events"),
            people=many(text(), "All who did something"),
        ),
    ),
    Endpoint(
        path="/alerts",
        name="alerts",
        summary="Incidents that are open, the rules that opened them, and the channels that are told",
        answer=installation.alerts,
        shape=record(
            rules=many(record(name=text(), on=many(text()), channels=many(text()), text=text())),
            channels=many(record(channel=text(), kind=text(), waiting=number("Messages it has yet to take"))),
            incidents=many(
                record(
                    incident=text(),
                    rule=text(),
                    subject=text("A schedule, a queue, or nothing"),
                    event=text(),
                    count=number(),
                    since=instant(),
                    channels=many(text()),
                    error=maybe(text()),
                )
            ),
        ),
    ),
)
