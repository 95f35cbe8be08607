"""Read Celery's `beat_schedule`, whose entries have a task name, a schedule, arguments and options.

A task's name is assumed to be the path of its function, which is Celery's default.
"""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.errors import BadSource, DeclarationError
from beat.migrate import files, python_source, timezone
from beat.migrate.celery import schedules, source
from beat.migrate.celery.source import Entry
from beat.migrate.result import Draft, Found, NotCarried, gathered, named, positional
from beat.schedule.loader import errors, finder
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.migrate.result import Reading

_SECOND = timedelta(seconds=1)
_KEYS = {"task", "schedule", "args", "kwargs", "options", "relative"}
_NO_MEANING = {  # option → why it is dropped
    "priority": "RQ's queues have no priorities inside: name a queue",
    "soft_time_limit": "job_timeout is the one limit that RQ knows",
    "countdown": "RQ runs a job as soon as a worker is free",
    "eta": "RQ runs a job as soon as a worker is free",
}
_NOTES = (
    "stop `celery beat` before beat runs these, or every job comes twice",
    "a task's name is taken for the path of its function, which a worker of RQ now calls: take Celery's decorator away",
    "what only Celery gives a task is gone: bind=True, autoretry_for, rate_limit, .delay() inside a canvas",
    "RQ stops a job after 180 s unless job_timeout= says otherwise; Celery has no limit of its own accord",
)
_INTERVALS = "intervals: Celery counts from its last run; beat counts from the epoch, so that no restart moves a tick"


def read(place: str, *, tz: str | None = None, importing: bool = False) -> Reading:
    """Return the entries in `app/celery.py`, `app.celery` or `app.celery:SCHEDULE`; code runs only with `importing`."""
    home, _, attribute = (place, "", "") if finder.is_file(place) else place.partition(":")
    found, zone, notes = (_imported if importing else _written)(home, attribute or None, tz)
    drafts = [Draft(each.name, each.where, functools.partial(_made, each, zone)) for each in found]
    return gathered("celery", place, drafts, [*notes, *_NOTES], intervals=_INTERVALS)


def _written(home: str, attribute: str | None, tz: str | None) -> tuple[list[Entry], str, list[str]]:
    read = python_source.parsed(*files.read_python(home))
    found = source.entries(read, attribute)
    if tz:
        return found, tz, []
    return found, *_zone(source.setting(read, source.ZONES), source.setting(read, source.LOCAL), read.shown)


def _zone(told: object, utc: object, where: str) -> tuple[str, list[str]]:
    """Return the zone of the application's expressions, and a note if it had to be assumed."""
    if told is not None:
        return str(told), []
    if utc is False:
        zone = timezone.zone_name()
        return zone, [f"without enable_utc Celery follows its host's clock, here taken to be in {zone}: --tz says more"]
    return "UTC", [f"{where} sets no timezone, so it is UTC, as in Celery itself; if it is set elsewhere, say --tz"]


def _imported(home: str, attribute: str | None, tz: str | None) -> tuple[list[Entry], str, list[str]]:
    module = files.module(home)
    owner = files.attribute(module, attribute, home) if attribute else module
    conf: Any = _configured(owner, home)
    schedule, told = owner, conf or module
    if not isinstance(owner, dict):
        schedule = _first(conf or module, source.SCHEDULES)
    if not isinstance(schedule, dict):
        raise BadSource(
            f"{home}{':' * bool(attribute)}{attribute or ''} is a {type(schedule).__name__}, neither a dict nor a "
            "Celery application: name one of the two, as in 'app.celery:app'"
        )
    found = [Entry(str(name), home, functools.partial(_entry, entry)) for name, entry in schedule.items()]
    if tz:
        return found, tz, []
    return found, *_zone(_first(told, source.ZONES), _first(told, source.LOCAL), home)


def _configured(owner: Any, home: str) -> Any:
    """Return the application's configuration, after finalizing the application as Celery does."""
    conf = getattr(owner, "conf", None)
    if conf is not None and callable(getattr(owner, "finalize", None)):
        with errors.explained(f"{home}: app.finalize()", home):
            getattr(conf, source.SCHEDULES[0], None)  # the first access configures the application
            owner.finalize()
    return conf


def _first(owner: object, names: tuple[str, ...]) -> Any:
    return next((value for name in names if (value := getattr(owner, name, None)) is not None), None)


def _entry(entry: object) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise NotCarried(f"it is {entry!r:.60}, not a dict with 'task' and 'schedule'")
    relative = bool(entry.get("relative"))
    return {**entry, "schedule": schedules.from_celery(entry.get("schedule"), relative=relative)}


def _made(entry: Entry, zone: str) -> Found:
    said = entry.read()
    if unknown := next((key for key in said if key not in _KEYS), None):
        raise NotCarried(f"it has an entry {unknown!r:.60}, which Celery does not know")
    task = said.get("task")
    if not isinstance(task, str) or "." not in task:
        raise NotCarried(f"its task is {task!r:.60}, which is not the path of a function: schedule the function itself")
    rule = schedules.schedule(said.get("schedule"), relative=bool(said.get("relative"))).rule()
    kept, notes = _options(named(said.get("options"), "options"))
    return Found(
        name=entry.name,
        where=entry.where,
        id=entry.name,
        func=task,
        cron=rule.cron,
        every=rule.every,
        tz=zone if rule.cron else None,
        args=positional(said.get("args")),
        kwargs=named(said.get("kwargs")),
        queue=kept.pop("queue", None),
        options=kept,
        notes=tuple(filter(None, [rule.note, *notes])),
    )


def _options(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the options that RQ knows, and a note for each that it does not."""
    kept: dict[str, Any] = {}
    notes = []
    for name, value in given.items():
        if value is None:
            continue
        if name == "queue" and isinstance(value, str):
            kept["queue"] = value
        elif name in ("expires", "time_limit") and (seconds := _seconds(value)):
            kept["ttl" if name == "expires" else "job_timeout"] = seconds
        else:
            why = _NO_MEANING.get(name, "RQ has nothing like it")
            notes.append(f"{name}={value!r:.60} was not carried over: {why}")
    return kept, notes


def _seconds(value: object) -> int | None:
    """Return whole seconds, or None for any other value, such as a date."""
    try:
        length = durations.parse(value) if not isinstance(value, str) else timedelta(0)
    except DeclarationError:
        return None
    return length // _SECOND if length >= _SECOND and not length % _SECOND else None
