"""Summarise the installation: due schedules, the newest runs, the audit log, schedulers, groups and queues.

Only `queues` reads a field of every schedule. Everything else starts from an index or from the event stream.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client import audit_log, schedule_info
from beat.client.audit_log import Deed, Deeds
from beat.client.listing import Listing
from beat.client.ordering import Place
from beat.client.reader import is_strange
from beat.client.relations import Shared
from beat.errors import BadOption
from beat.history import ledger
from beat.history.history import Fired, assemble
from beat.storage import announcements, group_limits
from beat.storage.store import glance
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.client.workers import Queue
    from beat.storage.heartbeat import Instance

_HEAD = 100
_PATIENCE = timedelta(seconds=30)
_EVENTS, _PAGE = 1000, 200
_OF_RUNS = frozenset(each.encode() for each in ("enqueued", "reopened", *ledger.OUTCOMES))
_IN_FORCE = 50


class Due(NamedTuple):
    """The schedules at the head of the due index."""

    late: tuple[Standing, ...]
    """Schedules that have been due for longer than `patience` and are undecided, oldest first."""
    more_late: int
    """How many more are late, by the index."""
    held: tuple[Standing, ...]
    """Schedules that are late because no running scheduler declares them."""
    coming: tuple[Standing, ...]
    """The schedules that are due next."""
    patience: timedelta


class Attendance(NamedTuple):
    """The schedulers that are running, and those that are missing."""

    beats: tuple[Instance, ...]
    lapsed: tuple[tuple[str, datetime], ...]
    """Schedulers that disappeared without signing off, with the time their heartbeats expired; kept for 15 minutes."""
    hold_until: datetime | None
    """Until when nothing fires because Redis' clock has jumped."""
    now: datetime


class Surveying(Listing):
    """A client that summarises the installation."""

    @property
    def patience(self) -> timedelta:
        """Return how long a tick may be due before it is late."""
        return min(self.settings.misfire_limit, _PATIENCE)

    def due(self, coming: int = 8) -> Due:
        """Return the schedules that are late, those that are on hold, and the `coming` next ones."""
        _checked(coming, "coming", _HEAD)
        client: Any = self._store.client
        with self._asking():
            now = self._store.time()
            patience = self.patience
            present, limit = clock.to_ms(now), clock.to_ms(now - patience)
            with client.pipeline(transaction=False) as pipe:
                pipe.zrange(self._keys.due, 0, _HEAD - 1)
                pipe.zrangebyscore(self._keys.due, f"({present}", "+inf", start=0, num=2 * coming)
                pipe.zcount(self._keys.due, "-inf", limit)
                head, ahead, late = pipe.execute(raise_on_error=False)
            if is_strange(head):
                return Due((), 0, (), (), patience)
            known = list(self._active([each.decode(errors="replace") for each in dict.fromkeys([*head, *ahead])]))
        since = [each for each in known if each.due_at and each.due_at <= now - patience]
        held = tuple(each for each in since if each.unannounced_at)
        overdue = sorted((each for each in since if not each.unannounced_at), key=_due_at)
        next_ones = sorted((each for each in known if each.due_at and each.due_at > now), key=_due_at)
        more = max(0, late - _HEAD) if len(head) == _HEAD else 0
        return Due(tuple(overdue), more, held, tuple(next_ones[:coming]), patience)

    def latest(self, limit: int = 10) -> list[Fired]:
        """Return the newest runs of all schedules, newest first, among the newest events of the event stream."""
        _checked(limit, "limit", _PAGE)
        with self._asking():
            found: dict[str, list[ledger.Entry]] = {}
            runs: list[Fired] = []
            for number, (_, fields) in enumerate(audit_log.events(self._store, _EVENTS, _PAGE), 1):
                entry = ledger.read(fields.get(b"entry", b"")) if fields.get(b"type") in _OF_RUNS else None
                if entry:
                    found.setdefault(fields.get(b"schedule", b"").decode(errors="replace"), []).append(entry)
                if number % _PAGE == 0 and sum(map(len, found.values())) >= 2 * limit:
                    break
            for each, entries in found.items():
                runs += [line for line in assemble(each, entries) if isinstance(line, Fired)]
            return self._up_to_date(sorted(runs, key=lambda run: run.at, reverse=True)[:limit])

    def actions(self, limit: int = 50, *, by: str | None = None) -> Deeds:
        """Return the audit log, newest first: the newest events, and the pauses and overrides in force.

        `since` says how far back the events reach, because a busy installation soon trims its event stream. Pauses and
        overrides in force are included however old they are, up to 50 of each.
        """
        _checked(limit, "limit", audit_log.MOST)
        with self._asking():
            told = audit_log.read(self._store)
            standing_ones = itertools.islice(self.schedules(state="paused", page=_IN_FORCE), _IN_FORCE)
            ruled = itertools.islice(self.schedules(overridden=True, page=_IN_FORCE), _IN_FORCE)
            kept = [deed for row in (*standing_ones, *ruled) for deed in audit_log.in_force(row.standing)]
        older = [deed for deed in dict.fromkeys(kept) if told.since is None or deed.at < told.since]
        every = sorted([*told.deeds, *older], key=lambda deed: deed.at, reverse=True)
        people = tuple(sorted({deed.by for deed in every if deed.by}))
        wanted = [deed for deed in every if by is None or deed.by == by]
        return told._replace(deeds=tuple(wanted[:limit]), people=people)

    def attendance(self) -> Attendance:
        """Return the running schedulers, the missing ones, and whether a clock jump holds back all ticks."""
        client: Any = self._store.client
        with self._asking():
            now = self._store.time()
            with client.pipeline(transaction=False) as pipe:
                pipe.zrangebyscore(self._keys.instances, "-inf", f"({clock.to_ms(now)}", withscores=True)
                pipe.hmget(self._keys.meta, "hold_from", "hold_until")
                lapsed, hold = pipe.execute(raise_on_error=False)
            strange = is_strange(lapsed)
            alive = () if strange else tuple(announcements.alive(self._store, now))
        gone = () if strange else lapsed
        told = tuple((name.decode(errors="replace"), clock.from_ms(int(at))) for name, at in gone)
        return Attendance(alive, told, None if is_strange(hold) else _held(hold, now), now)

    def groups(self) -> list[Shared]:
        """Return the groups by name, each with how many runs it has and how many ticks wait."""
        client: Any = self._store.client
        with self._asking():
            known = sorted(group_limits.known(self._store).values(), key=lambda group: group.name)
            with client.pipeline(transaction=False) as pipe:
                for group in known:
                    pipe.zcard(self._keys.running(f"@{group.name}"))
                    pipe.zcard(self._keys.waiting(f"@{group.name}"))
                found = [each if isinstance(each, int) else 0 for each in pipe.execute(raise_on_error=False)]
        pairs = zip(found[::2], found[1::2], strict=True)
        return [Shared(each.name, each, *pair) for each, pair in zip(known, pairs, strict=True)]

    def queues(self) -> list[Queue]:
        """Return the queues to which ticks of any schedule may go, by name, with their workers."""
        with self._asking():
            names: set[str] = set()
            slow = []
            ids = list(dict.fromkeys(self._ids()))
            for each, (queue, route, lane) in zip(
                ids, glance(self._store, ids, fields="queue route slow"), strict=True
            ):
                names.update(route.partition(": ")[2].split(", ") if route else [queue])
                slow += [each] if lane else []
            lanes = glance(self._store, slow, fields="definition")
            names.update(str(schedule_info.parsed(told).get("slow_queue", "")) for [told] in lanes)
        return self.staff(sorted(names - {""}))

    def _active(self, ids: Sequence[str]) -> Iterator[Standing]:
        read = self._read_page([Place(0, each) for each in ids], 0)
        return (known for known, _ in read if known and known.state == "active")


def _due_at(known: Standing) -> datetime:
    return known.due_at or clock.EPOCH


def _held(found: Sequence[bytes | None], now: datetime) -> datetime | None:
    """Return the end of the hold if it is in force now."""
    since, until = (int(each) if each and each.isdigit() and len(each) < _LONG else 0 for each in found)
    return clock.from_ms(until) if since <= clock.to_ms(now) < until else None


_LONG = 15


def _checked(value: object, name: str, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise BadOption(f"{name} {value!r:.60} must be a whole number from 1 to {most:,}")


__all__ = ["Attendance", "Deed", "Deeds", "Due", "Surveying"]
