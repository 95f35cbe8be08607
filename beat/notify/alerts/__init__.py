"""Alert about schedules, queues and schedulers: one scheduler decides, and messages are sent until accepted.

`rules` and `incidents` decide and know no Redis. `evaluator` reads events and writes decisions, and a sender for each
channel delivers the messages. Each runs in its own thread, so a hanging channel never delays a tick.
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
    """Return the settings unchanged; raise ConfigError if their alerts are invalid."""
    config.read(settings)
    return settings


def build_services(settings: Settings, redis: Redis | str, emit: Emit) -> list[Decider | Sender]:
    """Return the evaluator and one sender per channel, or an empty list if there are no rules."""
    wanted = config.read(settings)
    if not wanted.rules:
        return []

    def made() -> Kept:
        store = Store(connection.connect(redis), Keys(settings.prefix), events_limit=settings.events_limit)
        return Kept(store, settings.app, settings.lock_ttl)

    return [Decider(made, wanted.rules, emit), *(Sender(made, each, emit) for each in wanted.channels.values())]
