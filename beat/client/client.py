"""Provide `Client`, which reads and changes an installation from Python.

A client needs no running scheduler and does not import the application. The module `queries` has the questions that
only read. Every change of a schedule is one atomic script in Redis and records the operator.
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
    """A client that reads and changes one installation.

    `redis` is a URL or a client; without it, the settings name the Redis server. Options are settings by name, such as
    `prefix="app:"`. `by` names the operator in the ledger and in events. Its default is `user@host`.

    Every method raises NoRedis when Redis does not answer. It raises UnknownSchedule, with the nearest id, if there is
    no such schedule. A change raises Refused if the state in Redis forbids it. It raises Conflict if the schedule no
    longer has the `expected_version`, because another client has changed it.
    """

    @classmethod
    def from_settings(cls, *, by: str | None = None, **options: Any) -> Self:
        """Return a client for the Redis server that the settings name."""
        return cls(by=by, **options)
