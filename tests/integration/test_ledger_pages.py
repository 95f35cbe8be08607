"""Long ledgers are read page by page: in little memory, and whole although lines come and go meanwhile."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.client.reader import _LEDGER_PAGE, Archive
from beat.history import ledger
from tests.support.lines import MINUTE, NINE, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

KEY = "beat:runs:report"
MB = 1024 * 1024


def long(redis: Redis, ticks: int) -> Ledger:
    """A ledger of twice as many lines, in which nothing is missing."""
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(ticks):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE)
    book.keep(redis, state="paused")
    return book


class Busy:
    """A client under whose pages the ledger moves: before each is read, lines are pushed and trimmed."""

    def __init__(self, client: Any, *, push: int, trim: int) -> None:
        self._client, self._push, self._trim = client, push, trim
        self.largest = self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def lrange(self, key: str, start: int, end: int) -> Any:
        for n in range(self._push):
            self._client.lpush(key, json.dumps({"type": "new", "n": n}))
        if self._trim:
            self._client.ltrim(key, 0, -self._trim - 1)
        self.calls += 1
        found: Any = self._client.lrange(key, start, end)
        self.largest = max(self.largest, len(found))
        return found


@pytest.mark.parametrize("push", [0, 7, 900])
@pytest.mark.parametrize("trim", [0, 5])
def test_a_snapshot_is_whole_although_lines_come_and_go(store: Store, redis: Redis, push: int, trim: int) -> None:
    long(redis, 2 * _LEDGER_PAGE)
    written: Any = store.client.lrange(KEY, 0, -1)
    busy: Any = Busy(store.client, push=push, trim=trim)
    snapshot = Archive(busy, store.keys).snapshot("report")
    lines = list(snapshot.lines)
    assert lines == written[: len(lines)]
    assert len(written) - len(lines) <= trim * busy.calls
    assert trim or lines == written
    assert list(reversed(snapshot.lines)) == lines[::-1]
    assert busy.largest <= _LEDGER_PAGE
    redis.delete(KEY)


@pytest.mark.parametrize("number", [0, 1, _LEDGER_PAGE - 1, _LEDGER_PAGE, _LEDGER_PAGE + 1])
def test_a_snapshot_holds_every_line_at_the_edges_of_a_page(store: Store, redis: Redis, number: int) -> None:
    if number:
        redis.rpush(KEY, *(json.dumps({"type": "registered", "n": n}) for n in range(number)))
    lines = list(Archive(store.client, store.keys).snapshot("report").lines)
    assert [json.loads(line)["n"] for line in lines] == list(range(number))
    assert bool(Archive(store.client, store.keys).snapshot("report").lines) == bool(number)


QUESTIONS: dict[str, tuple[float, Callable[[Client], Any]]] = {
    "verify": (14, lambda client: client.verify("report")),
    "why": (4, lambda client: client.why("report", NINE + 4000 * MINUTE)),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_about_a_long_ledger_takes_little_memory(redis: Redis, server: PrivateRedis, question: str) -> None:
    long(redis, 15_000)
    most, ask = QUESTIONS[question]
    client = Client(server.url)
    ask(client)
    tracemalloc.start()
    try:
        answer = ask(client)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer
    assert peak < most * MB, f"{peak / MB:.1f} MB"


def test_a_ledger_that_moves_meanwhile_is_verified_as_it_was(
    redis: Redis, server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = long(redis, 3000)
    client = Client(server.url)
    following: list[ledger.Entry] = []
    inner = client._archive._client  # noqa: SLF001

    class Firing:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def lrange(self, *asked: Any) -> Any:
            tick = NINE + (3000 + len(following)) * MINUTE
            book.fired(tick)
            following.append(book.entries[-1])
            redis.lpush(KEY, json.dumps(ledger.plain(following[-1])))
            return inner.lrange(*asked)

    monkeypatch.setattr(client._archive, "_client", Firing())  # noqa: SLF001
    [found] = client.verify("report")
    assert (found.sound, found.expected) == (True, 3000), found.problems
    assert len(following) > 3
