"""The API endpoints about the installation as a whole: its state, schedulers, queues, changes and alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client import liveness
from beat.client.describe import decisions, export, relations, summary, workers
from beat.doctor import Doctor
from beat.notify.alerts import status
from beat.timing import clock
from beat.web import heartbeats
from beat.web.api.endpoint import Endpoint
from beat.web.api.fields import Text, Whole
from beat.web.api.models import flag, instant, many, maybe, number, of, record, text, word
from beat.web.pages import overview as overview_page

if TYPE_CHECKING:
    from beat.client.overview import Attendance
    from beat.web.api.endpoint import Question


_VITALS_S, _QUEUES_S = 5, 5
_SERVER = ("redis", "state")


def overview(question: Question) -> dict[str, Any]:
    """Return the state of the installation in one sentence, and the facts behind it."""
    client = question.client
    counts, there, due = client.counts(), client.attendance(), client.due()
    stuck = heartbeats.stuck(there.beats, there.now, client.settings.interval)
    situation = overview_page.situated(counts, there, due, heartbeats.missing(there), stuck)
    return {
        "now": clock.text(there.now),
        "sentence": summary.sentence(situation),
        "level": summary.level(situation),
        "counts": counts._asdict(),
        **_beats(question, there),
        "late": [export.schedule(known) for known in due.late],
        "more_late": due.more_late,
        "held": [export.schedule(known) for known in due.held],
        "coming": [export.schedule(known) for known in due.coming],
        "latest": [decisions.plain(run) for run in client.latest()] if counts.schedules else [],
    }


def system(question: Question) -> dict[str, Any]:
    """Return the schedulers with their clocks, Redis, the queues with their workers, and the groups."""
    site, client = question.site, question.client
    there = client.attendance()
    vitals = site.kept("vitals", _VITALS_S, Doctor.beside(site.client).vitals)
    return {
        "now": clock.text(there.now),
        **_beats(question, there),
        "hold_until": there.hold_until and clock.text(there.hold_until),
        "redis": [each._asdict() for each in vitals if each.group in _SERVER],
        "findings": [each._asdict() for each in vitals if each.group not in _SERVER],
        "queues": workers.plain(site.kept("api queues", _QUEUES_S, site.client.queues)),
        "groups": [relations.shared(each) for each in client.groups()],
    }


def actions(question: Question) -> dict[str, Any]:
    """Return the actions of users and schedulers, newest first."""
    found = question.client.actions(question["limit"], by=question["by"])
    return {
        "actions": [
            {
                "at": clock.text(each.at),
                "by": each.by,
                "type": each.type,
                "schedule": each.schedule_id,
                "line": each.line and decisions.plain(each.line),
            }
            for each in found.deeds
        ],
        "since": found.since and clock.text(found.since),
        "whole": found.whole,
        "people": list(found.people),
    }


def alerts(question: Question) -> dict[str, Any]:
    """Return the open incidents, and the alert rules and channels."""
    return status.plain(status.Standing.beside(question.client))


def _beats(question: Question, there: Attendance) -> dict[str, Any]:
    """Return the running schedulers, each with the age of its last cycle, and the missing ones."""
    interval = question.client.settings.interval
    told = liveness.tell(there.beats, there.now, liveness.limit(interval))
    stuck = {each.name for each in heartbeats.stuck(there.beats, there.now, interval)}
    return {
        "beats": [{**_plain(each), "stuck": each.beat.name in stuck} for each in told],
        "missing": [decisions.times(each._asdict()) for each in heartbeats.missing(there)],
    }


def _plain(each: liveness.Told) -> dict[str, Any]:
    age = None if each.age is None else each.age.total_seconds()
    return {**decisions.times(each.beat._asdict()), "age": age, "fresh": each.fresh}


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
        answer=overview,
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
        answer=system,
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
        answer=actions,
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
        answer=alerts,
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
