"""Those who work beside the engine, each in a thread of its own: whatever they do, ticks go on."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from beat.engine.events import Event
from beat.engine.health import Once
from beat.storage import connection
from beat.storage.backoff import Patience, cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beat.engine.events import Emit


_WELL_S = 60
"""After so long without an error the next one is news."""
_LEAVE_S = 1.0
"""All together have so long: a message that is on its way may arrive, and a lock is given back."""


class Companion(Protocol):
    """Something that an operator asked for, as metrics and alerts are."""

    name: str

    def run(self, stopping: threading.Event) -> None:
        """Works until it is time to stop; what it raises is told, and it begins again."""


@contextmanager
def beside(companions: Iterable[Companion], emit: Emit, stopping: threading.Event) -> Iterator[None]:
    """From now on they work; at the end they are given a moment for the step that each is at."""
    threads = start(companions, emit, stopping)
    yield
    until = time.monotonic() + _LEAVE_S
    for each in threads:
        each.join(max(until - time.monotonic(), 0))


def start(companions: Iterable[Companion], emit: Emit, stopping: threading.Event) -> list[threading.Thread]:
    """From now on they work."""
    threads = [
        threading.Thread(target=_accompany, args=(each, emit, stopping), name=f"beat-{each.name}", daemon=True)
        for each in companions
    ]
    for each in threads:
        each.start()
    return threads


def _accompany(companion: Companion, emit: Emit, stopping: threading.Event) -> None:
    patience, once = Patience(), Once(emit)
    while not stopping.is_set():
        began = time.monotonic()
        try:
            companion.run(stopping)
        except Exception as e:  # noqa: BLE001 (a bug here is not the ticker's affair)
            if time.monotonic() - began > _WELL_S:
                patience.reset()
                once.forget("")
            if not isinstance(e, connection.Errors) or isinstance(e, connection.Refused):  # else the ticker says it
                once.say("", Event("companion_failed", fields={"companion": companion.name, "error": cause(e)}))
            patience.wait(stopping)
