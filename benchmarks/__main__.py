"""beat beside its peers and beside what Redis can do: every figure in one run, ratios first.

    python -m benchmarks [--quick] [--only fires,idle] [--json FILE] [--docs]

With `--only` and `--docs`, the page keeps its figures of the other suites. Ends with 1 when a budget that was measured
is not met.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import plot, report
from benchmarks.budgets import budgets
from benchmarks.figures import Figures, Scale
from benchmarks.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

SUITES = {
    "fires": (1030, 36), "idle": (300, 6), "lateness": (600, 14), "crowd": (200, 12), "many": (120, 6),
    "outcomes": (120, 10), "parts": (30, 4), "takeover": (90, 8), "policies": (560, 37), "commands": (20, 2),
    "metrics": (60, 8), "web": (60, 8),
}  # fmt: skip
"""About how many seconds each suite takes: at full scale, and with `--quick`."""
TOO_LONG = {"policies"}
"""Suites that `--quick` skips unless you name them, because they mean nothing with fewer schedules."""
DOCS = Path("docs/explanation")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    progress = Progress({name: SUITES[name][options.quick] for name in options.only})
    figures, titles = Figures(), dict[str, str]()
    for name in options.only:
        titles[name] = measure(name, Scale(quick=options.quick), figures, progress)
    print(f"{report.circumstances()}\n\n{report.aligned(report.verdicts(figures))}\n")
    for title, rows in report.tables(figures, titles):
        print(f"{title}\n\n{report.aligned(rows)}\n")
    if options.json:
        options.json.write_text(written(figures), encoding="utf-8")
    if options.docs:
        figures, titles = beside(figures, titles, DOCS / "performance.json")
        page = DOCS / "performance.md"
        page.write_text(report.page(page.read_text(encoding="utf-8"), figures, titles), encoding="utf-8")
        (DOCS / "performance.json").write_text(written(figures), encoding="utf-8")
        (DOCS / "growth.svg").write_text(plot.growth(figures), encoding="utf-8")
    return int(any(budget.met is False for budget in budgets(figures)))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, without policies: under two minutes")
    parser.add_argument("--only", type=chosen, metavar=",".join(SUITES))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as one JSON document")
    parser.add_argument("--docs", action="store_true", help=f"write page, JSON and plot into {DOCS}")
    options = parser.parse_args(arguments)
    options.only = options.only or [name for name in SUITES if not options.quick or name not in TOO_LONG]
    return options


def chosen(names: str) -> list[str]:
    if unknown := [name for name in names.split(",") if name not in SUITES]:
        raise argparse.ArgumentTypeError(f"there is no suite {unknown[0]!r}: choose among {', '.join(SUITES)}")
    return names.split(",")


def measure(name: str, scale: Scale, figures: Figures, progress: Progress) -> str:
    """Run a suite, add its figures, and return its title."""
    suite: Any = importlib.import_module(f"benchmarks.suites.{name}")
    progress.begin(name, suite.TITLE)
    for figure in suite.run(scale, progress.say):
        figures.append(figure)
        at = ", ".join(f"{key} {value}" for key, value in figure.at.items())
        progress.write(f"   {figure.who}: {figure.what} {report.number(figure.median)} {figure.unit} ({at})")
    progress.end()
    return str(suite.TITLE)


def beside(figures: Figures, titles: dict[str, str], file: Path) -> tuple[Figures, dict[str, str]]:
    """Return the figures and titles of all suites. A suite that did not run now keeps the figures in `file`."""
    found = report.read(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else Figures()
    every = Figures(each for name in SUITES for each in (figures if name in titles else found).of(name))
    suites = {name: importlib.import_module(f"benchmarks.suites.{name}") for name in SUITES}
    return every, {name: str(suite.TITLE) for name, suite in suites.items() if any(every.of(name))}


def written(figures: Figures) -> str:
    return json.dumps(report.document(figures), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
