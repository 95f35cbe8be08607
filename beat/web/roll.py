"""The roll of beats, as the page has seen them: a beat that goes without a word is missed for a while.

Redis soon forgets a beat that has died while another lives. A beat that stops takes its heartbeat away at once; one
that dies leaves it until that lapses. So whoever has looked all the time can tell one from the other.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from beat.client.beats import Instance
    from beat.client.surveying import Attendance

_LAPSES = timedelta(seconds=20)
_SLACK = timedelta(seconds=2)
_REMEMBERED = timedelta(minutes=15)
STUCK = timedelta(seconds=30)
"""How old a last pass may be."""


class Missing(NamedTuple):
    """A beat that is no longer there."""

    name: str
    since: datetime
    """When it was last seen, or its heartbeat lapsed."""


class Roll:
    """Those that one page has seen."""

    def __init__(self) -> None:
        self._seen: dict[str, Instance] = {}
        self._missing: dict[str, Missing] = {}
        self._looked: datetime | None = None
        self._lock = threading.Lock()

    def call(self, found: Attendance) -> list[Missing]:
        """Who is missing, the newest first."""
        alive = {each.name for each in found.beats}
        with self._lock:
            watched = self._looked is not None and found.now - self._looked < _LAPSES
            for name, last in self._seen.items():
                if watched and name not in alive and last.seen_at and found.now - last.seen_at > _LAPSES - _SLACK:
                    self._missing.setdefault(name, Missing(name, last.seen_at))
            for name, at in found.lapsed:
                self._missing.setdefault(name, Missing(name, at))
            self._seen = {each.name: each for each in found.beats}
            self._looked = found.now
            self._missing = {
                name: each for name, each in self._missing.items() if name not in alive and self._counts(each, found)
            }
            return sorted(self._missing.values(), key=lambda each: each.since, reverse=True)

    def _counts(self, missing: Missing, found: Attendance) -> bool:
        """For a while, and until another was started: then it has been replaced."""
        replaced = any(each.started_at and each.started_at > missing.since for each in found.beats)
        return not replaced and found.now - missing.since < _REMEMBERED


def stuck(beats: Iterable[Instance], now: datetime) -> list[Instance]:
    """Those that show life and do not look for due ticks."""
    return [each for each in beats if (since := each.last_pass or each.started_at) and now - since > STUCK]
