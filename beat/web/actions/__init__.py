"""What somebody can do to a schedule: each has a page with a form; the page that shows what was done comes after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web.actions import pausing, rescheduling, running

if TYPE_CHECKING:
    from starlette.routing import Route

    from beat.web.site import Site


def routes(site: Site) -> list[Route]:
    """All of them: GET shows the form, POST does it."""
    of = "/schedules/{schedule_id}"
    return [
        site.route(f"{of}/run", running.form, name="run_form"),
        site.route(f"{of}/run", running.run, methods=("POST",), name="run_now"),
        site.route(f"{of}/pause", pausing.pause_form, name="pause_form"),
        site.route(f"{of}/pause", pausing.pause, methods=("POST",), name="pause"),
        site.route(f"{of}/resume", pausing.resume_form, name="resume_form"),
        site.route(f"{of}/resume", pausing.resume, methods=("POST",), name="resume"),
        site.route(f"{of}/reschedule", rescheduling.form, name="reschedule_form"),
        site.route(f"{of}/reschedule", rescheduling.reschedule, methods=("POST",), name="reschedule"),
        site.route(f"{of}/preview", rescheduling.preview, name="preview"),
    ]
