"""The JSON Schemas of the API's answers, and short functions to write them with.

They describe the plain forms of `beat.client.describe`, as `--json` prints them; tests check every answer against them.
"""

from __future__ import annotations

from typing import Any

from beat.client.listing import IDLE

Shape = dict[str, Any]


def text(about: str = "", **more: Any) -> Shape:
    """Return the schema of a string."""
    return _told({"type": "string", **more}, about)


def word(*of: str, about: str = "") -> Shape:
    """Return the schema of one of a few words."""
    return _told({"type": "string", "enum": list(of)}, about)


def instant(about: str = "") -> Shape:
    """Return the schema of a time in RFC 3339."""
    return _told({"type": "string", "format": "date-time"}, about)


def number(about: str = "") -> Shape:
    """Return the schema of a whole number."""
    return _told({"type": "integer"}, about)


def seconds(about: str = "") -> Shape:
    """Return the schema of a length of time in seconds."""
    return _told({"type": "number"}, about)


def flag(about: str = "") -> Shape:
    """Return the schema of a boolean."""
    return _told({"type": "boolean"}, about)


def anything(about: str = "") -> Shape:
    """Return the schema that allows any value."""
    return _told({}, about)


def things(about: str = "") -> Shape:
    """Return the schema of an object with any fields."""
    return _told({"type": "object", "additionalProperties": True}, about)


def many(of: Shape, about: str = "") -> Shape:
    """Return the schema of a list."""
    return _told({"type": "array", "items": of}, about)


def record(**fields: Shape) -> Shape:
    """Return the schema of an object that has all these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def opened(shape: Shape) -> Shape:
    """Return the schema with further fields allowed."""
    return {**shape, "additionalProperties": True}


def maybe(shape: Shape) -> Shape:
    """Return the schema with null allowed."""
    if "$ref" in shape:
        return {"anyOf": [shape, {"type": "null"}]}
    kind = shape.get("type")
    found = {**shape, "type": [kind, "null"]}
    return {**found, "enum": [*shape["enum"], None]} if "enum" in shape else found


def of(name: str) -> Shape:
    """Return a reference to a schema of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _told(shape: Shape, about: str) -> Shape:
    return {**shape, "description": about} if about else shape


_STATE = text("active, paused, disabled, finished, retired or broken")
_RULE = things("What decides the ticks: cron and tz, every, or follows")
_PAUSE = record(
    by=text("Who paused it"),
    at=maybe(instant()),
    until=maybe(instant("When it goes on by itself; null: until an operator resumes it")),
    reason=maybe(text()),
    scope=text("all if the whole namespace was paused, else one"),
)
_OVERRIDE = record(rule=_RULE, by=text(), at=maybe(instant()))
_ERROR = maybe(record(type=text(), message=text(), traceback=text()))
_STANDING: dict[str, Shape] = {
    "state": _STATE,
    "next_run": maybe(instant("Its next tick")),
    "due_at": maybe(instant("When that is due: jitter, or an operator, may have put it off")),
    "last_run": maybe(instant("The newest tick that became a job")),
    "last_enqueued": maybe(instant()),
    "last_success": maybe(instant()),
    "last_failure": maybe(instant()),
    "last_error": maybe(text()),
    "last_duration": maybe(seconds("Of the last run, in seconds")),
    "run_count": maybe(number("Every job that was enqueued")),
    "manual_count": number("How many of those an operator asked for"),
    "skip_count": maybe(number()),
    "success_count": number(),
    "failure_count": number(),
    "stopped_count": number(),
    "consecutive_failures": number("How many runs in a row have failed by now"),
    "created_at": maybe(instant()),
    "updated_at": maybe(instant()),
    "version": number("Grows with every change: for expected_version"),
    "source": maybe(text("code, or api for those from data")),
    "app": maybe(text()),
    "deferred_by": maybe(text("Who has moved the next tick")),
    "unannounced_at": maybe(instant("Since when no running scheduler declares it: its ticks are held")),
    "override": maybe(_OVERRIDE),
    "pause": maybe(_PAUSE),
}
_PART = record(
    job=text(), shard=number(), state=text(), started_at=maybe(instant()), ended_at=maybe(instant()),
    duration=maybe(seconds()), worker=maybe(text()), attempts=number(), error=_ERROR, reason=maybe(text()),
)  # fmt: skip
_RUN: dict[str, Shape] = {
    "type": text("run"),
    "schedule": text(),
    "tick": maybe(instant("Its nominal time; null if an operator asked for the run")),
    "job": text("The id of its RQ job"),
    "state": text("queued, started, scheduled, deferred, open, or how it ended: succeeded, failed, stopped, lost"),
    "triggered_by": maybe(text()),
    "number": maybe(number()),
    "beat": text("Who enqueued it"),
    "waited_since": maybe(instant()),
    "behind": maybe(text("The run for which it waited")),
    "enqueued_at": maybe(instant()),
    "late": maybe(seconds("From the tick to the job")),
    "started_at": maybe(instant()),
    "wait": maybe(seconds("In the queue")),
    "ended_at": maybe(instant()),
    "duration": maybe(seconds("Of work")),
    "worker": maybe(text()),
    "attempts": number(),
    "error": _ERROR,
    "advice": maybe(text("What to do when the worker could not call the function")),
    "reason": maybe(text()),
    "reported": flag("Whether the job itself said how it went"),
    "message": maybe(text()),
    "details": things("What the job reported; what looks secret is masked"),
    "closed_at": maybe(instant()),
    "queue": maybe(text()),
    "why": maybe(text("How its queue was chosen")),
    "after": maybe(text("The run whose success it follows")),
    "shards": maybe(number()),
    "parts": many(_PART, "Of a run that went to all of its queues"),
}
_PARENT = record(id=text(), state=maybe(text()), last_success=maybe(instant()))
_GROUP = record(
    name=text(), max_running=maybe(number()), when_full=maybe(text()), max_waiting=maybe(number()), running=number(),
    waiting=number(),
)  # fmt: skip
_BEAT: dict[str, Shape] = {
    "name": text(),
    "host": text(),
    "pid": maybe(number()),
    "version": text(),
    "tzdata": text(),
    "app": text(),
    "digest": text("Under which its declarations are announced; schedulers of the same code share it"),
    "tz": text("The zone of schedules that name none"),
    "only": text("The glob of the schedules that it registers, if it leaves others out"),
    "schedules": maybe(number("How many its code declares")),
    "fired": maybe(number()),
    "started_at": maybe(instant()),
    "seen_at": maybe(instant()),
    "last_pass": maybe(instant("When it last looked for due ticks")),
    "clock_offset_ms": maybe(number("How far its machine's clock is ahead of Redis'")),
}
_TICK: dict[str, Shape] = {
    "utc": instant(),
    "local": text("By the clocks of the zone, as ISO 8601 has it"),
    "from_now": seconds(),
    "note": maybe(text("What a change of the clocks does to it")),
}
_SPREAD = maybe(record(count=number(), p50=seconds(), p95=seconds(), max=seconds()))
_COUNTS = ("schedules", "active", *IDLE, "failing", "overridden")

SCHEMAS: dict[str, Shape] = {
    "Problem": {
        **record(error=text("What is wrong, in a sentence"), status=number("The same as that of the answer")),
        "examples": [{"error": "there is no schedule 'reprot'. Did you mean 'report'?", "status": 404}],
    },
    "Beat": record(**_BEAT),
    "Alive": record(
        **_BEAT, age=maybe(seconds("Since its last pass")), fresh=flag("Whether that will do, as `beat health` judges"),
        stuck=flag("Whether it sends heartbeats but has not looked for due ticks for too long"),
    ),
    "Missing": record(name=text(), since=instant("When its heartbeat expired")),
    "Finding": record(
        group=text("What it is about"), check=text("Which check found it"), level=text("ok, note, warning or problem"),
        what=text("In a sentence"), remedy=text("What to do about it"),
    ),
    "Group": _GROUP,
    "Counts": record(**{name: number() for name in _COUNTS}),
    "Declared": opened(record(id=text(), **_STANDING)),
    "Schedule": opened(record(id=text(), **_STANDING, last=maybe(of("Run")))),
    "Shown": opened(record(
        id=text(), **_STANDING, tz=text(), rule=_RULE, definition=things("As it is in force"),
        declared=things("As the code has it"), rev=text(), last_job=text(),
        finished=maybe(record(end=maybe(instant()), max_runs=maybe(number()))),
        next_ticks=many(record(tick=instant(), due_at=instant(), unless=many(text()))),
    )),
    "Changed": record(
        id=text(), state=_STATE, version=number(), next_run=maybe(instant()), due_at=maybe(instant()), tz=text(),
        rule=_RULE, pause=maybe(_PAUSE), overridden=flag("Whether an operator's rule is in force"),
    ),
    "Run": record(**_RUN),
    "Line": {
        "type": "object",
        "properties": {"type": text(
            "run, skipped, waiting, or what was changed: registered, updated, moved, rescheduled, reset, paused, "
            "resumed, deferred …"
        ), "schedule": text(), "at": instant("When it was written"), "beat": text("The scheduler or the operator")},
        "required": ["type", "schedule", "beat"],
        "additionalProperties": True,
        "description": "A line of a history. Of a run it has all fields of Run.",
    },
    "Tick": record(**_TICK),
    "Coming": record(
        **_TICK, due_at=instant("When it is to fire"),
        unless=many(text(), "Functions of the application that may exclude its day"),
    ),
    "Queue": record(
        name=text(), queued=number("Jobs that wait in it"), workers=maybe(number()), idle=maybe(number()),
        unread_since=maybe(instant("Since when no worker reads it, although ticks go there")),
    ),
    "Places": record(
        group=maybe(of("Group")), requires=many(_PARENT), follows=maybe(_PARENT), followers=many(text()),
        slow_runs=number(),
    ),
    "Statistics": record(
        since=maybe(instant("How far back the history goes")), runs=number(), open=number(), succeeded=number(),
        failed=number(), stopped=number(), lost=number(), duration=_SPREAD, late=_SPREAD, wait=_SPREAD,
        skipped=things("Ticks, by the reason for which they were skipped"), success_rate=maybe(seconds("From 0 to 1")),
    ),
    "Arguments": record(
        args=many(anything()), kwargs=things("Those that look secret are masked"),
        problem=maybe(text("Why they cannot be shown")),
    ),
}  # fmt: skip
"""The schemas by name. `Line` and those with options of schedules allow further fields."""
