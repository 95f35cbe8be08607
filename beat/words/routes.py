"""Where a run went, and whom it follows, in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from beat.words import instants

if TYPE_CHECKING:
    from beat.history import Fired, Part
    from beat.zones import Zone

_SLOW = "slow: "


def went(run: Fired) -> str:
    """Where a run went and why, if there was a choice: `went to fast: shortest, 3 in line`."""
    if run.shards:
        return f"went to all of its {run.shards} queues"
    if not run.queue:
        return ""
    if run.why.startswith(_SLOW):
        return f"went to {run.queue}, its slow lane: {run.why.removeprefix(_SLOW)}"
    return f"went to {run.queue}: {run.why.replace(': ', ', ', 1)}" if run.why else f"went to {run.queue}"


def followed(run: Fired, parent: str | None, where: Zone) -> str:
    """After which success it fired."""
    at = f" at {instants.both(run.tick.replace(microsecond=0), where)}" if run.tick else ""
    return f"follows {parent or 'another'}: fired because {run.after} succeeded{at}"


def part(found: Part) -> str:
    """What became of one part, in a line."""
    by = f" by worker {found.worker}" if found.worker else ""
    took = f" after {instants.span(found.duration)}" if found.duration is not None else ""
    said = found.error and ": ".join(part for part in (found.error.type, found.error.message) if part)
    why = said or (found.message if found.reported else found.reason)
    return f"{found.job_id}: {found.state}{took}{by}" + (f": {why}" if why else "")


def short(run: Fired) -> str:
    """Where it went, in as few words as there are."""
    if run.parts:
        counts = Counter(part.state for part in run.parts)
        return f"{len(run.parts)} queues: " + ", ".join(f"{number} {state}" for state, number in counts.items())
    return f"{run.queue} ({run.why})" if run.queue and run.why else run.queue
