"""Those who work beside the engine, each in a thread of its own: whatever they do, ticks go on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from beat import connection
from beat.alerts import crew
from beat.event import Event
from beat.health import Once, Patience, cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.connection import Redis
    from beat.event import Emit
    from beat.settings import Settings


class Companion(Protocol):
    """Something that an operator asked for, as metrics and alerts are."""

    name: str

    def run(self, stopping: threading.Event) -> None:
        """Works until it is time to stop; what it raises is told, and it begins again."""


def checked(settings: Settings) -> Settings:
    """The same; refuses what the companions cannot work with, before anything has begun."""
    return crew.checked(settings)


def wanted(settings: Settings, redis: Redis | str, name: str, emit: Emit) -> list[Companion]:  # noqa: ARG001 (soon)
    """Those that the settings ask for."""
    return [*crew.crew(settings, redis, emit)]


def start(companions: Iterable[Companion], emit: Emit, stopping: threading.Event) -> None:
    """From now on they work."""
    for each in companions:
        threading.Thread(target=_accompany, args=(each, emit, stopping), name=f"beat-{each.name}", daemon=True).start()


def _accompany(companion: Companion, emit: Emit, stopping: threading.Event) -> None:
    patience, once = Patience(), Once(emit)
    while not stopping.is_set():
        try:
            companion.run(stopping)
        except connection.Errors:
            patience.wait(stopping)  # the ticker says that Redis is away
        except Exception as e:  # noqa: BLE001 (a bug here is not the ticker's affair)
            once.say("", Event("companion_failed", fields={"companion": companion.name, "error": cause(e)}))
            patience.wait(stopping)
