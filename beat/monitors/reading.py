"""What happened to schedules with a monitor, from the outbox, and what Redis knows of them.

The group has one consumer, whichever beat that is at the time: what one has left, the next goes on with at once. Only
who has the lock is handed something: what a beat took that has lost it, nobody would look for.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from beat import definitions, jobs
from beat.errors import DeclarationError
from beat.events.notice import Notice
from beat.events.since import place
from beat.outbox import START

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from beat.connection import Redis
    from beat.keys import Keys
    from beat.outbox import Entry, Outbox
    from beat.schedule import Schedule

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
        found = self._each(job_ids, "status", jobs.job_key)
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
        return definitions.read(text)
    except DeclarationError:
        return None
