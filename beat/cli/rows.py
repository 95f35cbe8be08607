"""A list of schedules for people: as many columns as there is room for, and nothing that is cut short."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from beat.cli import output, spark
from beat.words import instants
from beat.words import rows as words
from beat.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from beat.client.listing import Listed
    from beat.client.standing import Standing
    from beat.history import Fired

_LEAST_NOTE = 30
_COLOURS = {
    "failed": "red", "lost": "magenta", "stopped": "yellow", "broken": "red", "paused": "yellow", "held": "yellow",
    "due": "yellow", "retired": "bright_black", "finished": "bright_black", "disabled": "bright_black",
}  # fmt: skip


class Shape(NamedTuple):
    """What there is room for."""

    notes: bool = False
    times: bool = False
    """Not only how far away a tick or a run is, also when; and the whole names of zones."""
    state: bool = False
    runs: int = 0
    rule: bool = True


SHAPES = (
    Shape(notes=True, times=True, state=True, runs=20),
    Shape(times=True, state=True, runs=20),
    Shape(state=True, runs=20),
    Shape(state=True, runs=10),
    Shape(runs=10),
    Shape(runs=5),
    Shape(),
    Shape(rule=False),
)
"""From the widest to the narrowest; what is piped has the widest."""


def lines(rows: Sequence[Listed], now: datetime) -> list[str]:
    """The table, in the widest shape that fits."""
    signs, shapes = spark.signs(), SHAPES if output.is_terminal() else SHAPES[:1]
    for shape in shapes:
        told = columns(rows, now, shape, signs)
        if shape is shapes[-1] or _fits(told):
            break
    headings, cells = list(told), list(zip(*told.values(), strict=True))
    return list(output.laid_out(headings, cells, paint))


def columns(rows: Sequence[Listed], now: datetime, shape: Shape, signs: spark.Signs) -> dict[str, list[str]]:
    """By their headings; those that say nothing are left out."""
    known = [each.standing for each in rows]
    told = {
        "id": [each.schedule_id for each in known],
        "schedule": [words.rule(each, whole=shape.times) for each in known] if shape.rule else [],
        "next": [following(each, now, shape) for each in known],
        "last run": [last(each, now, shape) for each in rows],
        "state": [words.state(each) for each in known] if shape.state else [],
        "runs": [spark.spark(each.runs, signs, shape.runs) for each in rows],
        "note": [words.note(each) for each in known] if shape.notes else [],
    }
    return {name: cells for name, cells in told.items() if any(cells)}


def _fits(told: Mapping[str, list[str]]) -> bool:
    widths = output.widths_of(list(told), list(zip(*told.values(), strict=True)))
    if "note" in told:  # which goes on below
        widths[-1] = min(widths[-1], _LEAST_NOTE)
    return output.width_of(widths) <= output.columns()


def paint(heading: str, text: str) -> str:
    """Colours that repeat what the words say."""
    if heading == "runs":
        return spark.painted(text)
    colour = _COLOURS.get(text.partition(" ")[0].rstrip(",")) if heading in {"next", "last run", "state"} else None
    return click.style(text, fg=colour) if colour else text


def following(known: Standing, now: datetime, shape: Shape) -> str:
    """How far away the next tick is, or why there is none."""
    where, (word, at) = zone(known.tz), words.coming(known, now)
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
    """How the newest run ended, or how far it is."""
    run = row.last
    if run is None:
        before = row.standing.last_run
        return f"{instants.span((now - before).total_seconds())} ago" if before and before <= now else ""
    if run.state not in words.ENDED:
        return _going(run, now)
    took = f" {instants.span(run.duration)}" if run.duration is not None else ""
    ago = instants.span(max(0, (now - (run.ended_at or run.at)).total_seconds()))
    return f"{run.state}{took}{f', {ago} ago' if shape.times else ''}"


def _going(run: Fired, now: datetime) -> str:
    word, since = words.going(run)
    return f"{word} {instants.span(max(0, (now - since).total_seconds()))}" if since else word
