"""Record where the code declares a schedule, and decide whether a scheduler knows all declarations of that place.

Only such a scheduler may conclude that a schedule is gone from the code. For a named application, the module is enough.
An application without a name may be any program with a tasks.py, so its host and directory count, too.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from beat.config.sources import UNNAMED
from beat.storage.messages import decoded

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store


class Provenance(NamedTuple):
    """Where a schedule was declared; unknown parts are empty."""

    host: str = ""
    module: str = ""
    file: str = ""
    """The absolute path."""

    @classmethod
    def of(cls, schedule: Schedule, host: str) -> Self:
        """Return where this host's code declares a schedule."""
        declared = schedule.declared
        return cls(host, declared.module, declared.path) if declared else cls(host)

    @property
    def directory(self) -> str:
        """Return the directory of the file."""
        return os.path.dirname(self.file)  # noqa: PTH120 (faster for a hundred thousand schedules)

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.module, self.file)))
        return f"{where} on {self.host}" if self.host else where


@dataclass(frozen=True)
class Known:
    """The places whose declarations a scheduler knows completely."""

    modules: Container[str]
    host: str = ""
    directories: frozenset[str] | None = None
    """The directories of its declarations; None if the application has a name."""

    @classmethod
    def of(cls, schedules: Iterable[Schedule], app: str, *, host: str, modules: Container[str] | None = None) -> Self:
        """Return the places of these schedules; without `modules`, their modules are those of the schedules."""
        places = [Provenance.of(schedule, host) for schedule in schedules]
        directories = frozenset(place.directory for place in places) if app == UNNAMED else None
        return cls(frozenset(place.module for place in places) if modules is None else modules, host, directories)

    def has(self, place: Provenance) -> bool:
        """Return whether the scheduler knows every declaration of this place."""
        return (not place.module or place.module in self.modules) and self.is_here(place)

    def is_here(self, place: Provenance) -> bool:
        """Return whether an application without a name has this place; always True for one with a name."""
        if self.directories is None or not place.file:
            return True
        return place.host == self.host and place.directory in self.directories


def read(store: Store, ids: Sequence[str]) -> Mapping[str, Provenance]:
    """Return where each of these schedules was declared, as the scheduler that last changed it recorded."""
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hmget(store.keys.schedule(each), Provenance._fields)
        found = pipe.execute(raise_on_error=False)
    return {
        each: Provenance(*(decoded(value or b"") for value in values)) if isinstance(values, list) else Provenance()
        for each, values in zip(ids, found, strict=True)
    }
