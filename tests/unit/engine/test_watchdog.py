"""Who hangs, and who does not: threads as numbers, and a clock that a test sets."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from beat.engine import watchdog
from beat.engine.health import Health
from beat.engine.watchdog import END_S, PATIENCE, Watchdog, stacks
from beat.errors import Stuck

if TYPE_CHECKING:
    from beat.engine.events import Event

STUCK_S = END_S / 2


class Yard:
    """A watchdog with one thread, which is at a step since `at` or sleeps until then."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, url: str = "redis://localhost", *, patient: bool = False
    ) -> None:
        self.now = self.at = 5000.0
        self.events: list[Event] = []
        self.health = Health(self.events.append)
        monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.dog = Watchdog(self.events.append, self.health)
        timeouts = {"socket_timeout": 5, "socket_connect_timeout": 5}
        with Redis.from_url(url, **timeouts) as client:
            self.dog.watch("ticker", lambda: self.at, client, patient=patient)

    def passes(self, seconds: float, *, working: bool = False) -> Stuck | None:
        """So much time, a second a turn."""
        for _ in range(round(seconds)):
            self.now += 1
            self.at = self.now if working else self.at
            if stuck := self.dog.turn():
                return stuck
        return None

    def told(self) -> list[str]:
        return [event.name for event in self.events]


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(monkeypatch)


def test_a_thread_that_works_does_not_hang(yard: Yard) -> None:
    assert yard.passes(10 * END_S, working=True) is None
    assert yard.told() == []


def test_a_thread_at_one_step_is_told_once_and_then_hangs(yard: Yard) -> None:
    assert yard.passes(STUCK_S - 1) is None
    assert yard.told() == []
    assert yard.passes(END_S - STUCK_S) is None
    assert yard.told() == ["stuck"]
    assert yard.events[0].fields == {"thread": "ticker", "seconds": STUCK_S}
    stuck = yard.passes(2)
    assert isinstance(stuck, Stuck)
    assert stuck.exit_code == 70
    assert str(stuck) == "the ticker hangs, for 60 s now"
    assert "test_watchdog.py" in stuck.stacks
    assert yard.told() == ["stuck", "hung"]
    assert yard.events[1].fields == {"thread": "ticker", "seconds": END_S}


def test_a_thread_that_goes_on_is_told_again_when_it_hangs_again(yard: Yard) -> None:
    for _ in range(2):
        assert yard.passes(END_S - 1) is None
        assert yard.passes(1, working=True) is None
    assert yard.told() == ["stuck", "stuck"]


def test_a_thread_that_sleeps_does_not_hang(yard: Yard) -> None:
    yard.at = yard.now + 10 * END_S
    assert yard.passes(10 * END_S) is None
    assert yard.told() == []
    assert yard.passes(END_S + 1), "it did not wake up"


@pytest.mark.parametrize("seconds", [END_S, 10 * END_S, 86_400])
def test_a_process_that_was_stopped_does_not_hang(yard: Yard, seconds: float) -> None:
    yard.passes(5, working=True)
    for _ in range(3):
        yard.now += seconds
        assert yard.dog.turn() is None
        yard.passes(5, working=True)
    assert yard.told() == []


def test_a_process_that_is_stopped_again_and_again_does_not_hide_who_hangs(yard: Yard) -> None:
    yard.passes(5, working=True)
    for _ in range(round(END_S)):
        yard.now += 600
        if yard.dog.turn():
            break
    assert yard.told() == ["stuck", "hung"]


def test_while_redis_is_away_a_step_may_take_longer(yard: Yard) -> None:
    yard.health.failed("ticker", OSError("gone"))
    assert yard.passes(PATIENCE * END_S - 1) is None
    assert yard.passes(2), "it does not come back at all"
    assert yard.told() == ["redis_away", "stuck", "hung"]


def test_a_thread_whose_steps_are_long_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, patient=True)
    assert yard.passes(PATIENCE * END_S - 1) is None
    assert yard.passes(2)


def test_time_outs_that_are_long_give_time(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, "redis://localhost?socket_timeout=40")
    assert yard.passes(6 * 45 - 1) is None
    assert yard.passes(2)


def test_every_thread_is_watched(yard: Yard) -> None:
    with Redis() as client:
        yard.dog.watch("housekeeper", lambda: 1.0, client)
    stuck = yard.passes(END_S + 1, working=True)
    assert str(stuck) == "the housekeeper hangs, for 60 s now"


@pytest.mark.parametrize("wish", [None, ValueError("no")])
def test_what_somebody_wishes_ends_the_wait(wish: ValueError | None) -> None:
    wishes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    threading.Timer(0.05, wishes.put, [wish]).start()
    assert Watchdog(print, Health(print)).wait(wishes) is wish


def test_the_stacks_say_where_each_thread_is() -> None:
    over = threading.Event()

    def stays_here() -> None:
        over.wait()

    thread = threading.Thread(target=stays_here, name="sitter")
    thread.start()
    try:
        told = stacks()
    finally:
        over.set()
        thread.join()
    assert "sitter:\n" in told
    assert ", in stays_here\n    over.wait()" in told
    assert "MainThread:\n" in told
