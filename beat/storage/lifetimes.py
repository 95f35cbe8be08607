"""How long each lock lasts, and how far ahead each score may lie; in ms, by Redis' clock.

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
"""How long a scheduler that has looked at the open runs keeps the others from looking, too."""
SEARCH_MS = 18_000
"""The same for the search for jobs that vanished from their queue."""
REPAIRED_MS = 50_000
"""The same for the repair of the indexes."""
REPAIRING_MS = 20_000
"""How long a repair keeps others from repairing, unless it is extended."""
MONITORING_MS = 10_000
ALERTING_MS = 10_000
"""After so long another scheduler takes over from one that was killed."""
HEARTBEAT_MS = 20_000
ANNOUNCED_MS = 30_000
"""How long schedulers count as alive, and what they announce as declared: longer than a scheduler takes to restart."""
HIDDEN_MS = 30_000
"""How long a schedule that cannot be fired is hidden at most, and a tick that waits and cannot be let in."""
OPEN_MS, OPEN_SHARE_MS = 10_000, 0.2
"""After so long an open run is looked at again at the latest; of many, after so long for each of them."""
TRY_AGAIN_MS = 300_000
"""After so long at the latest a message is sent again that a channel did not take."""


def locks(keys: Keys, app: str) -> Mapping[str, int]:
    """Return the longest life of each lock of which there is one."""
    return {
        keys.watching: WATCH_MS,
        keys.searched: SEARCH_MS,
        keys.repaired: REPAIRED_MS,
        keys.repairing: REPAIRING_MS,
        keys.monitoring: MONITORING_MS,
        keys.alerting(app): ALERTING_MS,
    }


def indexes(keys: Keys, open_runs: int) -> Mapping[str, int]:
    """Return how far ahead the scores of each index may lie that says when to look again, or when something expires."""
    return {
        keys.open: max(OPEN_MS, int(open_runs * OPEN_SHARE_MS)),
        keys.waiting_slots: HIDDEN_MS,
        keys.instances: HEARTBEAT_MS,
        keys.announcements: ANNOUNCED_MS,
    }
