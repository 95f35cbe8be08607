"""Draw a list of schedules as a table, with as many columns as fit the terminal and without cutting any text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from beat.cli import common_options, output
from beat.cli.render import sparkline
from beat.client.describe import instants, list_row
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from beat.client.listing import Listed
    from beat.client.schedule_info import Standing
    from beat.history.history import Fired
    from beat.timing.zones import Zone

_LEAST_NOTE = 30
_COLOURS = {
    "failed": "red", "lost": "magenta", "stopped": "yellow", "broken": "red", "paused": "yellow", "held": "yellow",
    "due": "yellow", "retired": "bright_black", "finished": "bright_black", "disabled": "bright_black",
}  # fmt: skip


class Shape(NamedTuple):
    """The columns and details of a table."""

    notes: bool = False
    times: bool = False
    """Whether to show times besides the distance from now, and the whole names of zones."""
    state: bool = False
    runs: int = 0
    rule: bool = True


_WITH_NOTES = (
    Shape(notes=True, times=True, state=True, runs=20),
    Shape(notes=True, times=True, state=True, runs=10),
    Shape(notes=True, times=True, state=True),
    Shape(notes=True, state=True, runs=10),
    Shape(notes=True, state=True),
    Shape(notes=True),
)
"""Shapes from the widest to the narrowest. Notes outlast the bars, because they say why a schedule fails or rests."""
_WITHOUT_NOTES = (
    Shape(times=True, state=True, runs=20),
    Shape(state=True, runs=20),
    Shape(state=True, runs=10),
    Shape(runs=10),
    Shape(runs=5),
    Shape(),
    Shape(rule=False),
)


def lines(rows: Sequence[Listed], now: datetime, default: Zone, *, reveal: bool = False) -> list[str]:
    """Return the lines of the table in the widest shape that fits the terminal, or with all columns for a pipe.

    Times are in the zone that all of these schedules share, or else in the `default` zone. The heading names the zone.
    """
    zones = {row.standing.tz for row in rows}
    where = zone(zones.pop()) if len(zones) == 1 else default
    signs, noted = sparkline.signs(), any(list_row.note(row.standing) for row in rows)
    shapes = (*_WITH_NOTES, *_WITHOUT_NOTES) if noted else _WITHOUT_NOTES
    for shape in shapes if output.is_terminal() else _WITH_NOTES[:1]:
        found = columns(rows, now, where, shape, signs, reveal=reveal)
        if not output.is_terminal() or _fits(found):
            break
    headings, cells = list(found), list(zip(*found.values(), strict=True))
    return list(output.laid_out(headings, cells, paint))


def columns(
    rows: Sequence[Listed], now: datetime, where: Zone, shape: Shape, signs: sparkline.Signs, *, reveal: bool = False
) -> dict[str, list[str]]:
    """Return the cells of each column by its heading, without empty columns."""
    known = [row.standing for row in rows]
    has_times = any(_has_time(each, now, shape) for each in known)
    zone_name = f" ({where.name if shape.times else instants.place(where)})" if has_times else ""
    found = {
        "id": [each.schedule_id for each in known],
        "schedule": [list_row.rule(each, whole=shape.times) for each in known] if shape.rule else [],
        f"next{zone_name}": [following(each, now, where, shape) for each in known],
        "last run": [last(row, now, shape) for row in rows],
        "state": [list_row.state(each) for each in known] if shape.state else [],
        "runs": [sparkline.spark(row.runs, signs, shape.runs) for row in rows],
        "note": [common_options.worded(list_row.note(each), reveal=reveal) for each in known] if shape.notes else [],
    }
    return {name: cells for name, cells in found.items() if any(cells)}


def _fits(found: Mapping[str, list[str]]) -> bool:
    widths = output.widths_of(list(found), list(zip(*found.values(), strict=True)))
    if "note" in found:  # its text is wrapped
        widths[-1] = min(widths[-1], _LEAST_NOTE)
    return output.width_of(widths) <= output.columns()


def paint(heading: str, text: str) -> str:
    """Return the text of a cell in a colour that repeats what it says."""
    heading = heading.partition(" (")[0]
    if heading == "runs":
        return sparkline.painted(text)
    colour = _COLOURS.get(text.partition(" ")[0].rstrip(",")) if heading in {"next", "last run", "state"} else None
    return click.style(text, fg=colour) if colour else text


def _has_time(known: Standing, now: datetime, shape: Shape) -> bool:
    """Return whether `following` shows a time of day, and not only the distance from now."""
    word, at = list_row.coming(known, now)
    return at is not None and (word == "paused" or (shape.times and word == "in"))


def following(known: Standing, now: datetime, where: Zone, shape: Shape) -> str:
    """Return how far away the next tick is, or why there is none."""
    word, at = list_row.coming(known, now)
    if word == "paused" and at:
        return f"paused until {instants.near(at, where, now)}"
    if word == "after":
        return f"after {known.definition['follows']}"
    if at is None:
        return word or ("" if shape.state or known.state == "active" else known.state)
    if word == "due":
        return f"due for {instants.span((now - at).total_seconds())}"
    when = f"{instants.near(at.replace(microsecond=0), where, now)}, " if shape.times else ""
    return f"{when}in {instants.span((at - now).total_seconds())}{', moved' if known.deferred_by else ''}"


def last(row: Listed, now: datetime, shape: Shape) -> str:
    """Return how the newest run ended, or its state and for how long it has lasted."""
    run = row.last
    if run is None:
        before = row.standing.last_run
        return f"{instants.span((now - before).total_seconds())} ago" if before and before <= now else ""
    if run.state not in list_row.ENDED:
        return _going(run, now)
    took = f" {instants.span(run.duration)}" if run.duration is not None else ""
    ago = instants.span(max(0, (now - (run.ended_at or run.at)).total_seconds()))
    return f"{run.state}{took}{f', {ago} ago' if shape.times else ''}"


def _going(run: Fired, now: datetime) -> str:
    word, since = list_row.going(run)
    return f"{word} {instants.span(max(0, (now - since).total_seconds()))}" if since else word
