"""Put schedules on hold when no running scheduler declares them, and retire them after a while.

A scheduler does this only for schedules of its own application, from places whose declarations it knows completely.
Schedules of other places may still be in the code of another scheduler.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.errors import BeatError
from beat.policies import decide
from beat.schedule import serialize
from beat.storage import announcements, provenance
from beat.storage.operations import Operations, Stretch
from beat.storage.store import pages
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beat.engine.events import Emit
    from beat.engine.registrar import Sync
    from beat.schedule.schedule import Schedule
    from beat.storage.messages import Reply
    from beat.storage.provenance import Provenance
    from beat.storage.store import Store

LOOK_S = 60
_MS, _SECOND = 1000, timedelta(seconds=1)
_HELD = {"HELD", "PAUSED"}


class Retirement:
    """The schedules of one application that no running scheduler declares."""

    def __init__(self, store: Store, *, beat: str, app: str, after: timedelta, emit: Emit) -> None:
        self._store, self._operations, self._emit = store, Operations(store), emit
        self._beat, self._app, self._after_ms = beat, app, int(after.total_seconds() * _MS)
        self._looked_at = -float(LOOK_S)
        self._held: set[str] = set()
        self._elsewhere: set[str] = set()
        """Schedules declared in places that this scheduler does not know completely."""
        self._nameless: set[str] = set()
        """Schedules that are left alone because the application has no name, and that were reported."""

    def turn(self, sync: Sync, *, at_once: bool = False) -> None:
        """Look for undeclared schedules once a minute, or `at_once` when another set of declarations came or went."""
        if not sync.schedules or not (at_once or time.monotonic() - self._looked_at >= LOOK_S):
            return
        self._looked_at = time.monotonic()
        mine = self._store.keys.app(self._app)
        if int(self._store.client.scard(mine)) <= len(sync.schedules) - len(sync.older | sync.refused):
            return  # they are all declared
        known = (each.decode(errors="replace") for each in self._store.client.sscan_iter(mine, count=1000))
        if at_once:  # a schedule may have been registered from another place since
            self._elsewhere.clear()
        for page in pages(each for each in known if each not in sync.schedules and each not in self._elsewhere):
            places = provenance.read(self._store, page)
            self._elsewhere |= {each for each, place in places.items() if not sync.known.has(place)}
            self._warn({each: place for each, place in places.items() if not sync.known.is_here(place)})
            if ids := [each for each in page if each not in self._elsewhere]:
                self.retire(ids)

    def _warn(self, nameless: Mapping[str, Provenance]) -> None:
        """Report undeclared schedules that are left alone because the application has no name, each once."""
        news = {each: place for each, place in nameless.items() if each not in self._nameless}
        news = {each: news[each] for each in announcements.undeclared(self._store, list(news))}
        self._nameless |= news.keys()
        if news:
            fields = {"count": len(news), "ids": sorted(news)[:10], "place": str(news[min(news)])}
            self._emit(Event("nameless", min(news), fields))

    def retire(self, ids: Sequence[str]) -> list[str]:
        """Put these schedules on hold, retire those that were on hold for long enough, and return the retired ones."""
        answers = dict(zip(ids, self._say([Stretch(each) for each in ids]), strict=True))
        if due := [(each, reply.words) for each, reply in answers.items() if reply.code == "DUE"]:
            stretches = [self._stretch(each, tick) for each, tick in due]
            answers |= {item.id: reply for item, reply in zip(stretches, self._say(stretches), strict=True)}
        for each, reply in answers.items():
            if reply.code in _HELD and each not in self._held:
                self._held.add(each)
                when = f"in {int(reply.words) // _MS} s" if reply.words else "when its pause has ended"
                self._emit(Event("held", each, {"when": when}))
            elif reply.code == "OK":
                self._emit(Event("retired", each))
        retired = [each for each, reply in answers.items() if reply.code == "OK"]
        self._held -= {each for each, reply in answers.items() if reply.code not in _HELD}
        return retired

    def _say(self, items: Sequence[Stretch]) -> list[Reply]:
        return self._operations.retire(items, beat=self._beat, app=self._app, retire_after=self._after_ms)

    def _stretch(self, schedule_id: str, tick: str) -> Stretch:
        """Return the stretch of ticks that were held up to now, which are skipped when the schedule is retired."""
        [(_, text)] = self._store.definitions([schedule_id])
        rule = _readable(text)
        if rule is None:
            return Stretch(schedule_id, tick, tick, 1)
        first = clock.read(tick)
        held = decide.resume(rule, first, max(self._store.time(), first + _SECOND))
        following = clock.text(held.next) if held.next else ""
        return Stretch(schedule_id, tick, clock.text(held.last), held.count, following)


def _readable(text: str) -> Schedule | None:
    try:
        return serialize.read(text)
    except BeatError:
        return None
