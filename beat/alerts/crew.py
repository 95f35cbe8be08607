"""Those who work on the alerts of a beat: one that decides, and one for each channel that sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat import connection
from beat.alerts import config
from beat.alerts.decider import Decider
from beat.alerts.kept import Kept
from beat.alerts.sender import Sender
from beat.keys import Keys
from beat.store import Store

if TYPE_CHECKING:
    from beat.connection import Redis
    from beat.event import Emit
    from beat.settings import Settings


def checked(settings: Settings) -> Settings:
    """The same, if alerts can work with them; refuses them otherwise."""
    config.read(settings)
    return settings


def crew(settings: Settings, redis: Redis | str, emit: Emit) -> list[Decider | Sender]:
    """None, if nobody asks for an alert."""
    wanted = config.read(settings)
    if not wanted.rules:
        return []

    def made() -> Kept:
        store = Store(connection.connect(redis), Keys(settings.prefix), events_limit=settings.events_limit)
        return Kept(store, settings.app, settings.lock_ttl)

    return [Decider(made, wanted.rules, emit), *(Sender(made, each, emit) for each in wanted.channels.values())]
