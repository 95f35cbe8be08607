"""Where the code declares a schedule, and whether a scheduler knows everything that is declared there.

Only such a scheduler may conclude that a schedule is gone from the code. The name of an application and a module say
enough. An application without a name may be any program with a tasks.py, so its host and directory count, too.
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
    """Where a schedule was declared; what Redis does not know is empty."""

    host: str = ""
    module: str = ""
    file: str = ""
    """The absolute path."""

    @classmethod
    def of(cls, schedule: Schedule, host: str) -> Self:
        """Return where a schedule of this host's code is declared."""
        declared = schedule.declared
        return cls(host, declared.module, declared.path) if declared else cls(host)

    @property
    def directory(self) -> str:
        """Return the directory of the file."""
        return os.path.dirname(self.file)  # noqa: PTH120 (of a hundred thousand schedules)

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.module, self.file)))
        return f"{where} on {self.host}" if self.host else where


@dataclass(frozen=True)
class Known:
    """The declarations that a scheduler has all of."""

    modules: Container[str]
    host: str = ""
    directories: frozenset[str] | None = None
    """Those of its declarations, if the application has no name."""

    @classmethod
    def of(cls, schedules: Iterable[Schedule], app: str, *, host: str, modules: Container[str] | None = None) -> Self:
        """Return what these schedules and modules show; without modules, they are those of the schedules."""
        places = [Provenance.of(schedule, host) for schedule in schedules]
        directories = frozenset(place.directory for place in places) if app == UNNAMED else None
        return cls(frozenset(place.module for place in places) if modules is None else modules, host, directories)

    def has(self, place: Provenance) -> bool:
        """Return whether everything that is declared at this place is known."""
        return (not place.module or place.module in self.modules) and self.is_here(place)

    def is_here(self, place: Provenance) -> bool:
        """Return whether the place belongs to this application, as far as its name does not say so."""
        if self.directories is None or not place.file:
            return True
        return place.host == self.host and place.directory in self.directories


def read(store: Store, ids: Sequence[str]) -> Mapping[str, Provenance]:
    """Return where these schedules were declared, as the scheduler wrote it that last changed each."""
    with store.client.pipeline(transaction=False) as pipe:
        for each in ids:
            pipe.hmget(store.keys.schedule(each), Provenance._fields)
        found = pipe.execute(raise_on_error=False)
    return {
        each: Provenance(*(decoded(value or b"") for value in values)) if isinstance(values, list) else Provenance()
        for each, values in zip(ids, found, strict=True)
    }
