"""Draw a scene as an SVG for light and dark mode, and describe it in a sentence as its alternative text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from docs.pictures.stage import Row, Run, Scene, Tick

_WIDTH, _PAD, _NAMES = 800, 32, 108
_TOP, _LANE, _BAR, _LEGEND, _SPAN = 46, 26, 20, 44, 20
_LINE, _BUS, _BARS = 14, 34, 44
"""The distances from the top of a row to its line, and from the line to the bend of threads and to the first bar."""
_DOT, _BEND, _ROOM = 8, 6, 21
_WORDS = {
    "enqueued": "enqueued",
    "caught up": "enqueued late, to catch up",
    "waited": "waited, then enqueued",
    "waits": "waits",
    "skipped": "skipped",
    "none": "no tick",
}
"""The text of the legend for each decision on a tick."""

# Each colour as it is by day and by night: the ground, faint lines, quiet words, words, then what
# becomes of a tick, and its run.
_COLOURS = {
    "ground": ("#ffffff", "#0d1117"),
    "edge": ("#d1d9e0", "#3d444d"),
    "faint": ("#eaeef2", "#21262d"),
    "quiet": ("#59636e", "#9198a1"),
    "words": ("#1f2328", "#f0f6fc"),
    "enqueued": ("#1a7f37", "#3fb950"),
    "enqueued run": ("#dafbe1", "#12311e"),
    "caught-up": ("#0969da", "#4493f8"),
    "caught-up run": ("#ddf4ff", "#10284a"),
    "waited": ("#9a6700", "#d29922"),
    "waited run": ("#fff3c4", "#33270c"),
    "stopped": ("#cf222e", "#f85149"),
}


def svg(scene: Scene, rows: list[Row]) -> str:
    """Return the picture as an SVG."""
    return _Picture(scene, rows).text()


def sentence(scene: Scene, rows: list[Row]) -> str:
    """Describe the picture in words."""
    told = []
    for row in rows:
        named = f"{row.id}: " if len(rows) > 1 else ""
        told.append(named + ", ".join(_stretches(row.ticks, scene)))
        if stopped := [tick.at.strftime(scene.says) for tick, run in row.runs if run.stopped]:
            told.append(f"the runs of {stopped[0]} to {stopped[-1]} are stopped")
        if failed := [_when(tick.at, scene) for tick, run in row.runs if run.failed]:
            told.append(f"the runs of {_listed(failed)} fail")
    return "; ".join(told)


def _stretches(ticks: Iterable[Tick], scene: Scene) -> Iterator[str]:
    """Yield ticks with the same decision as one phrase, such as `09:01 to 09:02 skipped (overlap)`."""
    found: list[tuple[str, list[Tick]]] = []
    for tick in ticks:
        became = f"{tick.became} ({tick.reason.replace('_', ' ')})" if tick.reason else tick.became
        became = became.replace("none", "no tick")
        if tick.fired and tick.became == "enqueued" and tick.fired > tick.at:
            became += f" {(tick.fired - tick.at).total_seconds():.0f} s later"
        if not found or found[-1][0] != became:
            found.append((became, []))
        found[-1][1].append(tick)
    for became, of in found:
        if scene.page == "policies":
            ends = [_when(each.at, scene) for each in (of[0], of[-1])]
            yield f"{' to '.join(dict.fromkeys(ends))} {became}"
        else:  # nobody could know what lies between them
            yield f"{_listed([_when(each.at, scene) for each in of])} {became}"


def _listed(words: list[str]) -> str:
    """Join words to a list: `09:00, 09:01 and 09:02`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _when(at: datetime, scene: Scene) -> str:
    return at.strftime(f"{scene.says}:%S" if at.second else scene.says)


class _Picture:
    def __init__(self, scene: Scene, rows: list[Row]) -> None:
        self._scene, self._rows = scene, rows
        self._left = _PAD + (_NAMES if len(rows) > 1 else 0)
        self._lanes = [_lanes(row) for row in rows]
        self._alone = scene.alone
        heights = [self._height(lanes) for lanes in self._lanes]
        self._rows_end = _TOP + sum(heights) + len(scene.spans) * _SPAN
        self._lines = [_TOP + sum(heights[:n]) + _LINE for n in range(len(rows))]
        self._parts: list[str] = []

    def _height(self, lanes: list[list[tuple[Tick, Run]]]) -> int:
        if not self._scene.shows_runs:
            return _LINE + 24
        return _LINE + len(lanes) * _LANE + (_BARS if lanes else _BUS)

    def text(self) -> str:
        self._ground()
        for row, lanes, y in zip(self._rows, self._lanes, self._lines, strict=True):
            self._row(row, lanes if self._scene.shows_runs else [], y)
        self._legend()
        height, words = self._rows_end + _LEGEND, sentence(self._scene, self._rows)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img">'
        )
        card = f'<rect class="ground" x=".5" y=".5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>'
        return "\n".join([head, f"<title>{escape(words)}</title>", _style(), card, *self._parts, "</svg>", ""])

    # --- what lies behind --------------------------------------------------------------------------------------------

    def _ground(self) -> None:
        scene, at = self._scene, self._scene.start
        while at <= scene.end:
            x = self._x(at)
            self._add(f'<path class="faint" d="M{x} {_TOP - 10}V{self._rows_end}"/>')
            self._text(x, _TOP - 20, at.strftime(scene.says), "quiet")
            at += scene.every
        if scene.away:
            left, right = (self._x(each) for each in scene.away)
            self._add(
                f'<rect class="away" x="{left}" y="{_TOP - 10}" width="{_n(right - left)}" '
                f'height="{self._rows_end - _TOP + 10}" rx="4"/>'
            )
            self._text(left + 8, self._rows_end - 8, "no beat is running", "quiet small", anchor="start")
        for n, (name, (begin, end)) in enumerate(scene.spans.items()):
            left, right, y = self._x(begin), self._x(end), self._rows_end - 8 - _SPAN * n
            self._add(f'<path class="mark" d="M{left} {_TOP - 10}V{y + 4}M{right} {_TOP - 10}V{y + 4}"/>')
            self._add(
                f'<path class="line" d="M{left} {y}H{right}M{left + 4} {y - 3}l-4 3l4 3M{right - 4} {y - 3}l4 3l-4 3"/>'
            )
            self._text(_n(left - 8), y + 4, name, "words small mono", anchor="end")

    # --- a schedule --------------------------------------------------------------------------------------------------

    def _row(self, row: Row, lanes: list[list[tuple[Tick, Run]]], y: int) -> None:
        if not self._alone:
            rule = self._rule(row)
            self._text(_PAD - 12, y - 2 if rule else y + 4, row.id, "words mono", anchor="start")
            self._text(_PAD - 12, y + 12, rule, "quiet small mono", anchor="start")
        self._add(f'<path class="line" d="M{self._left - 12} {y}H{_WIDTH - _PAD + 12}"/>')
        runs = [(tick, run, y + _BARS + n * _LANE) for n, lane in enumerate(lanes) for tick, run in lane]
        for tick, run, top in runs:
            self._thread(tick, run, y, top)
        for tick, run, top in runs:  # in front of the threads
            self._run(tick, run, top)
        for tick in row.ticks:
            self._tick(tick, y)

    def _rule(self, row: Row) -> str:
        said = self._scene.schedules.get(row.id)
        if said is None:
            return "a queue"
        for name in ("follows", "requires"):
            if name in said:
                return f"{name} {said[name]}"
        return str(said.get("cron", ""))

    def _thread(self, tick: Tick, run: Run, y: int, top: int) -> None:
        """Draw the thread from a tick to its run."""
        begin, end, kind = self._x(tick.at), self._x(run.start), _kind(tick)
        if end - begin < _BEND * 2:
            self._add(f'<path class="thread {kind}" d="M{begin} {y + _DOT}L{end} {top + _BEND}"/>')
        else:
            bend = f"V{y + _BUS - _BEND}q0 {_BEND} {_BEND} {_BEND}"
            way = f"M{begin} {y + _DOT}{bend}H{_n(end + _BEND)}V{top}"
            self._add(f'<path class="thread {kind} dashed" d="{way}"/>')

    def _run(self, tick: Tick, run: Run, top: int) -> None:
        left, right, kind = self._x(run.start), self._x(run.end), _kind(tick)
        width = _n(max(right - left, 3))
        self._add(f'<rect class="run {kind}" x="{left}" y="{top}" width="{width}" height="{_BAR}" rx="4"/>')
        if width >= _ROOM:
            says = f"{tick.at:%H:%M}" if width >= 2 * _ROOM else f":{tick.at:%M}"
            self._text(left + width / 2, top + 14, says, "words small")
        if run.stopped or run.failed:
            self._add(f'<path class="cut" d="M{right} {top - 3}V{top + _BAR + 3}"/>')

    def _tick(self, tick: Tick, y: int) -> None:
        x, kind = self._x(tick.at), _kind(tick)
        if tick.fired and not self._scene.shows_runs and (due := self._x(tick.fired)) > x:
            self._add(f'<path class="nominal" d="M{x} {y - 8}V{y + 8}M{x} {y}H{due}"/>')
            x = due
        self._add(_dot(x, y, kind))
        if tick.reason:
            self._text(x, y + 24, tick.reason.replace("_", " "), "quiet small")

    # --- words -------------------------------------------------------------------------------------------------------

    def _legend(self) -> None:
        y, x = self._rows_end + _LEGEND // 2, float(self._left - 4)
        self._add(f'<path class="faint" d="M1 {self._rows_end}H{_WIDTH - 1}"/>')
        for sample, room, words in self._samples():
            self._add(f'<g transform="translate({_n(x)} {y})">{sample}</g>')
            self._text(x + room, y + 4, words, "words", anchor="start")
            x += room + 7 * len(words) + 22

    def _samples(self) -> Iterator[tuple[str, int, str]]:
        """Yield the sign, the width and the meaning of each entry of the legend."""
        ticks = [tick for row in self._rows for tick in row.ticks]
        late = not self._scene.shows_runs and any(tick.fired and tick.fired > tick.at for tick in ticks)
        if late:
            yield '<path class="nominal" d="M0 -8V8M0 0H8"/>', 14, "its tick, next_run"
        for became in (each for each in _WORDS if any(tick.became == each for tick in ticks)):
            yield _dot(0, 0, became.replace(" ", "-")), 14, _WORDS[became] + (", at due_at" if late else "")
        if self._scene.shows_runs and any(self._lanes):
            bar = '<rect class="run enqueued" x="-8" y="-9" width="28" height="18" rx="4"/>'
            yield (
                f'{bar}<text class="words small" x="6" y="4" text-anchor="middle">:00</text>',
                27,
                "a run, and its tick",
            )
        if any(run.stopped for row in self._rows for _, run in row.runs):
            yield '<path class="cut" d="M0 -9V9"/>', 8, "stopped"
        if any(run.failed for row in self._rows for _, run in row.runs):
            yield '<path class="cut" d="M0 -9V9"/>', 8, "failed"

    def _text(self, x: float, y: float, words: str, kind: str, anchor: str = "middle") -> None:
        self._add(f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(words)}</text>')

    def _x(self, at: datetime) -> float:
        return _n(self._left + (at - self._scene.start) / self._scene.lasts * (_WIDTH - _PAD - self._left))

    def _add(self, part: str) -> None:
        self._parts.append(part)


def _kind(tick: Tick) -> str:
    return tick.became.replace(" ", "-")


def _lanes(row: Row) -> list[list[tuple[Tick, Run]]]:
    """Distribute the runs over lanes, so that the runs of a lane do not overlap."""
    lanes: list[list[tuple[Tick, Run]]] = []
    for tick, run in sorted(row.runs, key=lambda each: each[1].start):
        free = next((lane for lane in lanes if lane[-1][1].end <= run.start), None)
        if free is None:
            lanes.append(free := [])
        free.append((tick, run))
    return lanes


def _dot(x: float, y: float, kind: str) -> str:
    if kind == "none":
        return f'<circle class="none" cx="{x}" cy="{y}" r="3"/>'
    circle = f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="{_DOT}"/>'
    signs = {
        "skipped": f'<path class="cross" d="M{_n(x - 3.2)} {_n(y - 3.2)}l6.4 6.4m0 -6.4l-6.4 6.4"/>',
        "waited": f'<path class="sign" d="M{x} {_n(y - 4)}v4.4l3 2"/>',
        "waits": f'<path class="hand" d="M{x} {_n(y - 4)}v4.4l3 2"/>',
        "caught-up": f'<path class="sign" d="M{_n(x - 3.6)} {_n(y - 3)}l3.4 3l-3.4 3m4 -6l3.4 3l-3.4 3"/>',
        "enqueued": f'<path class="sign" d="M{_n(x - 3.4)} {_n(y + 0.2)}l2.5 2.6l4.4 -5"/>',
    }
    return circle + signs[kind]


def _style() -> str:
    day, night = (_rules({name: each[n] for name, each in _COLOURS.items()}) for n in (0, 1))
    fixed = (
        'text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}'
        ".small{font-size:10.5px}.mono{font-family:ui-monospace,SFMono-Regular,Menlo,monospace}"
        "path{fill:none;stroke-linecap:round;stroke-linejoin:round}.line{stroke-width:1.5}.thread{stroke-width:1.5}"
        ".dashed,.mark{stroke-dasharray:3 4}.dot{stroke-width:1.5}.sign,.cross,.hand{stroke-width:1.6}"
        ".cut{stroke-width:3}.run{stroke-width:1.2}.away{fill-opacity:.09}.nominal{stroke-width:1.5}"
    )
    return f"<style>{fixed}{day}@media(prefers-color-scheme:dark){{{night}}}</style>"


def _rules(of: dict[str, str]) -> str:
    ground, quiet, words = of["ground"], of["quiet"], of["words"]
    rules = {
        "text.words": f"fill:{words}",
        "text.quiet": f"fill:{quiet}",
        "rect.ground": f"fill:{ground};stroke:{of['edge']}",
        ".faint": f"stroke:{of['faint']}",
        ".line,.nominal,.mark": f"stroke:{quiet}",
        ".away": f"fill:{words}",
        ".sign": f"stroke:{ground}",
        ".cross": f"stroke:{quiet}",
        ".hand": f"stroke:{of['waited']}",
        ".cut": f"stroke:{of['stopped']}",
        ".none": f"fill:{quiet}",
        ".dot.skipped": f"fill:{ground};stroke:{quiet}",
        ".dot.waits": f"fill:{ground};stroke:{of['waited']}",
    }
    for kind in ("enqueued", "caught-up", "waited"):
        rules[f".dot.{kind}"] = f"fill:{of[kind]};stroke:{of[kind]}"
        rules[f".run.{kind}"] = f"fill:{of[f'{kind} run']};stroke:{of[kind]}"
        rules[f".thread.{kind}"] = f"stroke:{of[kind]}"
    return "".join(f"{name}{{{rule}}}" for name, rule in rules.items())


def _n(number: float) -> float:
    """Round to one decimal place, and drop the decimal if it is 0."""
    rounded = round(number, 1)
    return int(rounded) if rounded == int(rounded) else rounded
