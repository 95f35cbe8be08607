"""Format the figures of a run for the terminal, the docs and JSON: the budgets first, then every figure."""

from __future__ import annotations

import itertools
import os
import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beat._version import __version__
from beat.dev import embedded
from beat.timing import clock
from benchmarks.budgets import budgets
from benchmarks.figures import Figure, Figures, ratio
from benchmarks.peers.contender import PINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.budgets import Budget

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"
_SIGNIFICANT = 3


def circumstances() -> str:
    """Return the date, the machine and the versions, in one line."""
    peers = ", ".join(f"{name} {pin}" for pins in PINS.values() for name, pin in pins.items() if name != "redis")
    ours = ", ".join(f"{name} {version(name)}" for name in ("rq", "redis", "croniter"))
    server, parser = embedded.candidates()[0], "with" if find_spec("hiredis") else "without"
    return (
        f"{clock.now().date()}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores of {_processor()}; "
        f"Python {platform.python_version()}; {server.name} {server.version}, AOF everysec; beat {__version__}, "
        f"{ours}, {parser} hiredis; beside it {peers}"
    )


def _processor() -> str:
    """Return the processor's model name, if the system provides it."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "an unnamed processor"
    return next((line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")), "?")


def number(value: float) -> str:
    """Format a number with three significant digits: `0.0123`, `4.56`, `12,300`."""
    if abs(value) >= 10**_SIGNIFICANT:
        return f"{value:,.0f}"
    return f"{float(f'{value:.{_SIGNIFICANT}g}'):g}"


def verdicts(figures: Figures) -> list[list[str]]:
    """Return the table of the budgets."""
    rows = [["met", "budget", "allowed", "measured"]]
    for budget in budgets(figures):
        word = {True: "yes", False: "**NO**", None: "not measured"}[budget.met]
        rows.append([word, budget.what, f"{budget.sense} {_with(budget.allowed, budget.unit)}", _measured(budget)])
    return rows


def tables(figures: Figures, titles: Mapping[str, str]) -> Iterable[tuple[str, list[list[str]]]]:
    """Yield the title of each suite, and a table with one row per figure; the ratio to beat is the first column."""
    for suite, title in titles.items():
        found = list(figures.of(suite))
        if found:
            rows = [["beside beat", "what", "who", "at", "median", "spread", "runs"]]
            yield title, rows + [_row(each, figures) for each in found]


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Format a table in Markdown."""
    header, *rest = rows
    lines = [header, ["---"] * len(header), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Format a table for a terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def page(before: str, figures: Figures, titles: Mapping[str, str]) -> str:
    """Return the page with its figures replaced by these."""
    head, _, rest = before.partition(BEGIN)
    tail = rest.partition(END)[2]
    parts = [f"Measured: {circumstances()}.", "## The budgets", markdown(verdicts(figures))]
    parts += itertools.chain.from_iterable((f"## {title}", markdown(rows)) for title, rows in tables(figures, titles))
    return f"{head}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{tail}"


def document(figures: Figures) -> dict[str, Any]:
    """Return the budgets and figures as JSON for other programs."""
    return {
        "schema_version": 1,
        "circumstances": circumstances(),
        "budgets": [{**budget._asdict(), "met": budget.met} for budget in budgets(figures)],
        "figures": [
            {
                "suite": each.suite, "what": each.what, "who": each.who, "at": dict(each.at), "unit": each.unit,
                "median": each.median, "spread": round(each.spread, 3), "values": list(each.values),
            }
            for each in figures
        ],
    }  # fmt: skip


def read(document: Mapping[str, Any]) -> Figures:
    """Read the figures from a document."""
    names = ("suite", "what", "unit", "who", "at")
    return Figures(Figure(values=tuple(each["values"]), **{n: each[n] for n in names}) for each in document["figures"])


def _row(figure: Figure, figures: Figures) -> list[str]:
    beside = None if figure.who == "beat" else ratio(figure, figures.find(figure.what, figure.at))
    times = "" if beside is None else f"{number(beside)} ×"
    where = ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{value}" for name, value in figure.at.items()
    )
    spread = f"± {figure.spread:.0%}" if len(figure.known) > 1 else ""
    return [times, figure.what, figure.who, where, _with(figure.median, figure.unit), spread, str(len(figure.known))]


def _measured(budget: Budget) -> str:
    return "" if budget.measured is None else _with(budget.measured, budget.unit)


def _with(value: float, unit: str) -> str:
    return f"{number(value)} {unit}".strip()
