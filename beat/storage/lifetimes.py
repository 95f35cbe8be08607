"""Define how long each lock lasts, and how far ahead each score may lie, in ms by Redis' clock.

A lock or score further ahead was written before Redis' clock went back. The scripts that meet it correct it
(`parts/remaining.lua`, `parts/ahead.lua`), and the doctor names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.storage.keys import Keys

LOCK_MS = 10_000
"""How long a claimed schedule stays locked, unless the settings say otherwise."""
WATCH_MS = 450
"""How long a scheduler that has checked the open runs keeps other schedulers from checking them."""
SEARCH_MS = 18_000
"""How long a search for jobs that vanished from their queue keeps other schedulers from searching."""
REPAIRED_MS = 50_000
"""How long a finished repair of the indexes keeps other schedulers from repairing."""
REPAIRING_MS = 20_000
"""How long a running repair keeps other schedulers from repairing, unless it extends its lock."""
MONITORING_MS = 10_000
ALERTING_MS = 10_000
"""After this time, another scheduler takes over from one that was killed."""
HEARTBEAT_MS = 20_000
ANNOUNCED_MS = 30_000
"""How long a heartbeat and an announcement last: longer than a scheduler takes to restart."""
HIDDEN_MS = 30_000
"""How long a schedule that cannot be fired, or a waiting tick that cannot be admitted, is hidden at most."""
OPEN_MS, OPEN_SHARE_MS = 10_000, 0.2
"""The longest time between two checks of an open run, and the time per run that applies instead if there are many."""
TRY_AGAIN_MS = 300_000
"""The longest time before an undelivered message is sent to its channel again."""


def locks(keys: Keys, app: str) -> Mapping[str, int]:
    """Return the longest lifetime of each lock that an installation has once, by key."""
    return {
        keys.watching: WATCH_MS,
        keys.searched: SEARCH_MS,
        keys.repaired: REPAIRED_MS,
        keys.repairing: REPAIRING_MS,
        keys.monitoring: MONITORING_MS,
        keys.alerting(app): ALERTING_MS,
    }


def indexes(keys: Keys, open_runs: int) -> Mapping[str, int]:
    """Return how far ahead the scores of each index may lie, for indexes that say when to check or expire something."""
    return {
        keys.open: max(OPEN_MS, int(open_runs * OPEN_SHARE_MS)),
        keys.waiting_slots: HIDDEN_MS,
        keys.instances: HEARTBEAT_MS,
        keys.announcements: ANNOUNCED_MS,
    }
