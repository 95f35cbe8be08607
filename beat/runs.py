"""The runs that beat watches, in Redis: those whose outcome is not known, and those that RQ could start again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat import jobs
from beat.protocol import Reply
from beat.sighting import Record, Sighting
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beat.protocol import Closing
    from beat.store import Store

WATCHED_LIMIT = 10_000
"""How many closed runs are watched."""
_PAGE = 1000
_LIST_PAGE = 10_000


class Observed(NamedTuple):
    """What there is to decide about."""

    now: int
    looked: int
    """How many open runs were looked at."""
    closed: int
    """How many closed ones there are."""
    sightings: list[Sighting]


class Runs:
    """The runs of one installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def observe(
        self,
        searched: Iterable[tuple[str, str, str, str]] = (),
        *,
        limit: int = 0,
        interval: int = 0,
        rank: int = 0,
        closed_limit: int = 0,
    ) -> Observed:
        """The runs about which there is something to decide; with `searched`, whether those are in their queue."""
        now, looked, closed, *found = self._store.run(
            "observe", searched, limit=limit, interval=interval, rank=rank, closed_limit=closed_limit
        )
        return Observed(now, looked, closed, [_sighting(each) for each in found])

    def close(self, items: Sequence[Closing], *, token: str) -> list[Reply]:
        """Writes what became of them, each at most once."""
        sent = [[value.encode(errors="surrogateescape") for value in item] for item in items]
        said = self._store.run("close", sent, token=token, watched_limit=WATCHED_LIMIT)
        return [Reply(*map(_text, reply)) for reply in said]

    def search(self, before: str) -> Iterator[list[tuple[str, str, str, str]]]:
        """Open runs, enqueued before that time, that are in no queue at first sight: as `observe` looks for them."""
        waiting: dict[str, list[str]] = {}
        for job, record in self._open():
            if record and record.enqueued < before:
                waiting.setdefault(record.queue, []).append(job)
        for key, ids in waiting.items():
            name = jobs.queue_name(key)
            taken, scheduled = jobs.taken_key(name), jobs.registry_key("scheduled", name)
            there = self._listed(key) | self._listed(taken)
            yield from pages(((job, key, taken, scheduled) for job in ids if job not in there), 20)

    def _open(self) -> Iterator[tuple[str, Record | None]]:
        client, keys = self._store.client, self._store.keys
        for page in pages((job for job, _ in client.zscan_iter(keys.open, count=_PAGE)), _PAGE):
            for job, text in zip(page, client.hmget(keys.records, page), strict=True):
                yield _text(job), Record.read(_text(text or b""))

    def _listed(self, key: str) -> set[str]:
        """The ids of a list, read in pages: who moves meanwhile may be missed, so a closer look follows."""
        found: set[str] = set()
        if self._store.client.type(key) != b"list":
            return found
        start = 0
        while page := self._store.client.lrange(key, start, start + _LIST_PAGE - 1):
            found.update(map(_text, page))
            start += _LIST_PAGE
        return found


def _sighting(values: Sequence[bytes]) -> Sighting:
    *words, value, error = values
    facts: list[Any] = [*map(_text, words), value, error]
    return Sighting(*facts)


def _text(value: Any) -> str:
    return str(value.decode(errors="surrogateescape"))  # what is compared in Redis is sent back byte by byte
