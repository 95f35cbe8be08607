"""What happened to schedules with a monitor, from the outbox, and what Redis knows of them.

The group has one consumer, whichever beat that is at the time: what one has left, the next goes on with at once. Only
who has the lock is handed something: what a beat took that has lost it, nobody would look for.

One beat's time at telling monitors: it takes events, looks who has started, and hands messages to the lanes.
"""

from __future__ import annotations

import functools
import queue
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from beat.engine.events import Event
from beat.engine.health import Once
from beat.errors import DeclarationError
from beat.events.event import Notice
from beat.events.start import place
from beat.jobs import job_template
from beat.notify.delivery import GIVE_UP_S, Lane, Letter
from beat.notify.monitors.pings import BEGINS, ENDS, Ping, ended
from beat.schedule import serialize
from beat.storage.event_stream import START

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from beat.engine.events import Emit
    from beat.notify.monitors.pings import Request
    from beat.schedule.schedule import Schedule
    from beat.storage.connection import Redis
    from beat.storage.event_stream import Entry, Outbox
    from beat.storage.keys import Keys


GROUP = CONSUMER = "monitors"
INDEX = "monitored"
_PAGE = 100
_DAY_MS = 86_400_000
_SINCE = "1m"
"""How far a new group looks back: the first schedule with a monitor may tick before a beat has noticed it."""


class Taken(NamedTuple):
    """An event, and what it says; None for what is nobody's business, or gone."""

    id: str
    notice: Notice | None
    is_gone: bool = False
    """It was trimmed before anybody acknowledged it."""


def _taken(entry: Entry) -> Taken:
    return Taken(entry.id, Notice.read(entry.id, entry.fields or {}), entry.fields is None)


class Reading:
    """The place in the outbox, for who has the lock with this token."""

    def __init__(self, outbox: Outbox, token: str) -> None:
        self._outbox, self._token = outbox, token
        self._known = self._told = ""
        self.missed = 0
        """How many events were gone before they could be read, as far as that is known."""

    def left(self) -> Iterator[list[Taken]]:
        """What was handed out before and never acknowledged, page by page."""
        after = START
        while page := self._outbox.left(group=GROUP, consumer=CONSUMER, after=after, count=_PAGE):
            after = page[-1].id
            yield [_taken(each) for each in page]

    def take(self) -> list[Taken]:
        """What comes next; perhaps nothing, and nothing when the lock is lost."""
        handed = self._outbox.take(
            group=GROUP,
            consumer=CONSUMER,
            count=_PAGE,
            start=place(_SINCE, None)(self._outbox) if not self._known else START,
            known=self._known,
            told=self._told,
            mine="no",
            idle=_DAY_MS,
            token=self._token,
        )
        if handed.code == "FENCED":
            return []
        lost = handed.code == "LOST"
        self._known = "" if lost else handed.stands
        self._told = str(handed.gone) if handed.code == "MISSED" else ""
        self.missed += handed.missed or 0
        return [_taken(each) for each in handed.entries]

    def acknowledge(self, ids: Sequence[str]) -> None:
        """They need not come again."""
        if ids:
            self._outbox.acknowledge(GROUP, ids)


def leave(outbox: Outbox) -> None:
    """What happens from now on is nobody's business, until there is a monitor again: then it begins anew."""
    outbox.disband(GROUP)


class Register:
    """The schedules that have a monitor."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client, self._keys = client, keys

    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self._client.exists(self._keys.index(INDEX))

    def among(self, ids: Collection[str]) -> dict[str, tuple[Schedule, str]]:
        """Return those of these schedules that have a monitor, as far as they can be read, each with its source."""
        asked = list(ids)
        if not asked:
            return {}
        with self._client.pipeline(transaction=False) as pipe:
            pipe.smismember(self._keys.index(INDEX), asked)
            [marks] = pipe.execute(raise_on_error=False)
        if isinstance(marks, Exception):  # an index only: repair makes it anew
            return {}
        mine = [each for each, mark in zip(asked, marks, strict=True) if mark]
        found = self._each(mine, "definition", self._keys.schedule)
        sources = self._each(mine, "source", self._keys.schedule)
        read = {each: (_read(text), _text(source)) for each, text, source in zip(mine, found, sources, strict=True)}
        return {each: (known, source) for each, (known, source) in read.items() if known and known.monitor}

    def started(self, job_ids: Sequence[str]) -> list[str]:
        """Those of these jobs that a worker is at, by RQ's own records."""
        found = self._each(job_ids, "status", job_template.job_key)
        return [each for each, status in zip(job_ids, found, strict=True) if status == b"started"]

    def _each(self, names: Sequence[str], field: str, key: Callable[[str], str]) -> list[object]:
        with self._client.pipeline(transaction=False) as pipe:
            for each in names:
                pipe.hget(key(each), field)
            return list(pipe.execute(raise_on_error=False)) if names else []


def _read(text: object) -> Schedule | None:
    return _schedule(_text(text)) if isinstance(text, bytes) else None


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


@functools.lru_cache(maxsize=1000)
def _schedule(text: str) -> Schedule | None:
    try:
        return serialize.read(text)
    except DeclarationError:
        return None


MOST_WAITING = 1000
"""How many runs are looked at, whether they have started; of the others only the end is told."""
_LOOK_S = 1.0


class Round:
    """From the moment that this beat got the lock."""

    def __init__(
        self, reading: Reading, register: Register, request: Callable[[Ping], Request | str], emit: Emit
    ) -> None:
        self._reading, self._register, self._request, self._emit = reading, register, request, emit
        self._once = Once(emit)
        self._lanes: dict[str, Lane] = {}
        self._done: queue.SimpleQueue[tuple[str, ...]] = queue.SimpleQueue()
        self._waiting: dict[
            str, tuple[str, Schedule, str]
        ] = {}  # job id → the event that began it, and whose run it is
        self._looked_at = 0.0

    def resume(self) -> None:
        """Goes on with what another beat has left."""
        for page in self._reading.left():
            self._handle(page)

    def turn(self) -> bool:
        """Whether something came."""
        page = [] if any(lane.is_full for lane in self._lanes.values()) else self._reading.take()
        self._handle(page)
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._looked_at = time.monotonic()
            self._look()
        self.settle()
        return bool(page)

    def settle(self) -> None:
        """Acknowledges what was sent or given up, and what is nobody's business."""
        ids: list[str] = []
        while not self._done.empty():
            ids += self._done.get()
        self._reading.acknowledge(ids)

    def stop(self) -> None:
        """Nothing more is sent."""
        for lane in self._lanes.values():
            lane.stop()

    def _handle(self, page: Sequence[Taken]) -> None:
        if gone := self._reading.missed + sum(each.is_gone for each in page):
            self._reading.missed = 0
            self._emit(Event("monitor_missed", fields={"count": gone, "why": "gone from the outbox before"}))
        told = [(each.id, each.notice) for each in page]
        wanted = {n.schedule_id for _, n in told if n and n.job_id and (n.type in BEGINS or n.type in ENDS)}
        known = self._register.among(wanted)
        for event_id, notice in told:
            told_of = known.get(notice.schedule_id) if notice and notice.job_id else None
            if notice is None or told_of is None or notice.entry.get("shards"):
                self._done.put((event_id,))
            elif notice.type in ENDS:
                self._forget(str(notice.job_id))
                self._tell(ended(notice, *told_of))
            elif notice.type in BEGINS:
                self._await(str(notice.job_id), event_id, *told_of)
            else:
                self._done.put((event_id,))

    def _await(self, job_id: str, event_id: str, schedule: Schedule, source: str) -> None:
        self._forget(job_id)
        self._waiting[job_id] = event_id, schedule, source
        if len(self._waiting) > MOST_WAITING:
            self._forget(next(iter(self._waiting)))

    def _forget(self, job_id: str) -> None:
        """Its start is no news any more."""
        if found := self._waiting.pop(job_id, None):
            self._done.put((found[0],))

    def _look(self) -> None:
        for job_id in self._register.started(list(self._waiting)):
            event_id, schedule, source = self._waiting.pop(job_id)
            self._tell(Ping("start", schedule, job_id, (event_id,), source=source))

    def _tell(self, ping: Ping) -> None:
        found, done = self._request(ping), partial(self._done.put, ping.settles)
        if isinstance(found, str):
            if found:
                service = ping.schedule.monitor.service if ping.schedule.monitor else ""
                fields = {"service": service, "error": found}
                self._once.say(ping.schedule.id, Event("monitor_failed", ping.schedule.id, fields))
            done()
            return
        lane = self._lanes.get(found.service) or self._lanes.setdefault(found.service, Lane(found.service, self._emit))
        lane.put(Letter(ping.schedule.id, found, done, time.monotonic() + GIVE_UP_S))
