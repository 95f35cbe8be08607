"""Companions: each in a thread of its own; what one of them raises is told once, and it begins again."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError

from beat import scheduler
from beat.config import settings
from beat.engine import services
from beat.engine.events import Event
from beat.telemetry.metrics import Tally
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


class Sick:
    """Raises these, one after the other, then works until it is told to stop."""

    name = "metrics"

    def __init__(self, *errors: Exception) -> None:
        self._errors: Iterator[Exception] = iter(errors)
        self.works, self.thread = threading.Event(), ""

    def run(self, stopping: threading.Event) -> None:
        self.thread = threading.current_thread().name
        for error in self._errors:
            raise error
        self.works.set()
        stopping.wait()


def started(*sick: Sick) -> tuple[list[Event], threading.Event]:
    events, stopping = list[Event](), threading.Event()
    services.start(sick, events.append, stopping)
    return events, stopping


def test_a_companion_that_fails_is_told_of_once_and_begins_again() -> None:
    sick = Sick(ValueError("bad day"), ValueError("bad day"), KeyError("x"))
    events, stopping = started(sick)
    assert sick.works.wait(30)
    stopping.set()
    assert sick.thread == "beat-metrics"
    said = [(event.name, event.fields["companion"], event.fields["error"]) for event in events]
    assert said == [
        ("companion_failed", "metrics", "ValueError: bad day"),
        ("companion_failed", "metrics", "KeyError: 'x'"),
    ]


def test_nobody_is_there_whom_nobody_asked_for() -> None:
    told = (settings.load().settings, "redis://", "beat-1", list[Event]().append, Tally())
    found = scheduler.build_services(*told, stopping=threading.Event())
    assert [each.name for each in found] == ["monitors"]  # it looks whether a schedule has asked


def test_without_redis_it_waits_and_leaves_the_saying_to_the_ticker() -> None:
    sick = Sick(NoConnection("away"), NoConnection("away"))
    events, stopping = started(sick)
    assert sick.works.wait(30)
    stopping.set()
    assert events == []


def test_one_that_hangs_keeps_no_other_from_working() -> None:
    hanging, well = Sick(), Sick()
    _, stopping = started(hanging, well)
    assert hanging.works.wait(30)
    assert well.works.wait(30)
    stopping.set()
    wait_until(lambda: not [each for each in threading.enumerate() if each.name == "beat-metrics"])


def test_what_redis_refuses_to_it_alone_is_told() -> None:
    sick = Sick(ResponseError("WRONGTYPE"), ResponseError("WRONGTYPE"))
    events, stopping = started(sick)
    assert sick.works.wait(30)
    stopping.set()
    assert [event.fields["error"] for event in events] == ["ResponseError: WRONGTYPE"]


def test_after_it_has_worked_for_long_the_same_error_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beat.engine.services._WELL_S", -1)
    sick = Sick(ValueError("bad day"), ValueError("bad day"))
    events, stopping = started(sick)
    assert sick.works.wait(30)
    stopping.set()
    assert len(events) == 2


def test_who_has_something_in_hand_is_given_a_moment_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Sick):
        def run(self, stopping: threading.Event) -> None:
            super().run(stopping)
            self.has_ended = not goes_on.wait(0.2)

    goes_on, stopping, slow = threading.Event(), threading.Event(), Slow()
    with services.beside([slow], list[Event]().append, stopping):
        assert slow.works.wait(30)
        stopping.set()
    assert slow.has_ended
    monkeypatch.setattr("beat.engine.services._LEAVE_S", 0.1)
    stuck = [Sick(), Sick()]
    never = threading.Event()
    began = time.monotonic()
    with services.beside(stuck, list[Event]().append, never):
        pass
    assert 0.1 <= time.monotonic() - began < 10
    never.set()
