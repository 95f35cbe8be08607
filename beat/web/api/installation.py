"""The questions about the installation as a whole: how it is doing, who is there, and who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock, pulse
from beat.alerts import standing
from beat.doctor import Doctor
from beat.web import heartbeats
from beat.web.pages import overview as page
from beat.words import exported, placing, staffing, summary, telling

if TYPE_CHECKING:
    from beat.client.surveying import Attendance
    from beat.web.api.endpoint import Question

_VITALS_S, _QUEUES_S = 5, 5
_SERVER = ("redis", "state")


def overview(question: Question) -> dict[str, Any]:
    """One sentence, and what it is made of."""
    client = question.client
    counts, there, due = client.counts(), client.attendance(), client.due()
    situation = page.situated(counts, there, due, heartbeats.missing(there))
    return {
        "now": clock.text(there.now),
        "sentence": summary.sentence(situation),
        "level": summary.level(situation),
        "counts": counts._asdict(),
        **_beats(question, there),
        "late": [exported.schedule(known) for known in due.late],
        "more_late": due.more_late,
        "held": [exported.schedule(known) for known in due.held],
        "coming": [exported.schedule(known) for known in due.coming],
        "latest": [telling.plain(run) for run in client.latest()] if counts.schedules else [],
    }


def system(question: Question) -> dict[str, Any]:
    """Beats and their clocks, Redis, queues and workers, groups."""
    site, client = question.site, question.client
    there = client.attendance()
    vitals = site.kept("vitals", _VITALS_S, Doctor.beside(site.client).vitals)
    return {
        "now": clock.text(there.now),
        **_beats(question, there),
        "hold_until": there.hold_until and clock.text(there.hold_until),
        "redis": [each._asdict() for each in vitals if each.group in _SERVER],
        "findings": [each._asdict() for each in vitals if each.group not in _SERVER],
        "queues": staffing.plain(site.kept("api queues", _QUEUES_S, site.client.queues)),
        "groups": [placing.shared(each) for each in client.groups()],
    }


def actions(question: Question) -> dict[str, Any]:
    """Who did what, newest first."""
    found = question.client.actions(question["limit"], by=question["by"])
    return {
        "actions": [
            {
                "at": clock.text(each.at),
                "by": each.by,
                "type": each.type,
                "schedule": each.schedule_id,
                "line": each.line and telling.plain(each.line),
            }
            for each in found.deeds
        ],
        "since": found.since and clock.text(found.since),
        "whole": found.whole,
        "people": list(found.people),
    }


def alerts(question: Question) -> dict[str, Any]:
    """What is amiss, as rules have it."""
    return standing.plain(standing.Standing.beside(question.client))


def _beats(question: Question, there: Attendance) -> dict[str, Any]:
    """Those that are alive, each with how long ago it passed; and those that are missed."""
    limit = pulse.limit(question.client.settings.interval)
    told = pulse.tell(there.beats, there.now, limit)
    stuck = {each.name for each in heartbeats.stuck(there.beats, there.now)}
    return {
        "beats": [{**_plain(each), "stuck": each.beat.name in stuck} for each in told],
        "missing": [telling.times(each._asdict()) for each in heartbeats.missing(there)],
    }


def _plain(each: pulse.Told) -> dict[str, Any]:
    age = None if each.age is None else each.age.total_seconds()
    return {**telling.times(each.beat._asdict()), "age": age, "fresh": each.fresh}
