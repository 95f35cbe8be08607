"""Read and close the runs that beat watches in Redis: open ones, and closed ones that RQ could start again."""

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
"""How many closed runs are watched at most."""
_PAGE = 1000
_LIST_PAGE = 10_000
_OVERLAP = 1000
_SEARCHED = 500


class Observed(NamedTuple):
    """Observations of runs that need a decision."""

    now: int
    looked: int
    """How many open runs were checked."""
    sightings: list[Sighting]


class Runs:
    """The watched runs of one installation. During a long search, `between` is called after each full page."""

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
        """Return the runs that need a decision; with `searched`, only whether those runs are in their queue."""
        sent = [_bytes(item) for item in searched]
        now, looked, *found = self._store.run(
            "observe", sent, limit=limit, interval=interval, closed_limit=closed_limit
        )
        return Observed(now, looked, [_sighting(each) for each in found])

    def close(self, items: Sequence[Closing], *, token: str) -> list[Reply]:
        """Close these runs, each at most once."""
        said = self._store.run("close", [_bytes(item) for item in items], token=token, watched_limit=WATCHED_LIMIT)
        return [Reply(*map(_text, reply)) for reply in said]

    def search(self, before: str, now: str) -> Iterator[list[tuple[str, str, str, str]]]:
        """Yield pages of open runs that seem to be in no queue, and of those that were in none before.

        Runs enqueued since `before` are left for later. Those enqueued after `now` are not, because Redis' clock went
        back.
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
        """Restore deleted entries of the index of open runs from the records, and return how many there were."""
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
        """Return the ids that are not in a list.

        Workers take jobs from its head meanwhile, so the pages overlap.
        """
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
    return str(value.decode(errors="surrogateescape"))  # scripts compare what is sent back
