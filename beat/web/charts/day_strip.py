"""Draw the strip of a day: past ticks by outcome to the left of now, and coming ticks to the right.

Horizontal positions are in per cent and vertical ones in pixels, so the strip fills its width and its text is never
scaled. Every number above 0 is visible. Past and future have one scale. If one slice dwarfs the others, heights are
square roots, and the legend says so.
"""

from __future__ import annotations

import math
import statistics
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from beat.client.describe import instants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from beat.client.timeline import Slice, Timeline
    from beat.timing.zones import Zone

STACKED = ("failed", "lost", "stopped", "open", "succeeded", "skipped")
"""The outcomes from the foot of a bar upwards. The worst come first, because they stand out there."""
_OTHERS = tuple(word for word in STACKED if word != "succeeded")
_TOP, _BARS, _FOOT = 26, 92, 20
_AXIS = _TOP + _BARS
_HEIGHT = _AXIS + _FOOT
_LEAST = 3.0  # pixels
_DWARFED = 8  # times the median of the past or of the future; if one slice is higher, heights are square roots
_QUARTER = timedelta(minutes=15)
_EVERY = (12, 6, 3)  # hours between labels, from narrow to wide strips
_MARKED, _APART = 5, 4.0  # maximum number of marked pile-ups, and the minimum distance between them in per cent
_EDGE = 2.5


class Hour(NamedTuple):
    """A row of the table with the same numbers."""

    start: datetime
    counts: dict[str, int]
    """Numbers by outcome and `coming`, without zeros."""


def strip(found: Timeline, where: Zone) -> Markup:
    """Return the drawing, labelled with the hours of the zone."""
    scale = Scale.of(found.slices)
    across = _Across(found)
    parts = [
        *_hours(found, across, where),
        *(_bar(each, scale, across, where) for each in found.slices if _total(each)),
        *_piles(found, across, where),
        _now(found, across, where),
    ]
    return Markup(
        '<svg class="strip" role="img" width="100%" height="{}" aria-label="{}">'
        '<line class="axis" x1="0" x2="100%" y1="{}" y2="{}"/>{}</svg>'
    ).format(_HEIGHT, words(found, where), _AXIS, _AXIS, Markup("").join(parts))


def words(found: Timeline, where: Zone) -> str:
    """Describe the drawing in words."""
    told = ", ".join(f"{number:,} {word}" for word, number in sums(found).items() if word != "coming")
    first, last = (instants.local(edge, where) for edge in (found.slices[0].start, found.slices[-1].end))
    piles = f"; pile-ups: {len(found.pile_ups) + found.more_pile_ups:,}" if found.pile_ups else ""
    coming = sums(found).get("coming", 0)
    return f"From {first} to {last} {where.name}. So far: {told or 'nothing'}. To come: {coming:,} ticks{piles}."


def sums(found: Timeline) -> dict[str, int]:
    """Return the totals by outcome and `coming`, without zeros."""
    made = {word: sum(getattr(each, word) for each in found.slices) for word in ("succeeded", *_OTHERS, "coming")}
    return {word: number for word, number in made.items() if number}


def hours(found: Timeline, where: Zone) -> list[Hour]:
    """Return the numbers as rows, one for each hour of the zone that has any."""
    made: dict[datetime, dict[str, int]] = {}
    for each in found.slices:
        own = instants.there(each.start, where)
        begun = timedelta(minutes=own.minute, seconds=own.second, microseconds=own.microsecond)
        counts = made.setdefault(each.start - begun, {})  # not the local hour, which occurs twice when DST ends
        for word in (*STACKED, "coming"):
            if number := getattr(each, word):
                counts[word] = counts.get(word, 0) + number
    return [Hour(instants.there(start, where), counts) for start, counts in made.items() if counts]


class Scale(NamedTuple):
    """The scale of heights for both sides of now."""

    highest: int
    """The number that has the full height."""
    roots: bool
    """Whether heights are square roots."""

    @classmethod
    def of(cls, slices: Sequence[Slice]) -> Scale:
        """Return the scale on which all these slices can be compared."""
        sides = [
            [number for each in slices if (number := each.enqueued + each.skipped)],
            [each.coming for each in slices if each.coming],
        ]
        highest = max((number for side in sides for number in side), default=0)
        return cls(highest, any(highest > _DWARFED * statistics.median(side) for side in sides if side))

    @property
    def words(self) -> str:
        """Say how many ticks the highest bar stands for; empty if there are no bars."""
        return f"the highest bar is {self.highest:,}" if self.highest else ""

    def height(self, number: int) -> float:
        """Return the height of a number in pixels."""
        if not number:
            return 0.0
        share = number / self.highest
        return max(_LEAST, _BARS * (math.sqrt(share) if self.roots else share))


class _Across:
    """The horizontal positions of instants, in per cent."""

    def __init__(self, found: Timeline) -> None:
        self.start, self.end = found.slices[0].start, found.slices[-1].end

    def at(self, instant: datetime) -> float:
        return round(100 * ((instant - self.start) / (self.end - self.start)), 3)


def _total(each: Slice) -> int:
    return each.enqueued + each.skipped + each.coming


def _bar(each: Slice, scale: Scale, across: _Across, where: Zone) -> Markup:
    left = across.at(each.start)
    width = round(across.at(each.end) - left, 3)
    if each.coming:
        high = scale.height(each.coming)
        rects = [_rect(left, width, _AXIS - high, high, Markup('class="f-coming"'))]
    else:
        rects, foot = [], float(_AXIS)
        for word, high in _stack(each, scale.height(_total(each))):
            fill = Markup('class="f-succeeded"') if word == "succeeded" else Markup('fill="url(#p-{})"').format(word)
            rects.append(_rect(left, width, foot - high, high, fill))
            foot -= high
    hit = _rect(left, width, _TOP, _BARS, Markup('class="hit"'))
    return Markup("<g><title>{}</title>{}{}</g>").format(_title(each, where), hit, Markup("").join(rects))


def _stack(each: Slice, high: float) -> Iterator[tuple[str, float]]:
    """Yield the parts of a bar from its foot up. The largest shrinks so that every other part is visible."""
    numbers = {word: number for word in STACKED if (number := getattr(each, word))}
    total, largest = sum(numbers.values()), max(numbers, key=lambda word: numbers[word])
    heights = {word: max(_LEAST, high * number / total) for word, number in numbers.items()}
    rest = high - sum(size for word, size in heights.items() if word != largest)
    heights[largest] = max(_LEAST, rest)
    yield from heights.items()


def _rect(left: float, width: float, top: float, high: float, fill: Markup) -> Markup:
    return Markup('<rect x="{}%" y="{}" width="{}%" height="{}" {}/>').format(
        left, round(top, 1), width, round(high, 1), fill
    )


def _title(each: Slice, where: Zone) -> str:
    begin, end = (f"{instants.there(edge, where):%H:%M}" for edge in (each.start, each.end))
    told = [f"{number:,} {word}" for word in STACKED[::-1] if (number := getattr(each, word))]
    told += [f"{each.coming:,} to come"] if each.coming else []
    return f"{instants.there(each.start, where):%a} {begin} to {end}: {', '.join(told)}"


def _hours(found: Timeline, across: _Across, where: Zone) -> Iterator[Markup]:
    """Yield marks at full hours of the zone; midnight is labelled with its day."""
    at = found.slices[0].start.replace(minute=0, second=0, microsecond=0)
    while at < across.end:
        own, place = instants.there(at, where), across.at(at)
        if not own.minute and own.hour % _EVERY[-1] == 0 and _EDGE < place < 100 - _EDGE:
            text = f"{own:%a %d}" if not own.hour else f"{own:%H:%M}"
            apart = next(each for each in _EVERY if own.hour % each == 0)
            yield Markup(
                '<g class="{}"><line x1="{}%" x2="{}%" y1="{}" y2="{}"/>'
                '<text x="{}%" y="{}" text-anchor="middle">{}</text></g>'
            ).format(f"hour h{apart}", place, place, _TOP, _AXIS + 4, place, _HEIGHT - 4, text)
        at += _QUARTER


def _piles(found: Timeline, across: _Across, where: Zone) -> Iterator[Markup]:
    """Yield marks above the largest pile-ups, as far as there is room."""
    taken: list[float] = []
    for each in found.pile_ups[:_MARKED]:
        place = across.at(each.at)
        if not _EDGE < place < 100 - _EDGE or any(abs(place - other) < _APART for other in taken):
            continue
        taken.append(place)
        title = f"{instants.there(each.at, where):%a %H:%M}: {each.schedules:,} schedules are due at once"
        yield Markup(
            '<g class="pile"><title>{}</title><text x="{}%" y="{}" text-anchor="middle">▾<tspan>{}</tspan></text></g>'
        ).format(title, place, _TOP - 4, f"{each.schedules:,}")


def _now(found: Timeline, across: _Across, where: Zone) -> Markup:
    place = across.at(found.now)
    label = f"now {instants.there(found.now, where):%H:%M}"
    return Markup(
        '<g class="now"><line x1="{}%" x2="{}%" y1="{}" y2="{}"/>'
        '<text x="{}%" y="{}" text-anchor="middle">{}</text></g>'
    ).format(place, place, _TOP - 10, _AXIS, place, _TOP - 13, label)
