"""What is made aside: nobody waits for it, and it is made once, and not too often."""

from __future__ import annotations

import threading
from itertools import count

from beat.errors import NoRedis
from beat.web.cache import Background
from tests.support.facts import wait_until


def test_what_is_quick_is_there_at_once_and_kept() -> None:
    aside, made = Background(), count(1)
    assert [aside.newest("x", 60, lambda: next(made)) for _ in range(3)] == [1, 1, 1]


def test_nobody_waits_for_what_takes_long() -> None:
    aside, go, calls = Background(), threading.Event(), list[int]()

    def make() -> str:
        calls.append(1)
        go.wait(20)
        return "drawn"

    assert [aside.newest("x", 60, make) for _ in range(3)] == [None] * 3
    go.set()
    assert wait_until(lambda: aside.newest("x", 60, make)) == "drawn"
    assert len(calls) == 1, "once, however many ask"


def test_what_is_old_is_shown_until_there_is_something_newer() -> None:
    aside, made = Background(), count(1)
    assert aside.newest("x", 0, lambda: next(made)) == 1
    wait_until(lambda: (aside.newest("x", 0, lambda: next(made)) or 0) > 1)


def test_what_is_not_quick_is_begun_when_the_page_has_been_answered() -> None:
    aside = Background()
    assert aside.newest("x", 60, lambda: "drawn", quick=False) is None
    assert wait_until(lambda: aside.newest("x", 60, lambda: "drawn", quick=False)) == "drawn"


def test_while_redis_is_away_it_is_tried_again() -> None:
    aside, tries = Background(), count(1)

    def make() -> str:
        if next(tries) < 3:
            raise NoRedis("away")
        return "drawn"

    assert wait_until(lambda: aside.newest("x", 60, make)) == "drawn"
