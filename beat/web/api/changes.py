"""The API endpoints that change schedules. Each makes one change through the client, in the name of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import after_change, decisions
from beat.errors import BadOption
from beat.timing import clock
from beat.timing.zones import zone
from beat.web.api import fields
from beat.web.api.endpoint import Endpoint
from beat.web.api.fields import (
    AHEAD,
    CRON,
    EVERY,
    PAUSED_UNTIL,
    REASON,
    SCHEDULE,
    TZ,
    VERSION,
    Flag,
    Listed,
    Named,
    Text,
)
from beat.web.api.models import flag, instant, many, maybe, number, of, record, text

if TYPE_CHECKING:
    from beat.web.api.endpoint import Question


_RULE = ("cron", "every", "tz")


def trigger(question: Question) -> dict[str, Any]:
    """Trigger a run now."""
    names = ("args", "kwargs", "force", "skip_next", "request", "expected_version")
    run = question.client.trigger(question["schedule_id"], **{name: question[name] for name in names})
    return {"run": decisions.plain(run)}


def pause(question: Question) -> dict[str, Any]:
    """Pause a schedule, and describe the ticks that the end of the pause will skip."""
    client, schedule_id = question.client, question["schedule_id"]
    end = fields.ahead(question["until"], zone(client.get(schedule_id).tz), client.now(), "until")
    version = question["expected_version"]
    found = client.pause(schedule_id, end and end.instant, question["reason"], expected_version=version)
    told = {"schedule": after_change.plain(found), "passing": after_change.passing(found)}
    return {**told, "note": (end and end.note) or None}


def resume(question: Question) -> dict[str, Any]:
    """Resume a schedule, and count the ticks that this skipped."""
    client, schedule_id = question.client, question["schedule_id"]
    before = client.get(schedule_id)
    wish = {"catch_up": question["catch_up"], "expected_version": question["expected_version"]}
    found = client.resume(schedule_id, **wish)
    return {"schedule": after_change.plain(found), "passed": after_change.passed(before, found)}


def reschedule(question: Question) -> dict[str, Any]:
    """Override the rule, move the next tick, or reset to the code's rule. With `dry_run`, change nothing."""
    client, schedule_id = question.client, question["schedule_id"]
    ruled = any(question[name] is not None for name in _RULE)
    if ruled + (question["at"] is not None) + question["reset"] != 1:
        raise BadOption('give one of: a rule ("cron" or "every", or "tz" alone), "at", or "reset": true')
    if question["seconds"] and question["cron"] is None:
        raise BadOption('"seconds" is for expressions of six fields: give "cron", too')
    before, now = client.get(schedule_id), client.now()
    meant = fields.ahead(question["at"], zone(before.tz), now, "at")
    wish = {name: question[name] for name in ("every", "tz", "seconds", "reset", "dry_run", "expected_version")}
    after = client.reschedule(schedule_id, question["cron"], at=meant and meant.instant, **wish)
    fires = [[clock.text(tick) for tick in after_change.firing(found, client.now())] for found in (before, after)]
    told = {
        "schedule": after_change.plain(after),
        "dry_run": question["dry_run"],
        "note": (meant and meant.note) or None,
    }
    return {**told, "before": fires[0], "after": fires[1]}


def pause_all(question: Question) -> dict[str, Any]:
    """Pause every active schedule."""
    client = question.client
    end = fields.ahead(question["until"], zone(client.settings.tz), client.now(), "until")
    number = client.pause_all(end and end.instant, question["reason"])
    return {"paused": number, **decisions.times({"until": end and end.instant})}


def resume_all(question: Question) -> dict[str, Any]:
    """Resume the schedules that `pause_all` paused."""
    return {"resumed": question.client.resume_all(catch_up=question["catch_up"])}


_CATCH_UP = Flag(
    name="catch_up", about="Leave what was held to the misfire policy, as after an outage. Else it passes."
)
_NOTE = maybe(text("What there is to say about the time that was asked for"))

ENDPOINTS = (
    Endpoint(
        path="/schedules/{schedule_id}/trigger",
        name="trigger",
        summary="Run a schedule now, whatever is next",
        about="The run is enqueued at once, once; no scheduler needs to run, and the next tick stays as it is. It is "
        "refused while a run goes on that it may not overlap, unless `force` is given.",
        answer=trigger,
        within=(SCHEDULE,),
        body=(
            Listed(name="args", about="These take the place of the schedule's own.", example=[1, 2]),
            Named(name="kwargs", about="These are laid over the schedule's own.", example={"copies": 2}),
            Flag(name="force", about="Also while a run goes on that it may not overlap."),
            Flag(name="skip_next", about="It takes the place of the next tick, which passes."),
            Text(
                name="request",
                about="8 to 40 letters and digits of your own: whatever is asked for again with the same within an "
                "hour is the same run, so that it can safely be sent again.",
                example="a81bc81bdead4e5d",
                longest=40,
                pattern="[A-Za-z0-9]{8,40}",
            ),
            VERSION,
        ),
        shown=("kwargs",),
        shape=record(run=of("Run")),
        status=201,
        goes_to=lambda content: f"/runs/{content['run']['job']}",
        refusals=(404, 409),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/pause",
        name="pause",
        summary="Hold the ticks of a schedule",
        about="They are held until a time, or until an operator resumes it, and then pass as one skip. What is paused "
        "already gets the new end and the new reason.",
        answer=pause,
        within=(SCHEDULE,),
        body=(PAUSED_UNTIL, REASON, VERSION),
        shown=("until", "reason"),
        shape=record(
            schedule=of("Changed"),
            passing=maybe(record(count=number(), first=maybe(instant()), last=maybe(instant()), next=maybe(instant()))),
            note=_NOTE,
        ),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/resume",
        name="resume",
        summary="End a pause",
        about="The schedule goes on with its next tick, and nothing fires at once.",
        answer=resume,
        within=(SCHEDULE,),
        body=(_CATCH_UP, VERSION),
        shape=record(schedule=of("Changed"), passed=number("How many ticks the pause made pass")),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/schedules/{schedule_id}/reschedule",
        name="reschedule",
        summary="Lay another rule over that of the code, or move the next tick once",
        about="Give one of: a rule (`cron` or `every`, or `tz` alone for the rule that it has), `at`, or `reset`. "
        "Deploys keep the rule until it is reset. With `dry_run` nothing is changed.",
        answer=reschedule,
        within=(SCHEDULE,),
        body=(
            CRON,
            EVERY,
            TZ,
            Flag(name="seconds", about="The expression has six fields, seconds first."),
            Text(
                name="at",
                about=f"The next tick fires then, once: {AHEAD}.",
                example="monday 09:00",
                longest=60,
                kind="ahead",
            ),
            Flag(name="reset", about="Back to the rule of the code."),
            Flag(name="dry_run", about="Say what would be done, and do nothing."),
            VERSION,
        ),
        shown=("cron", "tz"),
        shape=record(
            schedule=of("Changed"),
            dry_run=flag(),
            before=many(instant(), "When the next ticks fired before"),
            after=many(instant(), "When they fire now, or would"),
            note=_NOTE,
        ),
        refusals=(404, 409),
    ),
    Endpoint(
        path="/pause_all",
        name="pause_all",
        summary="Pause every active schedule",
        about="What is paused already stays as it is.",
        answer=pause_all,
        body=(PAUSED_UNTIL, REASON),
        shown=("until", "reason"),
        shape=record(paused=number("How many those were"), until=maybe(instant())),
    ),
    Endpoint(
        path="/resume_all",
        name="resume_all",
        summary="End the pauses of pause_all",
        about="What was paused by name stays paused.",
        answer=resume_all,
        body=(_CATCH_UP,),
        shape=record(resumed=number("How many those were")),
    ),
)
