"""The runs that beat watches, in Redis: those whose outcome is not known, and those that RQ could start again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.jobs import job_template
from beat.jobs.observation import Record, Sighting
from beat.storage.messages import Reply
from beat.storage.store import pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from beat.storage.messages import Closing
    from beat.storage.store import Store

WATCHED_LIMIT = 10_000
"""How many closed runs are watched."""
_PAGE = 1000
_LIST_PAGE = 10_000
_OVERLAP = 1000
_SEARCHED = 500


class Observed(NamedTuple):
    """What there is to decide about."""

    now: int
    looked: int
    """How many open runs were looked at."""
    sightings: list[Sighting]


class Runs:
    """The runs of one installation. While it searches for many, `between` is called now and then."""

    def __init__(self, store: Store, between: Callable[[], None] = lambda: None) -> None:
        self._store, self._between = store, between

    def observe(
        self,
        searched: Iterable[tuple[str, str, str, str]] = (),
        *,
        limit: int = 0,
        interval: int = 0,
        closed_limit: int = 0,
    ) -> Observed:
        """The runs about which there is something to decide; with `searched`, whether those are in their queue."""
        sent = [_bytes(item) for item in searched]
        now, looked, *found = self._store.run(
            "observe", sent, limit=limit, interval=interval, closed_limit=closed_limit
        )
        return Observed(now, looked, [_sighting(each) for each in found])

    def close(self, items: Sequence[Closing], *, token: str) -> list[Reply]:
        """Writes what became of them, each at most once."""
        said = self._store.run("close", [_bytes(item) for item in items], token=token, watched_limit=WATCHED_LIMIT)
        return [Reply(*map(_text, reply)) for reply in said]

    def search(self, before: str, now: str) -> Iterator[list[tuple[str, str, str, str]]]:
        """Yield open runs, pages of them, that are in no queue at first sight, and those that were in none before.

        Runs that were enqueued since `before` have time. Those later than `now` have none: Redis' clock went back.
        """
        waiting: dict[str, dict[str, bool]] = {}
        for page in self._open():
            for job, record in page:
                if record and not before <= record.enqueued <= now:
                    waiting.setdefault(record.queue, {})[job] = record.missing > 0
            if len(page) == _PAGE:
                self._between()
        for key, ids in waiting.items():
            [name] = job_template.queue_names(key)
            scheduled, absent = job_template.registry_key("scheduled", name), self._absent(key, set(ids))
            wanted = [job for job, missed in ids.items() if missed or job in absent]
            yield from pages(((job, key, scheduled, "01"[job not in absent]) for job in wanted), _SEARCHED)

    def rebuild(self) -> int:
        """Finds the open runs by their records when somebody has deleted the index; how many there are."""
        client, keys, number = self._store.client, self._store.keys, 0
        if client.hlen(keys.records) <= client.zcard(keys.open) + client.zcard(keys.closed):
            return 0
        for page in pages(client.hscan_iter(keys.records, count=_PAGE), _PAGE):
            read = ((job, Record.read(_text(text))) for job, text in page)
            if lost := {job: 0 for job, record in read if record and not record.outcome}:
                number += int(client.zadd(keys.open, lost, nx=True) or 0)
        return number

    def _open(self) -> Iterator[list[tuple[str, Record | None]]]:
        client, keys = self._store.client, self._store.keys
        for page in pages((job for job, _ in client.zscan_iter(keys.open, count=_PAGE)), _PAGE):
            texts = client.hmget(keys.records, page)
            yield [(_text(job), Record.read(_text(text or b""))) for job, text in zip(page, texts, strict=True)]

    def _absent(self, key: str, ids: set[str]) -> set[str]:
        """Those that are not in a list, read in pages that overlap: workers take from its head meanwhile."""
        left, start = set(ids), 0
        if self._store.client.type(key) != b"list":
            return left
        while left and (page := self._store.client.lrange(key, start, start + _LIST_PAGE - 1)):
            left.difference_update(map(_text, page))
            start += _LIST_PAGE - _OVERLAP if len(page) == _LIST_PAGE else _LIST_PAGE
        return left


def _sighting(values: Sequence[bytes]) -> Sighting:
    *words, value, error = values
    facts: list[Any] = [*map(_text, words), value, error]
    return Sighting(*facts)


def _bytes(item: Iterable[str]) -> list[bytes]:
    return [value.encode(errors="surrogateescape") for value in item]


def _text(value: Any) -> str:
    return str(value.decode(errors="surrogateescape"))  # what is compared in Redis is sent back byte by byte
