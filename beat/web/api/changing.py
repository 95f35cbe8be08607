"""The changes: each is one step of the client, and bears the name of who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock
from beat.errors import BadOption
from beat.web.api import asked_times
from beat.words import afterwards, telling
from beat.zones import zone

if TYPE_CHECKING:
    from beat.web.api.endpoint import Question

_RULE = ("cron", "every", "tz")


def trigger(question: Question) -> dict[str, Any]:
    """A run at once."""
    names = ("args", "kwargs", "force", "skip_next", "request", "expected_version")
    run = question.client.trigger(question["schedule_id"], **{name: question[name] for name in names})
    return {"run": telling.plain(run)}


def pause(question: Question) -> dict[str, Any]:
    """Ticks are held."""
    client, schedule_id = question.client, question["schedule_id"]
    end = asked_times.ahead(question["until"], zone(client.get(schedule_id).tz), client.now(), "until")
    version = question["expected_version"]
    found = client.pause(schedule_id, end and end.instant, question["reason"], expected_version=version)
    told = {"schedule": afterwards.plain(found), "passing": afterwards.passing(found)}
    return {**told, "note": (end and end.note) or None}


def resume(question: Question) -> dict[str, Any]:
    """And go on."""
    client, schedule_id = question.client, question["schedule_id"]
    before = client.get(schedule_id)
    wish = {"catch_up": question["catch_up"], "expected_version": question["expected_version"]}
    found = client.resume(schedule_id, **wish)
    return {"schedule": afterwards.plain(found), "passed": afterwards.passed(before, found)}


def reschedule(question: Question) -> dict[str, Any]:
    """Another rule, or another time."""
    client, schedule_id = question.client, question["schedule_id"]
    ruled = any(question[name] is not None for name in _RULE)
    if ruled + (question["at"] is not None) + question["reset"] != 1:
        raise BadOption('give one of: a rule ("cron" or "every", or "tz" alone), "at", or "reset": true')
    if question["seconds"] and question["cron"] is None:
        raise BadOption('"seconds" is for expressions of six fields: give "cron", too')
    before, now = client.get(schedule_id), client.now()
    meant = asked_times.ahead(question["at"], zone(before.tz), now, "at")
    wish = {name: question[name] for name in ("every", "tz", "seconds", "reset", "dry_run", "expected_version")}
    after = client.reschedule(schedule_id, question["cron"], at=meant and meant.instant, **wish)
    fires = [[clock.text(tick) for tick in afterwards.firing(found, client.now())] for found in (before, after)]
    told = {"schedule": afterwards.plain(after), "dry_run": question["dry_run"], "note": (meant and meant.note) or None}
    return {**told, "before": fires[0], "after": fires[1]}


def pause_all(question: Question) -> dict[str, Any]:
    """Everything that is active."""
    client = question.client
    end = asked_times.ahead(question["until"], zone(client.settings.tz), client.now(), "until")
    number = client.pause_all(end and end.instant, question["reason"])
    return {"paused": number, **telling.times({"until": end and end.instant})}


def resume_all(question: Question) -> dict[str, Any]:
    """What was paused all at once."""
    return {"resumed": question.client.resume_all(catch_up=question["catch_up"])}
