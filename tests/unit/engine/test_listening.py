"""Since when a scheduler has heard workers, with both clocks set by hand."""

from __future__ import annotations

import pytest

from beat.engine import listening
from beat.engine.listening import BREAK_MS, LEAP_MS, Hearing

NINE = 1_794_819_600_000
"""Redis' clock in ms, when this machine has been up for a minute."""


class Clocks:
    """Redis' clock and the uptime of this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.uptime, self.redis = 60_000, NINE
        monkeypatch.setattr(listening, "uptime_ms", lambda: self.uptime)
        self.hearing = Hearing()

    def passes(self, ms: int) -> None:
        self.uptime, self.redis = self.uptime + ms, self.redis + ms

    def since(self) -> int:
        return self.hearing.since(self.redis)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_scheduler_listens_from_its_first_look(clocks: Clocks) -> None:
    assert clocks.since() == NINE
    for _ in range(100):
        clocks.passes(BREAK_MS)
        assert clocks.since() == NINE


def test_answers_between_two_looks_are_no_break(clocks: Clocks) -> None:
    clocks.since()
    for _ in range(100):
        clocks.passes(BREAK_MS)
        clocks.hearing.answered()
    assert clocks.since() == NINE


def test_scheduler_listens_anew_after_a_time_without_an_answer(clocks: Clocks) -> None:
    clocks.since()
    clocks.passes(BREAK_MS + 1)
    clocks.hearing.answered()
    clocks.passes(1000)
    assert clocks.since() == NINE + BREAK_MS + 1001
    clocks.passes(1000)
    assert clocks.since() == NINE + BREAK_MS + 1001


@pytest.mark.parametrize("leap", [LEAP_MS + 1, -LEAP_MS - 1, 86_400_000])
def test_scheduler_listens_anew_after_a_leap_of_redis_clock(leap: int, clocks: Clocks) -> None:
    clocks.since()
    clocks.passes(1000)
    clocks.redis += leap
    assert clocks.since() == NINE + 1000 + leap
    clocks.passes(1000)
    assert clocks.since() == NINE + 1000 + leap


def test_clock_that_is_put_right_slowly_is_no_leap_of_one_look(clocks: Clocks) -> None:
    clocks.since()
    clocks.redis += LEAP_MS
    assert clocks.since() == NINE
