"""Retries of what Redis rejects, with a clock set by hand: the waits have bounds, and waiting costs no tick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beat import Registry
from beat.errors import BeatError
from beat.jobs.job_template import queue_key
from beat.testing import ManualBeat
from tests.support.job_functions import anything

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
QUEUE = queue_key("default")
SECOND = timedelta(seconds=1)


class Blocked:
    """A schedule whose queue key has the wrong type from the beginning."""

    def __init__(self, every: str, settings: dict[str, str], **options: Any) -> None:
        registry = Registry()
        registry.periodic(every=every, id="report", misfire="skip", **options)(anything)
        self.beat = ManualBeat(NINE, registry=registry, **settings)
        self.redis: Any = self.beat.redis
        self.redis.set(QUEUE, "garbage")
        self.attempts: list[float] = []
        """When the scheduler tried to enqueue, in seconds since nine."""

    @property
    def now(self) -> float:
        return (self.beat.clock.now - NINE).total_seconds()

    def score(self) -> float:
        return float(self.redis.zscore("beat:due", "report")) / 1000 - NINE.timestamp()

    def second(self) -> None:
        """One cycle of a scheduler."""
        self.beat.clock.advance(SECOND)
        is_due = self.score() <= self.now
        try:
            self.beat.tick()
        except BeatError:
            is_due = True
        if is_due and self.redis.type(QUEUE) in {b"string", "string"}:
            self.attempts.append(self.now)

    def until(self, seconds: float) -> None:
        while self.now < seconds:
            self.second()


KINDS: dict[str, tuple[str, dict[str, str], dict[str, str], float]] = {
    "every second": ("1s", {}, {}, 20),
    "every minute": ("1m", {}, {}, 20),
    "of its own": ("1m", {}, {"misfire_after": "8s"}, 8),
    "patient": ("1m", {"misfire_after": "10m"}, {}, 600),
}


@pytest.mark.parametrize("kind", KINDS)
def test_waits_grow_up_to_a_quarter_of_misfire_after(kind: str) -> None:
    every, settings, options, limit = KINDS[kind]
    blocked = Blocked(every, settings, **options)
    first = 1 if every == "1s" else 60
    blocked.until(first + 45)
    assert blocked.attempts[:3] == [first, first + 1, first + 2]
    waits = [later - before for before, later in zip(blocked.attempts, blocked.attempts[1:], strict=False)]
    assert max(waits) <= min(limit / 4, 20)
    assert max(waits) > 1
    assert blocked.redis.hget("beat:schedule:report", "last_error") is not None


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"misfire_after": "1w"}, {}),
        ({"misfire_after": "1w", "interval": "1m"}, {}),
        ({}, {"misfire_after": "52w"}),
        ({"misfire_after": "1w", "interval": "1m"}, {"misfire_after": "52w"}),
    ],
)
def test_no_wait_is_longer_than_20_s(settings: dict[str, str], options: dict[str, str]) -> None:
    blocked = Blocked("1m", settings, **options)
    blocked.until(60)
    farthest = 0.0
    while blocked.now < 60 + 240:
        blocked.second()
        farthest = max(farthest, blocked.score() - blocked.now)
    assert farthest <= 20 + 1, "the lookahead of a second comes on top"
    assert farthest > 4


HOSTILE = '"misfire_after": "52w"'


@pytest.mark.parametrize(("own", "limit"), [({}, 20), ({"misfire_after": "8s"}, 8)], ids=["", "of its own"])
@pytest.mark.parametrize(
    "options",
    [
        {"description": HOSTILE},
        {"kwargs": {HOSTILE: HOSTILE, "misfire_after": "52w"}},
        {"meta": {"misfire_after": "52w"}},
    ],
    ids=["description", "kwargs", "meta"],
)
def test_text_of_a_user_that_names_misfire_after_changes_no_wait(
    options: dict[str, Any], own: dict[str, str], limit: int
) -> None:
    blocked = Blocked("1m", {}, **own, **options)
    blocked.until(60 + limit)
    waits = [later - before for before, later in zip(blocked.attempts, blocked.attempts[1:], strict=False)]
    assert max(waits) <= limit / 4
    assert len(waits) > 4


@pytest.mark.parametrize("found", ["", "0", "-5", "soon", "1e9", "9" * 400])
def test_value_of_misfire_after_that_is_no_number_counts_as_unset(found: str) -> None:
    blocked = Blocked("1m", {})
    blocked.redis.hset("beat:schedule:report", "misfire_after", found)
    blocked.until(60 + 20)
    waits = [later - before for before, later in zip(blocked.attempts, blocked.attempts[1:], strict=False)]
    assert 3 <= max(waits) <= 5


@pytest.mark.parametrize("lasts", [1, 4, 7, 12, 17, 19])
@pytest.mark.parametrize("kind", ["every second", "every minute", "of its own"])
def test_obstacle_that_is_gone_in_time_costs_no_tick(kind: str, lasts: int) -> None:
    every, settings, options, limit = KINDS[kind]
    blocked = Blocked(every, settings, **options)
    first = 1 if every == "1s" else 60
    blocked.until(first + min(lasts, limit - 1))
    blocked.redis.delete(QUEUE)
    ended = blocked.now
    blocked.until(ended + 10)
    assert blocked.beat.skipped == []
    assert blocked.beat.fired[0].scheduled_for == NINE + first * SECOND
    late = [(each.enqueued_at - each.scheduled_for).total_seconds() for each in blocked.beat.fired]
    assert max(late) <= limit
    assert blocked.beat.fired[0].enqueued_at <= NINE + ended * SECOND + max(lasts / 2, 1) * SECOND + SECOND


@pytest.mark.parametrize("lasts", [25, 31, 44])
def test_after_a_long_obstacle_only_what_was_a_misfire_by_then_is_skipped(lasts: int) -> None:
    blocked = Blocked("1s", {})
    blocked.until(1 + lasts)
    blocked.redis.delete(QUEUE)
    ended = blocked.now
    blocked.until(ended + 10)
    fired = {int((each.scheduled_for - NINE).total_seconds()) for each in blocked.beat.fired}
    assert {*range(int(ended) - 18, int(ended) + 10)} <= fired
    assert sum(each.count for each in blocked.beat.skipped) + len(fired) == int(blocked.now)
