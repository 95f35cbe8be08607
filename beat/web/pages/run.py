"""The page of one run: its steps from the tick to its end, its arguments and report, and why it exists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.describe import decisions, instants, relations, why
from beat.config.masking import masked
from beat.errors import BeatError, UnknownSchedule
from beat.history.history import Fired
from beat.history.ledger import ASKED
from beat.timing.zones import zone
from beat.web import flash, rendering
from beat.web.charts import run_bar
from beat.web.pages import header

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.responses import Response

    from beat.client.job_arguments import Arguments
    from beat.client.queries import Overview
    from beat.timing.zones import Zone
    from beat.web.request import Asked
    from beat.web.site import Site

_NEAR = 2000
"""Entries of the ledger that are searched for the run and its neighbours."""
_LINES = 20
"""Lines of a traceback; a longer one is folded."""
_LONGEST = 20_000
"""Maximum number of characters of one value that are shown."""


class Value(NamedTuple):
    """An argument or a detail of a report, ready for the template."""

    name: str
    text: str
    is_long: bool


class Step(NamedTuple):
    """One step of a run, when the run reached it, and how long that took."""

    name: str
    at: datetime | None
    after: str


def page(_site: Site, asked: Asked) -> Response:
    """Return the page of one run."""
    found = asked.client.show(header.schedule_id(asked), lines=_NEAR)
    where, run = zone(found.standing.tz), _run(asked, found)
    arguments = asked.client.arguments(found.standing.schedule_id, run.job_ids[0])
    made = rendering.page(
        asked,
        "run.html",
        **header.of(asked, found),
        run=run,
        asked_for=run.triggered_by in ASKED,
        story=header.cut(decisions.story(run, where, found.now)),
        steps=_steps(run),
        bar=run_bar.drawn(run, found.now, 1000, 28),
        ways=run_bar.steps(run, found.now),
        facts=_facts(run, found),
        arguments=_arguments(arguments),
        details=_values(masked(dict(run.details))),
        traceback=_traceback(run),
        advice=header.advice(run, found),
        parts=[(part, relations.part(part)) for part in run.parts],
        why=_why(asked, run, where, found.now),
        neighbours=_neighbours(run, found),
        notice=flash.told(asked),
    )
    return flash.forgotten(asked, made)


def _run(asked: Asked, found: Overview) -> Fired:
    """Return the run in the address. Raise UnknownSchedule if this schedule does not have it."""
    job, own = str(asked.path["job_id"]), found.standing.schedule_id
    for line in found.lines:
        if isinstance(line, Fired) and job in (line.job_id, *line.job_ids):
            return line
    run = asked.client.get_run(job)
    if run is None or run.schedule_id != own:
        raise UnknownSchedule(f"the history of {own} has no run {job!r:.160}: it may have been trimmed")
    return run


def _steps(run: Fired) -> list[Step]:
    late = "" if run.late_ms is None else f"{instants.span(max(0, run.late_ms) / 1000)} after it was due"
    late = f"after it had waited behind {run.waited.behind or 'others'}" if run.waited else late
    waited = "" if run.wait is None else f"after {instants.span(run.wait)} in the queue"
    took = "" if run.duration is None else f"after {instants.span(run.duration)} of work"
    due = "" if run.triggered_by not in ASKED else "the tick that it makes up for"
    found = [
        Step("due", run.tick, due),
        Step("enqueued", run.enqueued_at, late),
        Step("started", run.started_at, f"attempt {run.attempts}" if run.attempts > 1 else waited),
        Step("ended", run.ended_at, took),
    ]
    return [each for each in found if each.at or (each.name != "due" and not run.closed_at)]


def _facts(run: Fired, found: Overview) -> dict[str, str]:
    queue = run.queue or str(found.standing.definition.get("queue", ""))
    return {
        name: value
        for name, value in {
            "job": run.job_id,
            "wanted by": f"{run.triggered_by}, {run.beat}" if run.beat else run.triggered_by,
            "queue": "all of its queues" if run.shards else queue,
            "why there": run.why,
            "worker": run.worker or "",
            "attempts": str(run.attempts) if run.attempts > 1 else "",
            "after": run.after,
            "waited behind": (run.waited and (run.waited.behind or "others")) or "",
            "run number": f"{run.number:,}" if run.number else "",
            "reason": run.reason,
        }.items()
        if value
    }


def _arguments(found: Arguments | None) -> dict[str, Any]:
    """Return the arguments of a run for the template, or why they cannot be shown."""
    if found is None:
        return {"problem": "RQ no longer has this job: what it was called with went with it.", "values": []}
    if found.problem:
        return {"problem": f"They are not shown: {found.problem}.", "values": []}
    named = {f"argument {n + 1}": value for n, value in enumerate(masked(found.args))} | masked(dict(found.kwargs))
    return {"problem": "" if named else "No arguments.", "values": _values(named)}


def _values(found: dict[Any, Any]) -> list[Value]:
    return [_value(str(name), value) for name, value in found.items()]


def _value(name: str, value: Any) -> Value:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text):,} characters)"
    return Value(name[:200], shown, "\n" in shown or len(shown) > 80)  # noqa: PLR2004 (a line)


def _traceback(run: Fired) -> dict[str, Any]:
    """Return the whole traceback and its last lines, which are shown first if it is long."""
    text = run.error.traceback if run.error else ""
    lines = text.rstrip().splitlines()
    return {"text": text, "is_long": len(lines) > _LINES, "end": "\n".join(lines[-_LINES // 2 :]), "lines": len(lines)}


def _why(asked: Asked, run: Fired, where: Zone, now: datetime) -> str:
    """Return why the run's tick had this result; empty if that adds nothing to the story of the run."""
    if run.tick is None:
        return ""
    try:
        answer = why.sentence(asked.client.why(run.schedule_id, run.tick), where, now)
    except BeatError:
        return ""
    return "" if answer == decisions.story(run, where, now) else answer


def _neighbours(run: Fired, found: Overview) -> dict[str, Fired | None]:
    runs = [line for line in found.lines if isinstance(line, Fired)]
    at = next((n for n, each in enumerate(runs) if each.job_id == run.job_id), None)
    if at is None:
        return {"newer": None, "older": None}
    return {"newer": runs[at - 1] if at else None, "older": runs[at + 1] if at + 1 < len(runs) else None}
