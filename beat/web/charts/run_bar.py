"""Draw one run as a bar with a part for each time: from due to enqueued, to started, to ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from beat.client.describe import instants
from beat.web.charts import shapes

if TYPE_CHECKING:
    from datetime import datetime

    from beat.history.history import Fired

_LEAST = 1.5
_LATE, _QUEUED = Markup('class="w-late"'), Markup('class="w-queue"')


class Step(NamedTuple):
    """The time between two states of a run."""

    name: str
    """`late`, `queue` or `run`."""
    words: str
    seconds: float
    """Its length so far."""
    filled: Markup


def steps(run: Fired, now: datetime) -> list[Step]:
    """Return the steps of a run as far as they are known; one that goes on ends at `now`."""
    found = []
    due, enqueued, started = run.tick, run.enqueued_at, run.started_at
    if due and enqueued and run.triggered_by not in {"manual", "backfill"}:
        late = _between(due, enqueued)
        words = "waited for its turn" if run.waited else "from its tick until it was enqueued"
        found.append(Step("late", words, late, _LATE))
    if enqueued and (started or not run.closed_at):
        again = " and in earlier attempts" if run.attempts > 1 else ""
        found.append(Step("queue", f"in the queue{again}", _between(enqueued, started or now), _QUEUED))
    if started:
        took = _took(run, now)
        found.append(Step("run", "ran" if run.closed_at else "has been running", took, shapes.fill(run.state)))
    return found


def told(run: Fired, now: datetime) -> str:
    """Return the steps in words, such as `4 ms from its tick until it was enqueued, ran 0.4 s, succeeded`."""
    parts = [
        f"{each.words} {instants.span(each.seconds)}"
        if each.name == "run"
        else f"{instants.span(each.seconds)} {each.words}"
        for each in steps(run, now)
    ]
    return ", ".join([*parts, run.state])


def drawn(run: Fired, now: datetime, width: int = 160, height: int = 12) -> Markup:
    """Return the bar; empty if no time is known."""
    found = steps(run, now)
    if not found:
        return Markup("")
    words, x, bars = told(run, now), 0.0, []
    total = sum(each.seconds for each in found) or 1.0
    room = width - _LEAST * len(found)
    for each in found:
        length = _LEAST + room * each.seconds / total
        said = f"{instants.span(each.seconds)} {each.words}"
        bars.append(shapes.box((x, 0), (length, height), each.filled, said))
        x += length
    return Markup(
        '<svg class="waits" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}" '
        'preserveAspectRatio="none">{}</svg>'
    ).format(words, width, height, width, height, shapes.joined(bars))


def _took(run: Fired, now: datetime) -> float:
    if run.duration is not None:
        return run.duration
    return _between(run.started_at, run.ended_at or run.closed_at or now) if run.started_at else 0.0


def _between(first: datetime, last: datetime) -> float:
    """Return the seconds between two instants; at least 0, because the clocks of two machines may differ."""
    return max(0.0, (last - first).total_seconds())
