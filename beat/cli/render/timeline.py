"""Draw a timeline: bars over an axis of hours with now in the middle, and what did not succeed below.

Colours only repeat what the characters say. Each outcome but success has its own lane, and a line marks now.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.client.timeline import Slice, Timeline
    from beat.timing.zones import Zone

    Cell = tuple[str, str]
    """A character and the name of its style."""

MARGIN = 8
"""The number of columns left of the bars."""
_ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_STACKED = ("failed", "lost", "stopped", "open", "succeeded")  # from the bottom, where a single failure stays visible
_LANES = ("failed", "lost", "stopped", "skipped", "open")
_LABEL = 7  # columns for `18:00` or `Tue 17`, and for the gap after it
_APART = [timedelta(minutes=minutes) for minutes in (10, 15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880)]
STYLES: Mapping[str, Mapping[str, Any]] = {
    "succeeded": {"fg": "green"},
    "failed": {"fg": "red"},
    "lost": {"fg": "magenta"},
    "stopped": {"fg": "yellow"},
    "open": {"fg": "cyan"},
    "skipped": {"fg": "blue"},
    "faint": {"dim": True},
    "now": {"bold": True},
    "": {},
}


def chart(found: Timeline, where: Zone) -> list[str]:
    """Return the lines of the drawing, as wide as the margin, the slices and the line of now."""
    past = [each for each in found.slices if each.end <= found.now]
    coming = found.slices[len(past) :]
    top = max(max(each.enqueued, each.coming) for each in found.slices)
    bars = [
        *(_past(each, top) for each in past),
        [("┊", "now")] * _ROWS,
        *([(character, "faint") for character in _bar(each.coming, top)] for each in coming),
    ]
    rows = [[bar[height] for bar in bars] for height in reversed(range(_ROWS))]
    margins = [f"{short(top):>{MARGIN - 2}} ┤", *[f"{'│':>{MARGIN}}"] * (_ROWS - 1)]
    return [
        _head(found, where, len(past)),
        *(margin + _painted(row) for margin, row in zip(margins, rows, strict=True)),
        *_axis(found, where, len(past)),
        *_lanes(past, found.whole_from),
    ]


def short(number: int) -> str:
    """Return a number in at most six characters."""
    for least, size, unit in ((10**8, 10**6, "M"), (10**5, 10**3, "k")):
        if number >= least:
            return f"{number // size:,}{unit}"
    return f"{number:,}"


def _bar(value: int, top: int) -> str:
    """Return the characters of a bar from the bottom up. A value above 0 shows at least one eighth."""
    eighths = max(1, round(value * _ROWS * 8 / top)) if value else 0
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + _EIGHTHS[rest] * (rest > 0)).ljust(_ROWS)


def _past(found: Slice, top: int) -> list[Cell]:
    bar = _bar(found.enqueued, top)
    height = len(bar.rstrip())
    ends = list(itertools.accumulate(getattr(found, word) for word in _STACKED))
    return [
        (
            character,
            next((word for word, end in zip(_STACKED, ends, strict=True) if end * height > found.enqueued * n), ""),
        )
        for n, character in enumerate(bar)
    ]


def _head(found: Timeline, where: Zone, middle: int) -> str:
    label = f"now {found.now.astimezone(where.info):%H:%M %Z}"
    left = "jobs per " + {60: "hour", 1: "minute"}.get(minutes := found.step // timedelta(minutes=1), _length(minutes))
    return left.ljust(max(MARGIN + middle - len(label) // 2, len(left) + 2)) + click.style(label, **STYLES["now"])


def _length(minutes: int) -> str:
    return f"{minutes // 60} hours" if minutes % 60 == 0 else f"{minutes} minutes"


def _axis(found: Timeline, where: Zone, middle: int) -> tuple[str, str]:
    """Return the line under the bars, and the times below it."""
    width = len(found.slices) + 1
    line, below = ["─"] * width, [" "] * (width + MARGIN)
    line[middle] = "┴"
    free = 0
    for place, text in _labels(found, where):
        column = place + (place >= middle)
        at = MARGIN + column - len(text) // 2
        if free <= at and at + len(text) <= len(below):
            line[column] = "┬" if column != middle else "┼"
            below[at : at + len(text)] = text
            free = at + len(text) + 1
    return f"{'0 └':>{MARGIN}}" + "".join(line), "".join(below).rstrip()


def _labels(found: Timeline, where: Zone) -> Iterator[tuple[int, str]]:
    """Yield labels at round times of the zone, each with the index of its slice. A new day shows the date."""
    apart = next((each for each in _APART if each >= _LABEL * found.step), _APART[-1])
    before: datetime | None = None
    for place, each in enumerate(found.slices):
        wall = each.start.astimezone(where.info).replace(tzinfo=None)
        if before is None:
            before = wall - timedelta(microseconds=1)
        if each.start != found.now and _blocks(before, apart) != _blocks(wall, apart):
            yield place, f"{wall:%a %d}" if before.date() != wall.date() else f"{wall:%H:%M}"
        before = wall


def _blocks(wall: datetime, apart: timedelta) -> int:
    return (wall - wall.min) // apart


def _lanes(past: Sequence[Slice], whole_from: datetime | None) -> Iterator[str]:
    """Yield a lane for each outcome but success, and one for slices with incomplete data.

    A digit is the number in one slice; `+` means ten or more.
    """
    for word in _LANES:
        numbers = [getattr(each, word) for each in past]
        if any(numbers):
            marks = "".join(" " if not n else str(n) if n < 10 else "+" for n in numbers)  # noqa: PLR2004 (digits)
            yield click.style(f"{word:<{MARGIN}}{marks.rstrip()}", **STYLES[word])
    if whole_from:
        marks = "?" * sum(each.start < whole_from for each in past)
        yield click.style(f"{'partial':<{MARGIN}}{marks}", **STYLES["faint"])


def _painted(row: Sequence[Cell]) -> str:
    groups = itertools.groupby(row, key=lambda cell: cell[1] if cell[0].strip() else "")
    runs = [("".join(character for character, _ in cells), style) for style, cells in groups]
    return "".join(click.style(text, **STYLES[style]) if style else text for text, style in runs).rstrip()
