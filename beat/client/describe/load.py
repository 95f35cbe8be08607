"""Convert the load of an installation to plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe.as_dict import times

if TYPE_CHECKING:
    from beat.client.timeline import Timeline


def plain(found: Timeline) -> dict[str, Any]:
    """Return the timeline as `--json` prints it."""
    return times({
        "now": found.now,
        "step": found.step.total_seconds(),
        "slices": [times(each._asdict()) for each in found.slices],
        "pile_ups": [times({**each._asdict(), "names": list(each.names)}) for each in found.pile_ups],
        "more_pile_ups": found.more_pile_ups,
        "schedules": found.schedules,
        "active": found.active,
        "overdue": found.overdue,
        "partial": found.partial,
        "whole_from": found.whole_from,
        "unreadable": found.unreadable,
        "often": found.often,
    })  # fmt: skip
