"""Pause and resume one schedule or all of them, and decide what becomes of the ticks that a pause held."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from beat.client.change import Changing, definition_of, one_line
from beat.client.trigger import sent
from beat.engine import fire_items
from beat.errors import BadInstant, Refused, UnknownSchedule
from beat.policies import decide
from beat.storage.messages import Claim, Reply
from beat.storage.store import pages
from beat.timing import clock, durations

if TYPE_CHECKING:
    from beat.client.schedule_info import Standing
    from beat.storage.messages import Item

_SECOND, _INSTANT = timedelta(seconds=1), timedelta(microseconds=1)
_OTHER_STATES = ("paused", "disabled", "finished", "retired", "broken")
Until = datetime | timedelta | str
"""An aware datetime, or a duration from now, such as `"2h"`."""


class Pausing(Changing):
    """A client that pauses and resumes schedules."""

    def pause(
        self,
        schedule_id: str,
        until: Until | None = None,
        reason: str | None = None,
        *,
        expected_version: int | None = None,
    ) -> Standing:
        """Pause a schedule until a time, for a duration, or until an operator resumes it."""
        why, version = one_line(reason, "reason"), "" if expected_version is None else str(expected_version)

        def step(_found: Standing, now: datetime) -> Reply:
            named = {"by": self.by, "untl": _end(until, now), "reason": why}
            return self._operations.pause([(schedule_id, version)], **named)[0]

        return self._until_it_stands(schedule_id, expected_version, step)

    def pause_all(self, until: Until | None = None, reason: str | None = None) -> int:
        """Pause all active schedules of the namespace and return how many; leave other schedules as they are."""
        number, why = 0, one_line(reason, "reason")
        with self._asking():
            untl = _end(until, self._store.time())
            for page in pages((each, "") for each in self._ids()):
                replies = self._operations.pause(page, by=self.by, untl=untl, reason=why, scope="all")
                for (schedule_id, _), reply in zip(page, replies, strict=True):
                    if reply.code == "PAST":
                        self._refuse(schedule_id, reply)
                    number += reply.code == "OK"
        return number

    def resume(self, schedule_id: str, *, catch_up: bool = False, expected_version: int | None = None) -> Standing:
        """End a pause and skip the ticks that it held; with `catch_up`, the misfire policy decides them.

        Unless `catch_up` is given, nothing fires at once.
        """
        version = "" if expected_version is None else str(expected_version)
        tried: list[datetime] = []

        def step(found: Standing, now: datetime) -> Reply:
            if tried and found.state == "active":
                return Reply("SAME")
            tried.append(now)
            reply = sent(self._store, _ended(found, now, catch_up=catch_up)._replace(max_runs=version), self.by)
            # An earlier try was applied and its reply was lost, or another client was faster.
            return Reply("SAME") if reply == Reply("INACTIVE", "active") else reply

        return self._until_it_stands(schedule_id, expected_version, step)

    def resume_all(self, *, catch_up: bool = False) -> int:
        """Resume the schedules that `pause_all` paused and return how many; leave other pauses in force."""
        with self._asking():
            paused = [each.decode() for each in self._store.client.sscan_iter(self._keys.index("paused"), count=500)]
            found = [each for each in paused if (pause := self.get(each).pause) and pause.scope == "all"]
        return sum(self._resumed(each, catch_up=catch_up) for each in found)

    def number_active(self) -> int:
        """Return how many schedules are active: those that are in no index of another state."""
        client: Any = self._store.client
        with self._asking():
            others = (client.scard(self._keys.index(state)) for state in _OTHER_STATES)
            return max(0, int(client.scard(self._keys.schedules)) - sum(map(int, others)))

    def _resumed(self, schedule_id: str, *, catch_up: bool) -> bool:
        """Resume a schedule; return False if another client was faster or the pause has ended by itself."""
        try:
            self.resume(schedule_id, catch_up=catch_up)
        except (Refused, UnknownSchedule):
            return False
        return True


def _end(until: Until | None, now: datetime) -> str:
    """Return the end of a pause as text, rounded up to whole seconds; empty for a pause without an end."""
    if until is None:
        return ""
    try:
        at = clock.utc(until, "until") if isinstance(until, datetime) else now + durations.parse(until, "until")
    except OverflowError as e:
        raise BadInstant(f"until {until!r:.60} lies beyond the calendar: write '2h'") from e
    whole = at.replace(microsecond=0)
    return clock.text(whole if whole == at else whole + _SECOND)


def _ended(found: Standing, now: datetime, *, catch_up: bool) -> Item:
    """Return the item that ends a pause and skips the held ticks, or leaves them to the misfire policy."""
    follows = found.policies is not None and found.policies.follows
    if found.state != "paused" or (found.next_run is None and not follows):
        raise Refused(f"{found.schedule_id} is {found.state or 'broken'}, not paused: nothing was changed")
    schedule, tick = definition_of(found), found.next_run
    if tick is None:  # it follows another schedule: its ticks were skipped one by one during the pause
        return fire_items.awake(Claim(found.schedule_id, found.rev, "", 0, ""), found.rev, schedule).items[0]
    held = decide.resume(schedule, tick, tick if catch_up else now + _INSTANT)
    return fire_items.resumed(found.rev, schedule, held, clock.text(tick))
