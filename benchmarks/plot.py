"""Plot the cost of a fire and of an idle pass against the number of schedules. Both axes are logarithmic."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.figures import Figures

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 460, 340, 64, 150, 44, 48
_STYLES = (
    ("#0b6e4f", ""),
    ("#c8553d", "6 3"),
    ("#3d5a80", "2 3"),
    ("#8e6c8a", "8 3 2 3"),
    ("#a68a00", "4 2"),
    ("#555555", "1 2"),
)


class Line(NamedTuple):
    """One contender: the unit cost for each number of schedules."""

    name: str
    points: Sequence[tuple[float, float]]


def growth(figures: Figures) -> str:
    """Return both plots side by side as one SVG, without a plot that has no figures."""
    alone = [each for each in figures if each.what == "fires per second" and each.at.get("queues") == 1 and each.median]
    fires = [(each.who, each.at["schedules"], 1e6 / each.median) for each in alone]
    idle = [(each.who, each.at["schedules"], each.median * 1000) for each in figures if each.what == "idle pass"]
    plots = [("A fire, all due at once: µs", lines(fires)), ("An idle pass: µs", lines(idle))]
    drawn = [_plot(title, found, n * (_WIDTH + _RIGHT)) for n, (title, found) in enumerate(plots) if found]
    width = len(drawn) * (_WIDTH + _RIGHT)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif"'
    white = f'<rect width="{width}" height="{_HEIGHT}" fill="#ffffff"/>'
    return f'{head} font-size="12">{white}{"".join(drawn)}</svg>\n'


def lines(points: Iterable[tuple[str, int | str, float]]) -> list[Line]:
    """Return the lines that have at least two points, in order of first appearance."""
    found: dict[str, list[tuple[float, float]]] = {}
    for who, schedules, cost in points:
        found.setdefault(who, []).append((float(schedules), cost))
    return [Line(who, sorted(each)) for who, each in found.items() if len(each) > 1]


class _Axes:
    """The axes of one plot, which turn values into coordinates."""

    def __init__(self, found: Sequence[Line]) -> None:
        self.xs = sorted({x for line in found for x, _ in line.points})
        ys = [y for line in found for _, y in line.points]
        self.low, self.high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)

    def x(self, x: float) -> float:
        first, last = math.log10(self.xs[0]), math.log10(self.xs[-1])
        return round(_LEFT + (math.log10(x) - first) / (last - first) * (_WIDTH - _LEFT), 1)

    def y(self, y: float) -> float:
        return round(_TOP + (self.high - math.log10(y)) / (self.high - self.low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    def drawn(self) -> Iterator[str]:
        for power in range(self.low, self.high + 1):
            y = self.y(10.0**power)
            yield f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH}" y2="{y}" stroke="#dddddd"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{10.0**power:,.10g}</text>'
        for x in self.xs:
            yield f'<text x="{self.x(x)}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{x:,.0f}</text>'
        yield f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">schedules</text>'


def _plot(title: str, found: Sequence[Line], shift: float) -> str:
    axes = _Axes(found)
    heading = f'<text x="{_LEFT}" y="24" font-size="14" font-weight="bold">{escape(title)}</text>'
    ends = _apart([axes.y(line.points[-1][1]) for line in found])
    curves = (
        _curve(line, axes, end, *_STYLES[n % len(_STYLES)])
        for n, (line, end) in enumerate(zip(found, ends, strict=True))
    )
    return f'<g transform="translate({shift} 0)">{heading}{"".join(axes.drawn())}{"".join(curves)}</g>'


def _curve(line: Line, axes: _Axes, end: float, colour: str, dashes: str) -> str:
    points = [(axes.x(x), axes.y(y)) for x, y in line.points]
    path = " ".join(f"{x},{y}" for x, y in points)
    drawn = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points)
    return f'{drawn}{dots}<text x="{points[-1][0] + 8}" y="{end + 4}" fill="{colour}">{escape(line.name)}</text>'


def _apart(heights: Sequence[float], least: float = 14) -> list[float]:
    """Return the heights, moved down just far enough that no two names overlap."""
    moved, last = list(heights), -math.inf
    for n in sorted(range(len(heights)), key=lambda n: heights[n]):
        last = moved[n] = max(heights[n], last + least)
    return moved
