"""Times as people and programs write them, in the zone of a schedule: the same words as on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.errors import BeatError, NoRedis
from beat.words import instants
from beat.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client import Client
    from beat.words.instants import Meant
    from beat.zones import Zone


def zone_of(client: Client, schedule_id: str | None) -> Zone:
    """The zone of a schedule; that of the settings for all of them, UTC where nothing but a ledger is left."""
    if schedule_id is None:
        return zone(client.settings.tz)
    try:
        return zone(client.get(schedule_id).tz)
    except NoRedis:
        raise
    except BeatError:
        return zone("UTC")


def past(text: str | None, where: Zone, now: datetime, name: str) -> datetime | None:
    """When, or so long ago."""
    return None if text is None else instants.since(text, where, now, name)


def ahead(text: str | None, where: Zone, now: datetime, name: str) -> Meant | None:
    """When, or in so long."""
    return None if text is None else instants.coming(text, where, now, name)
