"""beat beside its peers and beside what Redis can do: every figure in one run, ratios first.

    python -m benchmarks [--quick] [--only fires,idle] [--json FILE] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Suite

SUITES = ("fires", "idle", "lateness", "crowd", "many", "outcomes", "parts", "takeover", "commands")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: under two minutes")
    parser.add_argument("--only", default=",".join(SUITES), help="suites, separated by commas")
    options = parser.parse_args(arguments)
    scale, figures = Scale(quick=options.quick), list[Figure]()
    for name in options.only.split(","):
        suite: Suite = importlib.import_module(f"benchmarks.suites.{name}")  # type: ignore[assignment]
        began = time.monotonic()
        print(f"## {suite.TITLE}", file=sys.stderr, flush=True)
        for figure in suite.run(scale, lambda words: print(f"   … {words}", file=sys.stderr, flush=True)):
            figures.append(figure)
            print(f"   {figure}", file=sys.stderr, flush=True)
        print(f"   ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
