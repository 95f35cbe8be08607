"""Waiting for facts, never for time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(fact: Callable[[], T], seconds: float = 30, what: Callable[[], str] = str) -> T:
    """Returns the first true value of `fact`, and fails when there is none for so long."""
    end = time.monotonic() + seconds
    while not (value := fact()):
        assert time.monotonic() < end, f"waited {seconds} s in vain {what()}"
        time.sleep(0.01)
    return value


def in_time(took: float, most: float) -> None:
    """Fails when something took longer than this; that of a busy machine is forgiven once, as waiting in vain is."""
    assert took < most, f"waited {most} s in vain: it took {took:.2f} s"
