"""The newest runs of a schedule as a line of single characters: how long each took, and what did not simply succeed."""

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
    """The characters of one kind of terminal."""

    heights: str
    """Of what succeeded, the shortest first."""
    others: Mapping[str, str]
    """By the word for what became of it."""


DRAWN = Signs("▁▂▃▄▅▆▇█", {"failed": "✗", "lost": "?", "stopped": "!", "skipped": "·", "open": "○"})
TYPED = Signs("_-=#", {"failed": "x", "lost": "?", "stopped": "!", "skipped": ".", "open": "o"})
_WORDS = {sign: word for signs in (DRAWN, TYPED) for word, sign in signs.others.items()}
LEGEND = "▁█ short and long, ✗ failed, ? lost, ! stopped, · skipped, ○ open"


def signs() -> Signs:
    """Those that stdout can show."""
    try:
        "".join((DRAWN.heights, *DRAWN.others.values())).encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return TYPED
    return DRAWN


def spark(newest_first: Sequence[Fired | Passed], own: Signs, room: int = LONGEST) -> str:
    """As many of them as there is room for, the newest at the right."""
    runs = newest_first[:room][::-1]
    took = [run.duration for run in runs if isinstance(run, Fired) and run.state == "succeeded" and run.duration]
    # Those that take as long as most are half as high as there is room for: what takes longer stands out.
    top = max(*took, 2 * statistics.median(took)) if took else 0
    return "".join(_sign(run, own, top) for run in runs)


def painted(text: str) -> str:
    """The same, in colours that repeat what the characters say."""
    return "".join(click.style(sign, **STYLES[_WORDS.get(sign, "succeeded")]) for sign in text)


def _sign(run: Fired | Passed, own: Signs, top: float) -> str:
    if not isinstance(run, Fired):
        return own.others["skipped"]
    if run.state != "succeeded":
        return own.others.get(run.state, own.others["open"])
    share = (run.duration or 0) / top if top else 0
    return own.heights[min(int(share * len(own.heights)), len(own.heights) - 1)]
