"""The forms that pause a schedule, with or without an end, and resume it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.client.describe import instants
from beat.client.upcoming import held
from beat.errors import BadInstant, BadOption
from beat.timing.zones import zone
from beat.web import flash
from beat.web.actions import forms

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.responses import Response

    from beat.client.queries import Overview
    from beat.web.request import Asked
    from beat.web.site import Site

_FIELDS = {BadInstant: "until", BadOption: "reason"}


def pause_form(_site: Site, asked: Asked) -> Response:
    """Show the form that pauses a schedule, filled with the current pause if there is one."""
    found = forms.schedule(asked)
    pause = found.standing.pause
    until = pause.until.isoformat().replace("+00:00", "Z") if pause and pause.until else ""
    return forms.shown(
        asked, "pause.html", found, typed={"until": until, "picked": "", "reason": pause.reason if pause else ""}
    )


def pause(_site: Site, asked: Asked) -> Response:
    """Pause the schedule, or show the form with its problem."""
    found, typed = forms.schedule(asked), _typed(asked)
    try:
        end = _end(found, typed)
        asked.client.pause(
            found.standing.schedule_id, end, typed["reason"] or None, expected_version=forms.version(asked)
        )
    except forms.WRONG as e:
        return forms.shown(asked, "pause.html", found, forms.problem(e, _FIELDS), typed=typed)
    return flash.back(asked, forms.path(found), "paused")


def _typed(asked: Asked) -> dict[str, str]:
    return {name: asked.form.get(name, "").strip() for name in ("until", "picked", "reason")}


def _end(found: Overview, typed: dict[str, str]) -> datetime | None:
    written = typed["until"] or typed["picked"]
    if typed["until"] and typed["picked"]:
        raise BadInstant("two ends were given: empty one of the two fields")
    return instants.coming(written, zone(found.standing.tz), found.now, "until").instant if written else None


def resume_form(_site: Site, asked: Asked) -> Response:
    """Show the form that resumes a schedule, with the number of ticks that the pause holds."""
    found = forms.schedule(asked)
    return forms.shown(asked, "resume.html", found, held=_held(found), catch_up=False)


def resume(_site: Site, asked: Asked) -> Response:
    """Resume the schedule, or show the form with its problem."""
    found, catch_up = forms.schedule(asked), asked.form.get("catch_up") == "yes"
    try:
        asked.client.resume(found.standing.schedule_id, catch_up=catch_up, expected_version=forms.version(asked))
    except forms.WRONG as e:
        return forms.shown(asked, "resume.html", found, forms.problem(e), held=_held(found), catch_up=catch_up)
    return flash.back(asked, forms.path(found), "caught_up" if catch_up else "resumed")


def _held(found: Overview) -> int:
    """Return how many ticks the pause holds so far."""
    stretch = held(found.standing, found.now) if found.standing.pause else None
    return stretch.count if stretch else 0
