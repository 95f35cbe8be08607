"""Read the event stream for schedules with a monitor, and queue their pings.

The consumer group has one consumer that all schedulers share, so the next lock owner continues at once with events that
were read and not acknowledged. Only the lock owner receives new events, because an event that another scheduler
received would stay pending until the next change of owner.
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
"""How far back a new group starts, because the first schedule with a monitor may tick before a scheduler notices it."""


class Taken(NamedTuple):
    """An event and its notice, which is None if the entry cannot be read or is gone."""

    id: str
    notice: Notice | None
    is_gone: bool = False
    """Whether the event was trimmed from the stream before it was acknowledged."""


def _taken(entry: Entry) -> Taken:
    return Taken(entry.id, Notice.read(entry.id, entry.fields or {}), entry.fields is None)


class Reading:
    """The reader of the event stream, for the owner of the lock with this token."""

    def __init__(self, outbox: Outbox, token: str) -> None:
        self._outbox, self._token = outbox, token
        self._known = self._told = ""
        self.missed = 0
        """How many events were trimmed before they could be read, as far as that is known."""

    def left(self) -> Iterator[list[Taken]]:
        """Yield, page by page, the events that were read before and not acknowledged."""
        after = START
        while page := self._outbox.left(group=GROUP, consumer=CONSUMER, after=after, count=_PAGE):
            after = page[-1].id
            yield [_taken(each) for each in page]

    def take(self) -> list[Taken]:
        """Return the next events; the list is empty if there are none or the lock is lost."""
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
        """Acknowledge events, so that Redis does not deliver them again."""
        if ids:
            self._outbox.acknowledge(GROUP, ids)


def leave(outbox: Outbox) -> None:
    """Delete the consumer group, so that a new one starts with recent events when there is a monitor again."""
    outbox.disband(GROUP)


class Register:
    """The schedules that have a monitor, by their index in Redis."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client, self._keys = client, keys

    def is_empty(self) -> bool:
        """Return whether no schedule has a monitor."""
        return not self._client.exists(self._keys.index(INDEX))

    def among(self, ids: Collection[str]) -> dict[str, tuple[Schedule, str]]:
        """Return those of these schedules that have a monitor, as far as they can be read, each with its source."""
        asked = list(ids)
        if not asked:
            return {}
        with self._client.pipeline(transaction=False) as pipe:
            pipe.smismember(self._keys.index(INDEX), asked)
            [marks] = pipe.execute(raise_on_error=False)
        if isinstance(marks, Exception):  # the index is of another type; a repair rebuilds it
            return {}
        mine = [each for each, mark in zip(asked, marks, strict=True) if mark]
        found = self._each(mine, "definition", self._keys.schedule)
        sources = self._each(mine, "source", self._keys.schedule)
        read = {each: (_read(text), _text(source)) for each, text, source in zip(mine, found, sources, strict=True)}
        return {each: (known, source) for each, (known, source) in read.items() if known and known.monitor}

    def started(self, job_ids: Sequence[str]) -> list[str]:
        """Return those of these jobs that a worker is running, by RQ's own records."""
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
"""How many runs are checked for their start; a run beyond that gets only the ping at its end."""
_LOOK_S = 1.0


class Round:
    """The work of one scheduler while it holds the lock: read events, find started runs, and queue pings."""

    def __init__(
        self, reading: Reading, register: Register, request: Callable[[Ping], Request | str], emit: Emit
    ) -> None:
        self._reading, self._register, self._request, self._emit = reading, register, request, emit
        self._once = Once(emit)
        self._lanes: dict[str, Lane] = {}
        self._done: queue.SimpleQueue[tuple[str, ...]] = queue.SimpleQueue()
        self._waiting: dict[
            str, tuple[str, Schedule, str]
        ] = {}  # job id → the event that began the run, its schedule, the schedule's source
        self._looked_at = 0.0

    def resume(self) -> None:
        """Process the events that were read and not acknowledged by an earlier lock owner."""
        for page in self._reading.left():
            self._handle(page)

    def turn(self) -> bool:
        """Process the next page of events, and return whether there were any."""
        page = [] if any(lane.is_full for lane in self._lanes.values()) else self._reading.take()
        self._handle(page)
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._looked_at = time.monotonic()
            self._look()
        self.settle()
        return bool(page)

    def settle(self) -> None:
        """Acknowledge the events whose pings are done, and those that need no ping."""
        ids: list[str] = []
        while not self._done.empty():
            ids += self._done.get()
        self._reading.acknowledge(ids)

    def stop(self) -> None:
        """Stop all delivery queues."""
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
        """Stop waiting for the start of a run, and acknowledge the event that began it."""
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
