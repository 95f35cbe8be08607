"""The client: asks and changes, with no beat alive and without importing the application.

What can be asked is in `questions`. Every change is one atomic script, and says who made it.
"""

from __future__ import annotations

from typing import Any, Self

from beat.client.add import Adding
from beat.client.backfill import Backfilling
from beat.client.job_arguments import Inspecting
from beat.client.overview import Surveying
from beat.client.pause import Pausing
from beat.client.plan import Comparing
from beat.client.reschedule import Rescheduling


class Client(Backfilling, Pausing, Rescheduling, Adding, Surveying, Inspecting, Comparing):
    """A client that reads and changes one installation. `redis` is a URL or a client; the settings name it otherwise.

    Options are settings by name, as in `prefix="app:"`. `by` names the operator in the ledger and the events; it is
    `user@host` unless it is given. Every method raises NoRedis when Redis does not answer, and UnknownSchedule with the
    nearest name. A change raises Refused when the state in Redis forbids it, and Conflict when the schedule no longer
    has the `expected_version`, because another client has changed it.
    """

    @classmethod
    def from_settings(cls, *, by: str | None = None, **options: Any) -> Self:
        """A client of the Redis that the settings name."""
        return cls(by=by, **options)
