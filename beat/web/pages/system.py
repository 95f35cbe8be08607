"""The system page: schedulers and their clocks, Redis, queues and workers, groups, alerts, and the audit log.

Parts that read every schedule are computed in the background; all others are quick.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from beat.client.describe import audit_log
from beat.doctor import LEVELS, OK, Doctor
from beat.notify.alerts.status import Standing
from beat.timing import clock
from beat.timing.zones import zone
from beat.web import heartbeats, rendering
from beat.web.pages import overview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response

    from beat.client.audit_log import Deeds
    from beat.doctor import Finding
    from beat.history.history import Fired
    from beat.web.request import Asked
    from beat.web.site import Site

_DEEDS, _SHOWN, _OPEN = 1000, 50, 50
_RUNS = 100
_VITALS_S, _QUEUES_S, _DOCTOR_S, _DEEDS_S = 5, 5, 30, 3
_AMISS = ("warning", "problem")
_SERVER = ("redis", "state")


def show(site: Site, asked: Asked) -> Response:
    """Return the system page."""
    client, where = asked.client, asked.viewer or zone("UTC")
    who = asked.query.get("who") or None
    there, quick = client.attendance(), client.counts().schedules <= overview.FEW
    vitals: list[Finding] = site.kept("vitals", _VITALS_S, Doctor.beside(site.client).vitals)
    done: Deeds = site.kept("deeds", _DEEDS_S, lambda: site.client.actions(_DEEDS))
    wanted = [each for each in done.deeds if who is None or each.by == who]
    return rendering.page(
        asked,
        "system.html",
        beats=there.beats,
        missing=heartbeats.missing(there),
        stuck={each.name for each in heartbeats.stuck(there.beats, there.now, client.settings.interval)},
        lateness=_lateness(client.latest(_RUNS)),
        amiss=[each for each in vitals if each.group == "beats" and each.level in _AMISS],
        server=[each for each in vitals if each.group in _SERVER],
        queues=site.aside.newest("queues", _QUEUES_S, site.client.queues, quick=quick),
        groups=client.groups(),
        incidents=[(each, clock.found(each.state.since)) for each in Standing.beside(client).incidents()[:_OPEN]],
        findings=_by_level(site.aside.newest("doctor", _DOCTOR_S, Doctor.beside(site.client).examine, quick=quick)),
        deeds=list(audit_log.told(wanted[:_SHOWN], where)),
        done=done,
        who=who,
        where=where,
        now=there.now,
    )


def _by_level(found: Iterable[Finding] | None) -> list[Finding] | None:
    """Return the findings that are not `ok`, the worst first; None while they are not ready."""
    if found is None:
        return None
    wrong = [each for each in found if each.level != OK]
    return sorted(wrong, key=lambda each: LEVELS.index(each.level), reverse=True)


def _lateness(runs: Iterable[Fired]) -> dict[str, tuple[float, int]]:
    """Return the maximum lateness in seconds and the number of ticks for each scheduler, from its newest ticks."""
    found: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        if run.late_ms is not None and run.triggered_by == "scheduler" and not run.waited:
            found[run.beat].append(run.late_ms)
    return {name: (max(0, *late) / 1000, len(late)) for name, late in found.items()}
