"""Compare the budgets of the design with the figures of one run. Report a budget without a figure as not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.figures import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Figures

MOST, LEAST = "≤", "≥"


class Budget(NamedTuple):
    """A limit, and the value that was measured."""

    what: str
    sense: str
    """MOST or LEAST."""
    allowed: float
    unit: str
    measured: float | None
    """None when this run did not measure it."""

    @property
    def met(self) -> bool | None:
        """Return whether the budget was met; None if it was not measured."""
        if self.measured is None:
            return None
        return self.measured <= self.allowed if self.sense == MOST else self.measured >= self.allowed


def budgets(figures: Figures) -> Iterator[Budget]:
    """Yield every budget, in the order of the design."""
    for rule in (_fires, _passes, _lateness, _crowds, _many, _others):
        yield from rule(figures)


def _fires(figures: Figures) -> Iterator[Budget]:
    at = {"schedules": 10_000, "queues": 1}
    ours = figures.find("fires per second", at)
    for who, times in (("rq cron", 10), ("RedBeat", 25), ("enqueue_many", 1.5)):
        theirs = figures.find("fires per second", at, who)
        yield Budget(f"10,000 due at once, fires per second beside {who}", LEAST, times, "×", ratio(ours, theirs))
    yield Budget("redis.call of a plain fire", MOST, 25, "", figures.median("redis.call per fire"))
    python, redis = figures.find("beat CPU per fire", at), figures.find("Redis time per fire", at)
    yield Budget("10,000 due at once, Python's time beside Redis'", MOST, 1, "×", ratio(python, redis))


def _passes(figures: Figures) -> Iterator[Budget]:
    few, many = (figures.find("idle pass", {"schedules": number}) for number in (1_000, 100_000))
    yield Budget("idle pass, 100,000 schedules beside 1,000", MOST, 1.5, "×", ratio(many, few))
    yield Budget("idle pass, 100,000 schedules", MOST, 1, "ms", many.median if many else None)


def _lateness(figures: Figures) -> Iterator[Budget]:
    one, many = "one schedule", "500 in one second"
    for load, part, allowed in ((one, "p50", 3), (one, "p99", 20), (many, "p99", 100)):
        measured = figures.median(f"lateness {part}", {"load": load})
        yield Budget(f"lateness, {load}, {part}", MOST, allowed, "ms", measured)


def _crowds(figures: Figures) -> Iterator[Budget]:
    at = {"beats": 50}
    for what, sense, allowed, unit in (
        ("claim latency p99", MOST, 100, "ms"),
        ("claims per second", LEAST, 10_000, "/s"),
    ):
        yield Budget(f"50 beats, {what}", sense, allowed, unit, figures.median(what, at))
    for what, allowed, unit in (("5,000 drained after", 5, "s"), ("longest script, 5,000 due", 25, "ms")):
        found = figures.find(what, at)
        yield Budget(f"50 beats, {what}, the worst", MOST, allowed, unit, found.worst if found else None)


def _many(figures: Figures) -> Iterator[Budget]:
    at = {"schedules": 100_000}
    for what, allowed, unit in (
        ("first start", 30, "s"),
        ("unchanged start", 15, "s"),
        ("repair page", 500, ""),
        ("listing, first page", 200, "ms"),
    ):
        yield Budget(f"100,000 schedules, {what}", MOST, allowed, unit, figures.median(what, at))
    rate = figures.median("fires per second", {**at, "queues": 1})
    yield Budget("100,000 schedules, all due drained after", MOST, 12, "s", rate and 100_000 / rate)


def _others(figures: Figures) -> Iterator[Budget]:
    for what, allowed, unit in (("outcome known p99", 2_000, "ms"), ("Redis time for looking", 10, "ms/s")):
        measured = figures.median(what, {"open runs": 1_000})
        yield Budget(f"1,000 open runs, {what}", MOST, allowed, unit, measured)
    shapes = [each for each in figures if (each.what, each.who) == ("Cron.after", "beat")]
    ratios = [ratio(figures.find(each.what, each.at, "croniter"), each) for each in shapes]
    known = [each for each in ratios if each is not None]
    yield Budget("Cron.after beside croniter, common shapes", LEAST, 10, "×", min(known, default=None))
    for what, allowed in (("not claimed", 1), ("claimed", 10)):
        found = figures.find(f"takeover, {what}")
        yield Budget(f"kill -9, {what} by the dead beat: late by", MOST, allowed, "s", found.worst if found else None)
    at = {"schedules": 10_000}
    plain = figures.find("pass", at, "beat, plain")
    for who, what in (("beat", "30 % with policies"), ("beat, place", "25 % with policies of place")):
        measured = ratio(figures.find("pass", at, who), plain)
        yield Budget(f"10,000 due, {what}, the pass beside a plain one", MOST, 1.3, "×", measured)
    for what, allowed, unit in (("scrape", 1, "s"), ("longest metrics script", 25, "ms")):
        yield Budget(f"10,000 schedules, {what}", MOST, allowed, unit, figures.median(what, at))
    for what in ("schedules, first page", "overview"):
        yield Budget(f"the page of 10,000 schedules, {what}", MOST, 200, "ms", figures.median(what, at))
        size = figures.median(f"{what}, on the wire", at)
        yield Budget(f"the page of 10,000 schedules, {what}, on the wire", MOST, 40, "KB", size)
    for command in ("beat --help", "beat next"):
        measured = figures.median("start-up over bare Python", {"command": command})
        yield Budget(f"`{command}` over bare Python", MOST, 150, "ms", measured)
