"""Read the arguments of runs as plain data, without importing or calling anything that they contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.queries import Questions
from beat.jobs import job_template
from beat.jobs.report.safe_pickle import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arguments(NamedTuple):
    """The arguments of a job, as far as they can be read."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    problem: str = ""
    """Why they cannot be read; empty if they can."""


class Inspecting(Questions):
    """A client that reads the arguments of runs."""

    def arguments(self, schedule_id: str, job_id: str | None = None) -> Arguments | None:
        """Return the arguments of a schedule's runs, or those of one run; None if RQ has no such job.

        Only plain data is read. Arguments that contain objects of classes, or are too large, have a `problem` instead.
        """
        with self._asking():
            found = self._read(self._snapshot(schedule_id, whole=False), schedule_id)
            key = self._keys.template(found.schedule_id) if job_id is None else job_template.job_key(job_id)
            client: Any = self._store.client
            data = client.hget(key, "data")
        if not data:
            return None
        if len(data) > LARGEST:
            return Arguments(problem=f"they are {len(data):,} bytes long, and no more than {LARGEST:,} are read")
        read = job_template.arguments(data, found.policies.serializer if found.policies else "pickle")
        if read is None or not isinstance(read[0], list | tuple) or not isinstance(read[1], Mapping):
            return Arguments(problem="they are of classes that only the application can read")
        return Arguments(*read)
