"""The rhythm of a beat, and Redis' clock as it is seen from here."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.config import settings
from beat.engine import pacing
from beat.engine.pacing import Pace, RedisClock
from tests.support.facts import in_time


def test_the_lengths_are_milliseconds() -> None:
    made = settings.load(
        {"interval": "500ms", "lookahead": "1s", "lock_ttl": "7s", "misfire_after": "1m", "page_size": 9}
    )
    assert Pace.of(made.settings) == Pace(500, 1000, 7000, 60_000, 9)


def test_how_late_a_tick_may_be_follows_the_locks() -> None:
    assert Pace.of(settings.load({"lock_ttl": "30s"}).settings).misfire_limit == 60_000
    assert Pace.of(settings.load({"lock_ttl": "2s", "lookahead": "1s"}).settings).misfire_limit == 10_000


class Monotonic:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    made = Monotonic()
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=made))
    return made


def test_the_time_of_a_reply_lies_between_question_and_answer(monotonic: Monotonic) -> None:
    clock = RedisClock()
    clock.ask()
    monotonic.now += 0.010
    clock.learn(5_000_005)
    assert clock.now_ms() == pytest.approx(5_000_010.5)
    monotonic.now += 2.5
    assert clock.now_ms() == pytest.approx(5_002_510.5)


@given(
    ahead=st.integers(-(10**12), 10**12),
    there=st.floats(0, 5),
    back=st.floats(0, 5),
    later=st.floats(0, 100),
)
def test_the_estimate_is_off_by_half_a_round_trip_at_most(ahead: int, there: float, back: float, later: float) -> None:
    monotonic = Monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pacing, "time", SimpleNamespace(monotonic=monotonic))
        clock = RedisClock()
        clock.ask()
        monotonic.now += there
        said = int(monotonic.now * 1000) + ahead
        monotonic.now += back
        clock.learn(said)
        monotonic.now += later
        true = monotonic.now * 1000 + ahead
        assert abs(clock.now_ms() - true) <= (there + back) * 500 + 1.01


def test_sleeping_until_the_past_returns_at_once() -> None:
    clock, never = RedisClock(), threading.Event()
    begun = time.monotonic()
    clock.sleep_until(clock.now_ms() - 100_000, never)
    in_time(time.monotonic() - begun, 1)


def test_sleeping_returns_not_before_the_instant() -> None:
    clock, never = RedisClock(), threading.Event()
    wanted = clock.now_ms() + 50
    clock.sleep_until(wanted, never)
    assert clock.now_ms() >= wanted - 1


def test_sleeping_ends_when_it_is_time_to_stop() -> None:
    clock, stopping = RedisClock(), threading.Event()
    sleeper = threading.Thread(target=clock.sleep_until, args=(clock.now_ms() + 600_000, stopping))
    sleeper.start()
    stopping.set()
    sleeper.join(10)
    assert not sleeper.is_alive()
