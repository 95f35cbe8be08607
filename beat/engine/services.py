"""Run background services, one thread each. A failing service is restarted, and never stops the ticker."""

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
"""How long a service must have worked before its next error is logged again and its backoff starts over."""
_LEAVE_S = 1.0
"""How long all services together may take to stop, to deliver a message or release a lock."""


class Companion(Protocol):
    """A service in a thread of its own, such as metrics or alerts."""

    name: str

    def run(self, stopping: threading.Event) -> None:
        """Work until `stopping` is set; after an error, which is logged, this is called again."""


@contextmanager
def beside(companions: Iterable[Companion], emit: Emit, stopping: threading.Event) -> Iterator[None]:
    """Run the services within the context; at its end, wait for them up to `_LEAVE_S` seconds."""
    threads = start(companions, emit, stopping)
    yield
    until = time.monotonic() + _LEAVE_S
    for each in threads:
        each.join(max(until - time.monotonic(), 0))


def start(companions: Iterable[Companion], emit: Emit, stopping: threading.Event) -> list[threading.Thread]:
    """Start a thread for each service, and return the threads."""
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
        except Exception as e:  # noqa: BLE001 (a bug in a service must not end it)
            if time.monotonic() - began > _WELL_S:
                patience.reset()
                once.forget("")
            if not isinstance(e, connection.Errors) or isinstance(e, connection.Refused):  # else the ticker reports it
                once.say("", Event("companion_failed", fields={"companion": companion.name, "error": cause(e)}))
            patience.wait(stopping)
