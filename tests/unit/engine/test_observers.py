"""Listeners may do what they like: events come in order, to everybody, and nobody waits for them."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from beat.engine import observers
from beat.engine.events import Event
from beat.engine.observers import Observers
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def listening(*listeners: Callable[[Event], None]) -> Iterator[Observers]:
    made = Observers(listeners)
    made.start()
    yield made
    made.stop(10)
    assert not alive(made)


def alive(made: Observers) -> bool:
    return made._thread.is_alive()  # noqa: SLF001 (the only way to see it)


def numbered(number: int) -> Event:
    return Event("fired", str(number))


def test_every_event_reaches_every_listener_in_order() -> None:
    one: list[str] = []
    other: list[str] = []
    with listening(lambda e: one.append(e.schedule_id), lambda e: other.append(e.schedule_id)) as made:
        for n in range(500):
            made.emit(numbered(n))
    assert one == other == [str(n) for n in range(500)]


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_a_listener_that_raises_harms_nobody(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def bad(_: Event) -> None:
        raise error

    with listening(bad, lambda e: heard.append(e.schedule_id)) as made:
        made.emit(numbered(1))
        made.emit(numbered(2))
    assert heard == ["1", "2"]
    assert caplog.messages == ["a listener failed at fired"] * 2


def test_a_listener_that_calls_sys_exit_harms_nobody() -> None:
    heard: list[str] = []
    with listening(lambda _: sys.exit(1), lambda e: heard.append(e.schedule_id)) as made:
        made.emit(numbered(1))
    assert heard == ["1"]


def test_events_are_dropped_while_a_listener_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "_MOST", 10)
    goes_on, entered = threading.Event(), threading.Event()
    heard: list[str] = []

    def slow(event: Event) -> None:
        entered.set()
        goes_on.wait(30)
        heard.append(event.schedule_id)

    with listening(slow) as made:
        made.emit(numbered(0))
        assert entered.wait(10)
        begun = time.monotonic()
        for n in range(1, 51):
            made.emit(numbered(n))
        assert time.monotonic() - begun < 5
        made.stop(0)  # full, so that not even this gets in
        goes_on.set()
        wait_until(lambda: len(heard) == 11)
    assert heard == [str(n) for n in range(11)], "the newest are dropped, not the order"


def test_stopping_does_not_wait_for_ever() -> None:
    goes_on = threading.Event()

    def slow(_: Event) -> None:
        goes_on.wait(60)

    made = Observers([slow])
    made.start()
    made.emit(numbered(1))
    begun = time.monotonic()
    made.stop(0.05)
    assert time.monotonic() - begun < 10
    goes_on.set()
    wait_until(lambda: not alive(made))


def test_stopping_hands_out_what_is_left() -> None:
    heard: list[str] = []
    made = Observers([lambda e: heard.append(e.schedule_id)])
    for n in range(100):
        made.emit(numbered(n))
    made.start()
    made.stop(10)
    assert len(heard) == 100


def test_without_listeners_events_go_nowhere() -> None:
    with listening() as made:
        made.emit(numbered(1))
