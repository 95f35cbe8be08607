"""Draw the newest runs of a schedule as one character each: a bar for the duration, or a sign if it did not succeed."""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from beat.cli.render.timeline import STYLES
from beat.history.history import Fired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beat.history.history import Passed

LONGEST = 20


class Signs(NamedTuple):
    """The characters for one kind of terminal."""

    heights: str
    """Bars for runs that succeeded, the lowest first."""
    others: Mapping[str, str]
    """Any other state → its sign."""


DRAWN = Signs("▁▂▃▄▅▆▇█", {"failed": "✗", "lost": "?", "stopped": "!", "skipped": "·", "open": "○"})
TYPED = Signs("_-=#", {"failed": "x", "lost": "?", "stopped": "!", "skipped": ".", "open": "o"})
_WORDS = {sign: word for signs in (DRAWN, TYPED) for word, sign in signs.others.items()}
LEGEND = "▁█ short and long, ✗ failed, ? lost, ! stopped, · skipped, ○ open"


def signs() -> Signs:
    """Return the characters that stdout can encode."""
    try:
        "".join((DRAWN.heights, *DRAWN.others.values())).encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return TYPED
    return DRAWN


def spark(newest_first: Sequence[Fired | Passed], own: Signs, room: int = LONGEST) -> str:
    """Return one character for each of the newest `room` runs, the newest at the right."""
    runs = newest_first[:room][::-1]
    took = [run.duration for run in runs if isinstance(run, Fired) and run.state == "succeeded" and run.duration]
    # A run of median duration is at most half as high as a bar can be, so that longer runs stand out.
    top = max(*took, 2 * statistics.median(took)) if took else 0
    return "".join(_sign(run, own, top) for run in runs)


def painted(text: str) -> str:
    """Return a sparkline in colours that repeat what its characters say."""
    return "".join(click.style(sign, **STYLES[_WORDS.get(sign, "succeeded")]) for sign in text)


def _sign(run: Fired | Passed, own: Signs, top: float) -> str:
    if not isinstance(run, Fired):
        return own.others["skipped"]
    if run.state != "succeeded":
        return own.others.get(run.state, own.others["open"])
    share = (run.duration or 0) / top if top else 0
    return own.heights[min(int(share * len(own.heights)), len(own.heights) - 1)]
