"""The HTML pages of the web UI, one module each, and their routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web import actions
from beat.web.pages import overview, run, schedule, schedules, system, theme

if TYPE_CHECKING:
    from starlette.routing import Route

    from beat.web.site import Site


def routes(site: Site) -> list[Route]:
    """Return the routes of all pages and forms."""
    return [
        site.route("/", overview.show, name="overview"),
        site.route("/schedules", schedules.show, name="schedules"),
        site.route("/schedules/{schedule_id}", schedule.page, name="schedule"),
        site.route("/schedules/{schedule_id}/runs/{job_id}", run.page, name="run"),
        *actions.routes(site),
        site.route("/system", system.show, name="system"),
        site.route("/theme", theme.choose, name="theme"),
    ]
