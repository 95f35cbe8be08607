"""The client: asks and changes, with no beat alive and without importing the application.

What can be asked is in `questions`. Every change is one atomic script, and says who made it.
"""

from __future__ import annotations

from typing import Any, Self

from beat.client.adding import Adding
from beat.client.backfilling import Backfilling
from beat.client.comparing import Comparing
from beat.client.inspecting import Inspecting
from beat.client.pausing import Pausing
from beat.client.rescheduling import Rescheduling
from beat.client.surveying import Surveying


class Client(Backfilling, Pausing, Rescheduling, Adding, Surveying, Inspecting, Comparing):
    """Asks and changes one installation. `redis` is a URL, a client, or what the settings say.

    Options are settings by name, as in `prefix="app:"`. `by` is who makes changes, `user@host` unless it is given: it
    stands in the ledger and among the events. Every method raises NoRedis when Redis does not answer, and
    UnknownSchedule with the nearest name. A change raises Refused when what stands in Redis speaks against it, and
    Conflict when somebody else has changed the schedule and it no longer has the `expected_version`.
    """

    @classmethod
    def from_settings(cls, *, by: str | None = None, **options: Any) -> Self:
        """A client of the Redis that the settings name."""
        return cls(by=by, **options)
