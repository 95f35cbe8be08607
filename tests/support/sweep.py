"""Every zone, each change of its clocks, every shape of expression: `Cron` beside the oracle.

    python -m tests.support.sweep                        everything, in two processes
    python -m tests.support.sweep --zones 'Europe/*' --years 2026
    python -m tests.support.sweep --part 1/50 --seed 7   a fiftieth, picked by the seed
    python -m tests.support.sweep --plant                the sweep itself on trial: an error of one hour must be noticed

A case is one expression in one zone, within two days of one clock change; a zone whose clocks do not change in a year
gets a plain window in that year instead. In each case these are compared with the oracle: the ticks enumerated, counts
of the whole window and of random pieces of it, and `after` and `before` from many instants.

What is thinned out, to stay within minutes: zones whose clocks are alike throughout a window (aliases, or all of
Central Europe) form a group. One of them, picked by the seed, is compared from every minute within three hours of
the change, and from an odd instant inside each of these minutes; the others from a random sample of the same instants,
and the enumeration of their ticks is limited to six hours around the change (their counts are not).
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import functools
import multiprocessing
import random
import sys
import time
import zoneinfo
from bisect import bisect_left, bisect_right
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from beat.timing.cron import Cron
from tests.support import oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    T = TypeVar("T")

YEARS = (2011, 2026, 2027, 2040)  # 2011: Samoa skips a day. 2040: beyond the tables, from the rule at a zone's end
REFUSED = {"localtime", "Factory"}  # beat refuses them: the one is this machine's, the other no place's
SHAPES = (
    # wildcards: the wall clock is followed
    "* * * * *",
    "*/5 * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "59 * * * *",
    "0-59/10 * * * *",
    "0 */2 * * *",
    "15 */3 * * *",
    "* 2 * * *",
    "*/20 1-3 * * *",
    "*/30 0,23 * * *",
    "@hourly",
    # fixed times, in the hours where clocks are usually changed
    "0 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "45 2 * * *",
    "0 3 * * *",
    "30 3 * * *",
    "30 23 * * *",
    "59 23 * * *",
    "@daily",
    # several fixed times, on both sides of a change and inside it
    "0-59 0-23 * * *",
    "15,45 1-3 * * *",
    "0,30 0,1,2,3,23 * * *",
    "5/15 1,2 * * *",
    "0 0-23/2 * * *",
    "1-59/2 2 * * *",
    "5,*/10 2 * * *",  # does not begin with `*`
    # days: of the month, of the week, either of the two, both of them
    "0 0 1 * *",
    "30 2 28-31 * *",
    "0 0 31 * *",
    "0 12 * * mon-fri",
    "30 2 * * sun",
    "@weekly",
    "30 1 1,15 * fri",
    "0 3 25-31 * 7",
    "0 2 1,*/10 * mon",  # neither begins with `*`
    "30 1 */2 * sun",
    "* 0 1-7 * */2",
    "*/10 * * 3,10,11 0",
    # once in a while
    "0 0 1 1 *",
    "30 23 31 dec *",
    "0 12 30 12 *",
    "0 0 29 2 *",
)
REACH = timedelta(days=2)
NEAR = timedelta(hours=3)
PIECE = timedelta(hours=6)
MICROSECOND = timedelta(microseconds=1)
DEFAULT_SEED = 20_261_116
SHOWN = 20
ENOUGH_NOTICED = 100


class Ticker(Protocol):
    """What is compared."""

    def after(self, instant: datetime, /) -> datetime: ...
    def before(self, instant: datetime, /) -> datetime: ...
    def count(self, a: datetime, b: datetime, /) -> int: ...
    def ticks(self, start: datetime, end: datetime, /) -> Iterator[datetime]: ...


class Planted:
    """A `Cron` with a wrong idea of its zone's offset, by one hour, in one of its methods."""

    def __init__(self, wrong: str, expression: str, tz: str) -> None:
        self._cron = Cron(expression, tz)
        self._error = dict.fromkeys(("after", "before", "count", "ticks"), timedelta()) | {wrong: timedelta(hours=1)}

    def after(self, instant: datetime) -> datetime:
        return self._cron.after(instant - self._error["after"]) + self._error["after"]

    def before(self, instant: datetime) -> datetime:
        return self._cron.before(instant - self._error["before"]) + self._error["before"]

    def count(self, a: datetime, b: datetime) -> int:
        return self._cron.count(a - self._error["count"], b - self._error["count"])

    def ticks(self, start: datetime, end: datetime) -> Iterator[datetime]:
        for tick in self._cron.ticks(start - self._error["ticks"], end - self._error["ticks"]):
            yield tick + self._error["ticks"]


class Window(NamedTuple):
    """Two days to either side of a clock change, or of an ordinary instant."""

    centre: datetime
    plain: bool

    @property
    def start(self) -> datetime:
        return self.centre.replace(second=0) - REACH

    @property
    def end(self) -> datetime:
        return self.centre.replace(second=0) + REACH


class Group(NamedTuple):
    """Zones whose clocks are alike throughout a window and the 48 hours before it, which the oracle walks as well."""

    window: Window
    zones: tuple[str, ...]


@dataclasses.dataclass
class Tally:
    """What was compared, and what was found."""

    zones: set[str] = dataclasses.field(default_factory=set)
    transitions: int = 0
    plain: int = 0
    cases: int = 0
    failed_cases: int = 0
    comparisons: int = 0
    differences: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Tally) -> None:
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, mine | theirs if isinstance(mine, set) else mine + theirs)

    def __str__(self) -> str:
        return (
            f"{len(self.zones)} zones, {self.transitions:,} transitions and {self.plain:,} plain windows, "
            f"{self.cases:,} cases, {self.comparisons:,} comparisons: {len(self.differences):,} differences"
        )


@dataclasses.dataclass
class Case:
    """One expression in one zone and window: the ticker beside what the oracle found, `truth`."""

    ticker: Ticker
    window: Window
    truth: list[datetime]
    comparisons: int = 0
    differences: list[str] = dataclasses.field(default_factory=list)

    def after(self, instant: datetime) -> None:
        got, place = self.ticker.after(instant), bisect_right(self.truth, instant)
        wanted = self.truth[place] if place < len(self.truth) else None
        if wanted is None and got >= self.window.end:  # rightly beyond what the oracle saw
            wanted = got
        self._expect(got, wanted, "after", instant)

    def before(self, instant: datetime) -> None:
        got, place = self.ticker.before(instant), bisect_left(self.truth, instant)
        wanted = self.truth[place - 1] if place > 0 else None
        if wanted is None and got < self.window.start:
            wanted = got
        self._expect(got, wanted, "before", instant)

    def count(self, a: datetime, b: datetime) -> None:
        wanted = bisect_left(self.truth, b) - bisect_left(self.truth, a)
        self._expect(self.ticker.count(a, b), wanted, "count", a, b)

    def ticks(self, a: datetime, b: datetime) -> None:
        got = list(self.ticker.ticks(a, b))
        wanted = self.truth[bisect_left(self.truth, a) : bisect_left(self.truth, b)]
        self.comparisons += len(wanted)
        if got != wanted:
            extra, missing = sorted(set(got) - set(wanted)), sorted(set(wanted) - set(got))
            self._expect(f"extra: {_short(extra)}", f"missing: {_short(missing)}", "ticks", a, b)

    def _expect(self, got: object, wanted: object, method: str, *instants: datetime) -> None:
        self.comparisons += 1
        if got != wanted:
            asked = ", ".join(instant.isoformat() for instant in instants)
            self.differences.append(f"{method}({asked}): {got}, the oracle says {wanted}")


def compare(case: Case, near: Sequence[datetime], dice: random.Random, *, thorough: bool) -> None:
    """Make all the comparisons of one case."""
    window = case.window
    if thorough:
        case.ticks(window.start, window.end)
    else:
        case.ticks(window.centre - PIECE, window.centre + PIECE)
    case.count(window.start, window.end)

    def anywhere() -> datetime:
        if case.truth and dice.random() < 1 / 2:  # ticks themselves are where `<` and `<=` differ
            return dice.choice(case.truth) + dice.choice((-MICROSECOND, timedelta(), timedelta(), MICROSECOND))
        return window.start + dice.randrange((window.end - window.start) // MICROSECOND) * MICROSECOND

    for _ in range(8 if thorough else 3):
        a, b = sorted((anywhere(), anywhere()))
        case.count(a, b)
    if thorough:
        case.ticks(*sorted((anywhere(), anywhere())))
    instants = (
        [*near, *(anywhere() for _ in range(40))] if thorough else [*dice.sample(near, 20), anywhere(), anywhere()]
    )
    for instant in instants:
        case.after(instant)
        case.before(instant)


def instants_near(centre: datetime, dice: random.Random) -> list[datetime]:
    """Every minute within three hours, an odd instant inside each, and the instants next to the change itself."""
    minutes = [centre + timedelta(minutes=m) for m in range(-NEAR // oracle.MINUTE, NEAR // oracle.MINUTE + 1)]
    odd = [minute + timedelta(microseconds=dice.randrange(1, 60_000_000)) for minute in minutes]
    second = timedelta(seconds=1)
    return [*minutes, *odd, centre - second, centre - MICROSECOND, centre + MICROSECOND, centre + second]


def check(group: Group, seed: int, make: Callable[[str, str], Ticker] = Cron, *, thorough: bool = True) -> Tally:
    """Compare every shape in every zone of the group; the first zone thoroughly, unless told otherwise."""
    window = group.window
    looks = oracle.walk(zoneinfo.ZoneInfo(group.zones[0]), window.start, window.end)
    near = instants_near(window.centre, seeded(seed, window.centre))
    tally = Tally(set(group.zones))
    for shape in SHAPES:
        truth = oracle.ticks(oracle.parse(shape), looks)
        for zone in group.zones:
            case = Case(make(shape, zone), window, truth)
            dice = seeded(seed, window.centre, shape, zone)
            try:
                compare(case, near, dice, thorough=thorough and zone == group.zones[0])
            except Exception as error:  # noqa: BLE001 (whatever it is: a crash is a difference too)
                case.differences.append(f"raised {error!r}")
            tally.cases += 1
            tally.comparisons += case.comparisons
            tally.failed_cases += bool(case.differences)
            tally.differences += [f"{shape!r} in {zone}: {difference}" for difference in case.differences]
    tally.plain, tally.transitions = (len(group.zones), 0) if window.plain else (0, len(group.zones))
    return tally


def zones(pattern: str = "*") -> list[str]:
    return sorted(fnmatch.filter(zoneinfo.available_timezones() - REFUSED, pattern))


def windows(seed: int, pair: tuple[str, int]) -> list[tuple[Window, object, str]]:
    """The windows of one zone in one year, each with what tells how the zone's clocks run in it, and the zone."""
    zone, year = pair
    info = zoneinfo.ZoneInfo(zone)
    found = [Window(instant, plain=False) for instant in oracle.transitions(info, year)]
    if not found:
        turn = seeded(seed, zone, year).choice(("01-01", "03-01", "05-31T12:00", "10-14T03:14"))
        found = [Window(datetime.fromisoformat(f"{year}-{turn}").replace(tzinfo=UTC), plain=True)]
    return [(window, _clocks(info, window), zone) for window in found]


def _clocks(info: zoneinfo.ZoneInfo, window: Window) -> object:
    """Equal for two zones when their wall clocks show the same throughout the oracle's walk."""
    start = window.start - timedelta(hours=48)
    return start.astimezone(info).utcoffset(), tuple(oracle.changes(info, start, window.end))


def grouped(found: Iterable[tuple[Window, object, str]], seed: int) -> list[Group]:
    """The windows with the zones that share them, zones in an order that the seed picks."""
    shared: dict[tuple[Window, object], list[str]] = defaultdict(list)
    for window, clocks, zone in found:
        shared[window, clocks].append(zone)
    groups = []
    for (window, _), members in shared.items():
        ordered = sorted(members)
        seeded(seed, window.centre).shuffle(ordered)
        groups.append(Group(window, tuple(ordered)))
    return sorted(groups)


def part_of(pairs: Sequence[tuple[str, int]], part: tuple[int, int], seed: int) -> list[tuple[str, int]]:
    """The k-th of n parts: `pairs` of zone and year dealt out like cards."""
    number, parts = part
    cards = list(pairs)
    seeded(seed).shuffle(cards)
    return cards[number - 1 :: parts]


def run_part(part: tuple[int, int], seed: int, *, thorough: bool) -> Tally:
    """A part of the sweep, in this process: what the tests run."""
    pairs = part_of([(zone, year) for zone in zones() for year in YEARS], part, seed)
    tally = Tally()
    for group in grouped((window for pair in pairs for window in windows(seed, pair)), seed):
        tally.add(check(group, seed, thorough=thorough))
    return tally


def seeded(*words: object) -> random.Random:
    """Dice that fall the same way for the same words, in every process."""
    return random.Random(" ".join(map(str, words)))  # noqa: S311 (picks samples; nothing to keep secret)


def main() -> int:
    options = _options()
    pairs = [(zone, year) for zone in zones(options.zones) for year in options.years]
    if options.plant and not options.part:
        options.part = (1, 50)
    if options.part:
        pairs = part_of(pairs, options.part, options.seed)
    make: Callable[[str, str], Ticker] = functools.partial(Planted, "after") if options.plant else Cron
    tally = Tally()
    with multiprocessing.Pool(2) as pool:
        found: list[tuple[Window, object, str]] = []
        search = pool.imap_unordered(functools.partial(windows, options.seed), pairs, chunksize=8)
        for some in _watched(search, len(pairs), "looking for clock changes"):
            found += some
        groups = grouped(found, options.seed)
        checks = pool.imap_unordered(functools.partial(check, seed=options.seed, make=make), groups)
        for result in _watched(checks, len(groups), "comparing"):
            tally.add(result)
    return _report_plant(tally) if options.plant else _report(tally)


def _report(tally: Tally) -> int:
    for difference in sorted(tally.differences)[:SHOWN]:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(f"{tally}\n")
    return 1 if tally.differences or not tally.comparisons else 0


def _report_plant(tally: Tally) -> int:
    noticed = f"{tally.failed_cases:,} of {tally.cases:,} cases notice an error of one hour in after()"
    sys.stdout.write(f"{noticed}; at least {ENOUGH_NOTICED} should\n")
    return 0 if tally.failed_cases >= ENOUGH_NOTICED else 1


def _watched(results: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The results, while stderr tells how many there have been."""
    end, shown, began = "\r" if sys.stderr.isatty() else "\n", 0.0, time.monotonic()
    for number, result in enumerate(results, start=1):
        yield result
        now = time.monotonic()
        if now - shown > (0.2 if end == "\r" else 15) or number == total:
            sys.stderr.write(f"{doing}: {number:,} of {total:,}, {now - began:.0f} s  {end}")
            sys.stderr.flush()
            shown = now
    sys.stderr.write("\n" if end == "\r" else "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.sweep", description="Cron beside the oracle, in every zone."
    )
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="picks samples and parts (%(default)s)")
    parser.add_argument("--zones", default="*", metavar="GLOB", help="only these zones, as in 'Europe/*'")
    parser.add_argument("--years", type=int, nargs="+", default=YEARS, metavar="YEAR", help="instead of %(default)s")
    parser.add_argument("--part", type=_part, metavar="K/N", help="the K-th of N parts, as in 1/50")
    parser.add_argument("--plant", action="store_true", help="try the sweep on a wrong Cron (a 50th of it, or --part)")
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(text)
    return int(number), int(parts)


def _short(instants: list[datetime]) -> str:
    shown = " ".join(instant.isoformat() for instant in instants[:3]) or "none"
    return f"{shown} and {len(instants) - 3} more" if len(instants) > 3 else shown


if __name__ == "__main__":
    sys.exit(main())
