"""The forms that change a schedule. Each redirects to the page that shows the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web.actions import pause, reschedule, trigger

if TYPE_CHECKING:
    from starlette.routing import Route

    from beat.web.site import Site


def routes(site: Site) -> list[Route]:
    """Return the routes of all forms: GET shows the form, POST makes the change."""
    of = "/schedules/{schedule_id}"
    return [
        site.route(f"{of}/run", trigger.form, name="run_form"),
        site.route(f"{of}/run", trigger.run, methods=("POST",), name="run_now"),
        site.route(f"{of}/pause", pause.pause_form, name="pause_form"),
        site.route(f"{of}/pause", pause.pause, methods=("POST",), name="pause"),
        site.route(f"{of}/resume", pause.resume_form, name="resume_form"),
        site.route(f"{of}/resume", pause.resume, methods=("POST",), name="resume"),
        site.route(f"{of}/reschedule", reschedule.form, name="reschedule_form"),
        site.route(f"{of}/reschedule", reschedule.reschedule, methods=("POST",), name="reschedule"),
        site.route(f"{of}/preview", reschedule.preview, name="preview"),
    ]
