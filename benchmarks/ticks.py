"""Compare how long `Cron.after`, croniter and cronsim take to find the next tick, all in one run.

    python -m benchmarks.ticks [--json]

Machines are noisy, so the ratios count. The contenders take turns over the same 200 instants, and the ratios compare
their best turns (the table also shows the median). `Cron` is constructed once, as in beat. The peers are constructed
for each question, because their interface requires it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from beat.timing.cron import Cron

if TYPE_CHECKING:
    from collections.abc import Callable

INSTANTS = 200
TURNS = 7
COMMON_BUDGET, RARE_BUDGET = 10, 1
DST_ZONE = "America/New_York"


class Shape(NamedTuple):
    """An expression, and whether users write it often."""

    name: str
    expression: str
    tz: str
    common: bool


SHAPES = (
    Shape("every minute", "* * * * *", "UTC", common=True),
    Shape("every 5 minutes", "*/5 * * * *", "UTC", common=True),
    Shape("hourly", "0 * * * *", "UTC", common=True),
    Shape("daily", "30 3 * * *", "UTC", common=True),
    Shape("weekdays, DST zone", "0 9 * * mon-fri", DST_ZONE, common=True),
    Shape("monthly", "0 0 1 * *", "UTC", common=True),
    Shape("29 February", "0 0 29 2 *", "UTC", common=False),
    Shape("month ends", "0 0 31 * *", "UTC", common=False),
    Shape("one weekday", "0 12 * * sun", DST_ZONE, common=False),
    Shape("13th or Friday", "0 0 13 * fri", "UTC", common=False),
)


class Time(NamedTuple):
    """Microseconds per call."""

    best: float
    median: float


class Row(NamedTuple):
    """One question, and the time that each contender took."""

    name: str
    expression: str
    times: dict[str, Time]

    def ratio(self, peer: str) -> float:
        """Return the best turn of `peer` divided by the best turn of beat."""
        return self.times[peer].best / self.times["beat"].best


def main() -> int:
    parser = argparse.ArgumentParser(description="Cron.after beside croniter and cronsim.")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    as_json = parser.parse_args().json
    instants = varied_instants()
    after = {shape: measure_after(shape, instants) for shape in SHAPES}
    others = [measure_before(instants), measure_cold(instants)]
    year = measure_a_year()
    common = min(row.ratio("croniter") for shape, row in after.items() if shape.common)
    rare = min(row.ratio("croniter") for shape, row in after.items() if not shape.common)
    kept = common >= COMMON_BUDGET and rare >= RARE_BUDGET
    rows = [*after.values(), *others]
    if as_json:
        print(json.dumps(document(rows, year, common, rare, kept=kept), indent=2))
    else:
        print_table(rows, year)
        print(f"common shapes: at least {common:.1f} times croniter; rare shapes: at least {rare:.1f} times")
    return 0 if kept else 1


def varied_instants() -> list[datetime]:
    dice = random.Random(2026)  # noqa: S311 (varied and the same in every run; nothing to keep secret)
    start, ten_years = datetime(2021, 1, 1, tzinfo=UTC), 10 * 365 * 86_400
    return [start + timedelta(seconds=dice.randrange(ten_years)) for _ in range(INSTANTS)]


def measure_after(shape: Shape, instants: list[datetime]) -> Row:
    expression, zone = shape.expression, ZoneInfo(shape.tz)
    cron, local = Cron(expression, shape.tz), [instant.astimezone(zone) for instant in instants]

    def ask_croniter() -> None:
        for instant in local:
            croniter(expression, instant).get_next(datetime)

    def ask_cronsim() -> None:
        for instant in local:
            next(CronSim(expression, instant))

    def ask_beat() -> None:
        for instant in instants:
            cron.after(instant)

    times = in_turns({"croniter": ask_croniter, "cronsim": ask_cronsim, "beat": ask_beat})
    return Row(shape.name, expression, times)


def measure_before(instants: list[datetime]) -> Row:
    expression, zone = "0 9 * * mon-fri", ZoneInfo(DST_ZONE)
    cron, local = Cron(expression, DST_ZONE), [instant.astimezone(zone) for instant in instants]

    def ask_croniter() -> None:
        for instant in local:
            croniter(expression, instant).get_prev(datetime)

    def ask_cronsim() -> None:
        for instant in local:
            next(CronSim(expression, instant, reverse=True))

    def ask_beat() -> None:
        for instant in instants:
            cron.before(instant)

    times = in_turns({"croniter": ask_croniter, "cronsim": ask_cronsim, "beat": ask_beat})
    return Row("before, not after", expression, times)


def measure_cold(instants: list[datetime]) -> Row:
    """Ask about each expression only once, so that beat's caches cannot help."""
    unused = (f"{n % 60} {n // 60 % 24} {n // 60 // 24 + 1} * *" for n in count())

    def ask(question: Callable[[str, datetime], object]) -> Callable[[], None]:
        def turn() -> None:
            for instant in instants:
                question(next(unused), instant)

        return turn

    asked = {
        "croniter": ask(lambda expression, instant: croniter(expression, instant).get_next(datetime)),
        "cronsim": ask(lambda expression, instant: next(CronSim(expression, instant))),
        "beat": ask(lambda expression, instant: Cron(expression).after(instant)),
    }
    return Row("construct, then after", "M H D * *", in_turns(asked))


def measure_a_year() -> Time:
    """Time `count` over all minutes of a year in a zone with DST."""
    cron, start, end = Cron("* * * * *", DST_ZONE), datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)

    def ask_beat() -> None:
        for _ in range(INSTANTS):
            if cron.count(start, end) != 365 * 24 * 60:
                raise AssertionError("a year has 525,600 minutes, whatever its clocks do")

    return in_turns({"beat": ask_beat})["beat"]


def in_turns(contenders: dict[str, Callable[[], None]], turns: int = TURNS) -> dict[str, Time]:
    """Return microseconds per call of each. They take turns, so that a slow moment affects all of them."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, turn in contenders.items():
            began = time.perf_counter()
            turn()
            taken[name].append((time.perf_counter() - began) / INSTANTS * 1e6)
    return {name: Time(min(times), statistics.median(times)) for name, times in taken.items()}


def print_table(rows: list[Row], year: Time) -> None:
    print(f"µs per call, best (median) of {TURNS} turns over {INSTANTS} instants; first the ratios to beat\n")
    print(f"{'croniter':>9} {'cronsim':>9}   {'':22} {'':16} {'croniter':>17} {'cronsim':>17} {'beat':>15}")
    for row in rows:
        ratios = f"{row.ratio('croniter'):8.1f}x {row.ratio('cronsim'):8.1f}x"
        croniters, cronsims, beats = (f"{t.best:.1f} ({t.median:.1f})" for t in row.times.values())
        print(f"{ratios}   {row.name:22} {row.expression:16} {croniters:>17} {cronsims:>17} {beats:>15}")
    print(f"\ncount of a year of minutes in {DST_ZONE}: {year.best:.1f} ({year.median:.1f}) µs")


def document(rows: list[Row], year: Time, common: float, rare: float, *, kept: bool) -> dict[str, object]:
    return {
        "schema_version": 1,
        "unit": "microseconds per call",
        "rows": [
            {
                "name": row.name,
                "expression": row.expression,
                "ratio": {peer: round(row.ratio(peer), 2) for peer in ("croniter", "cronsim")},
                "times": {name: taken._asdict() for name, taken in row.times.items()},
            }
            for row in rows
        ],
        "count_of_a_year": year._asdict(),
        "common_at_least": round(common, 2),
        "rare_at_least": round(rare, 2),
        "within_budget": kept,
    }


if __name__ == "__main__":
    sys.exit(main())
