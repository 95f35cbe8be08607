"""Whether Redis works: said once when it does not, once when it does again."""

from __future__ import annotations

import threading
import time

import pytest

from beat.engine.events import Event
from beat.engine.health import Health, Once
from beat.storage import backoff
from beat.storage.backoff import Patience, cause


def test_an_outage_is_told_once_and_its_end_once() -> None:
    events: list[Event] = []
    watched = Health(events.append)
    watched.worked("ticker")
    assert watched.ready
    for _ in range(3):
        watched.failed("ticker", ConnectionError("gone"))
    assert not watched.ready
    for _ in range(3):
        watched.worked("ticker")
    assert watched.ready
    assert [event.name for event in events] == ["redis_away", "redis_back"]
    assert events[0].fields == {"error": "ConnectionError: gone"}
    assert events[1].fields["seconds"] >= 0


def test_every_outage_is_told() -> None:
    events: list[Event] = []
    watched = Health(events.append)
    for _ in range(3):
        watched.failed("ticker", OSError("gone"))
        watched.worked("ticker")
    assert [event.name for event in events] == ["redis_away", "redis_back"] * 3


def test_many_threads_tell_of_one_outage_once() -> None:
    events: list[Event] = []
    watched, start = Health(events.append), threading.Barrier(8)

    def tell() -> None:
        start.wait()
        for _ in range(200):
            watched.failed("ticker", OSError("gone"))

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.name for event in events] == ["redis_away"]


def test_it_works_again_when_it_does_for_everybody() -> None:
    events: list[Event] = []
    watched = Health(events.append)
    watched.failed("housekeeper", OSError("gone"))
    for _ in range(3):
        watched.worked("ticker")
    assert not watched.ready
    watched.worked("housekeeper")
    assert [event.name for event in events] == ["redis_away", "redis_back"]


class Waits(threading.Event):
    """Never waits, and writes down for how long it would have."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.asked.append(timeout)
        return False


def test_patience_grows_to_two_seconds_and_begins_anew_when_it_went_well() -> None:
    patience, waits = Patience(), Waits()
    for _ in range(8):
        patience.wait(waits)
    assert waits.asked == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    patience.reset()
    patience.wait(waits)
    assert waits.asked[-1] == 0.1


def test_patience_ends_when_it_is_time_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_FIRST_S", 600)
    stopping = threading.Event()
    stopping.set()
    begun = time.monotonic()
    Patience().wait(stopping)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError("no route"), "OSError: no route"),
        (ValueError("two\nlines\r\n\tand a  gap"), "ValueError: two lines and a gap"),
        (RuntimeError(), "RuntimeError: "),
    ],
)
def test_a_cause_is_one_line(error: Exception, words: str) -> None:
    assert cause(error) == words


def test_a_long_cause_is_cut() -> None:
    assert len(cause(ValueError("x" * 100_000))) < 350


def test_what_is_not_new_is_said_once() -> None:
    events: list[Event] = []
    once = Once(events.append)
    one, other = Event("broken", "a", {"error": "x"}), Event("broken", "a", {"error": "y"})
    for event in (one, one, other, other, one):
        once.say("a", event)
    once.say("b", one)
    assert events == [one, other, one, one]
    once.forget("a")
    once.forget("never said")
    once.say("a", one)
    assert len(events) == 5
