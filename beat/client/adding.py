"""Schedules from data: declared as the code would, for functions that an application has exposed; and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from beat import declaring, overrides
from beat.client.changing import Changing
from beat.errors import DuplicateSchedule
from beat.placement import place
from beat.registrations import Origin, registration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from beat.client.standing import Standing
    from beat.options import Options
    from beat.protocol import Registration
    from beat.schedule import Schedule
    from beat.state import State

_TRIES = 10


class Adding(Changing):
    """A client that adds schedules and removes them."""

    def add(
        self,
        schedule_id: str,
        *,
        func: str,
        cron: str | None = None,
        replace: bool = False,
        expected_version: int | None = None,
        **given: Unpack[Options],
    ) -> Standing:
        """Adds a schedule of a function that an application has exposed, with the options of `@periodic`.

        One of this id is refused, unless it was added in the same way and `replace` is given: then its state and its
        history stay, and only a change of what decides its ticks moves the next one.
        """
        schedule = declaring.declare(func, cron, {**given, "id": schedule_id}, self.settings)
        with self._asking():
            for _ in range(_TRIES):
                [seen] = self._store.look([schedule_id])
                item = _added(schedule, seen, self._store.time(), replace=replace, version=expected_version)
                if item is None:
                    break
                [reply] = self._store.register([item], beat=self.by)
                if reply.code != "RETRY":
                    self._refuse(schedule_id, reply)
                    break
            return self.get_schedule(schedule_id)

    def remove(self, schedule_id: str, *, expected_version: int | None = None) -> None:
        """Deletes a schedule with its history; one that a live beat declares is refused, for it would come back."""
        version = "" if expected_version is None else str(expected_version)
        with self._asking():
            [reply] = self._operations.remove([(schedule_id, version)], by=self.by)
            self._refuse(schedule_id, reply)

    def remove_retired(self, ids: Sequence[str]) -> list[str]:
        """Deletes those of these that are retired, with their histories; which those were."""
        with self._asking():
            replies = self._operations.remove([(each, "") for each in ids], by=self.by, state="retired")
        return [each for each, reply in zip(ids, replies, strict=True) if reply.code == "OK"]


def _added(
    schedule: Schedule, seen: State | None, now: datetime, *, replace: bool, version: int | None
) -> Registration | None:
    """As the register script takes it; None when Redis has it all."""
    if seen is not None and seen.renamed_to:
        raise DuplicateSchedule(f"{schedule.id!r} was the id of {seen.renamed_to!r} until lately: give another id")
    if seen is not None and not replace:
        raise DuplicateSchedule(f"there is a schedule {schedule.id!r}: give another id, or replace it")
    ruling, rev = overrides.in_force(schedule, seen.override if seen else "")
    placed = place(ruling, seen, now, rev)
    origin = Origin("api", version="" if version is None else str(version))
    return placed and registration(schedule, seen, placed, origin)
