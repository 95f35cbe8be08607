"""Alerts: who is to be told of what, decided once by one of the beats, and sent until it was taken.

`rules` and `incidents` decide and know no Redis; `kept` is what Redis keeps; `decider` and `sender` work in threads of
their own, so that whatever a channel does, ticks go on.

Those who work on the alerts of a beat: one that decides, and one for each channel that sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.notify.alerts import config
from beat.notify.alerts.evaluator import Decider
from beat.notify.delivery import Sender
from beat.notify.outbox import Kept
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.store import Store

if TYPE_CHECKING:
    from beat.config.settings import Settings
    from beat.engine.events import Emit
    from beat.storage.connection import Redis


def check_settings(settings: Settings) -> Settings:
    """The same, if alerts can work with them; refuses them otherwise."""
    config.read(settings)
    return settings


def build_services(settings: Settings, redis: Redis | str, emit: Emit) -> list[Decider | Sender]:
    """None, if nobody asks for an alert."""
    wanted = config.read(settings)
    if not wanted.rules:
        return []

    def made() -> Kept:
        store = Store(connection.connect(redis), Keys(settings.prefix), events_limit=settings.events_limit)
        return Kept(store, settings.app, settings.lock_ttl)

    return [Decider(made, wanted.rules, emit), *(Sender(made, each, emit) for each in wanted.channels.values())]
