"""Cache definitions of schedules: those of the scheduler's own code, and those read from Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from beat.errors import DeclarationError
from beat.schedule import serialize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.schedule.schedule import Schedule
    from beat.storage.messages import Claim


class Shelf(Protocol):
    """A source of definitions; the store is one."""

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the rev and the text of each definition."""


class Page(NamedTuple):
    """A definition, or why it cannot be read."""

    rev: str
    schedule: Schedule | None
    problem: str = ""


class Book:
    """The newest known definition of each schedule. A claim with another rev makes it read that definition again."""

    def __init__(self, shelf: Shelf, known: Iterable[tuple[Schedule, str]] = ()) -> None:
        self._shelf = shelf
        self._pages = {schedule.id: Page(rev, schedule) for schedule, rev in known}

    def find(self, claims: Sequence[Claim]) -> list[Page]:
        """Return the definition for each claim, of the rev that Redis has now."""
        self._learn([claim.id for claim in claims if self._rev(claim.id) != claim.rev])
        return [self._pages[claim.id] for claim in claims]

    def functions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return each id with the path of its function, which is empty if the definition cannot be read."""
        self._learn([each for each in ids if each not in self._pages])
        pages = ((each, self._pages[each].schedule) for each in ids)
        return [(each, schedule.func if schedule else "") for each, schedule in pages]

    def _learn(self, ids: Sequence[str]) -> None:
        for each, (rev, text) in zip(ids, self._shelf.definitions(ids) if ids else (), strict=True):
            self._pages[each] = _read(each, rev, text)

    def _rev(self, schedule_id: str) -> str | None:
        page = self._pages.get(schedule_id)
        return page.rev if page and page.schedule else None  # an unreadable definition may have been repaired


def _read(schedule_id: str, rev: str, text: str) -> Page:
    try:
        schedule = serialize.read(text)
    except DeclarationError as e:
        return Page(rev, None, f"definition {e}")
    if schedule.id != schedule_id:
        return Page(rev, None, f"definition is that of {schedule.id}")
    return Page(rev, schedule)
