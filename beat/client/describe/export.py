"""Export a schedule as plain data: its definition with the options of `@periodic`, and its state.

The options have the names of `Client.add`, so `beat add --file` accepts what `beat list --json` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import decisions
from beat.schedule import monitor

if TYPE_CHECKING:
    from beat.client.listing import Listed
    from beat.client.schedule_info import Override, Pause, Standing

_STANDS = (
    "state", "next_run", "due_at", "last_run", "last_enqueued", "last_success", "last_failure", "last_error",
    "last_duration", "run_count", "manual_count", "skip_count", "success_count", "failure_count", "stopped_count",
    "consecutive_failures", "created_at", "updated_at", "version", "source", "app", "deferred_by", "unannounced_at",
)  # fmt: skip


BESIDE = (*_STANDS, "override", "pause", "last", "declared")
"""The names of the fields that are not options of the schedule."""


def row(found: Listed, *, reveal: bool = False) -> dict[str, Any]:
    """Return one row of a list; with `reveal`, including the URL of its monitor."""
    return {**schedule(found.standing, reveal=reveal), "last": found.last and decisions.plain(found.last)}


def schedule(known: Standing, *, reveal: bool = False) -> dict[str, Any]:
    """Return the definition of a schedule as it was declared, its override and its state."""
    options = known.declared if reveal else monitor.hidden(known.declared)
    declared = {name: value for name, value in options.items() if name != "anchor"}  # which is derived from start
    stands = {name: getattr(known, name) for name in _STANDS}
    empty = {name: stands[name] or None for name in ("deferred_by", "last_error", "source", "app")}
    return {
        "id": known.schedule_id,
        **declared,
        **decisions.times(stands | empty),
        "override": override(known.override),
        "pause": pause(known.pause),
    }


def pause(found: Pause | None) -> dict[str, Any] | None:
    """Return a pause as plain data, if there is one."""
    return found and decisions.times({**found._asdict(), "reason": found.reason or None})


def override(found: Override | None) -> dict[str, Any] | None:
    """Return an override as plain data, if there is one."""
    return found and decisions.times({"rule": dict(found.rule), "by": found.by, "at": found.at})
