"""A lock has one holder, who alone can extend or release it, and runs out by itself."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from beat.storage.lock import Lock
from tests.support.builders import LONG, another_client, changed, everything, shows
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.storage.store import Store

KEY = "beat:lock:report"


@pytest.fixture
def clients(store: Store) -> Iterator[list[Redis]]:
    made = [another_client(store) for _ in range(10)]
    yield made
    for client in made:
        client.close()


def ran_out(store: Store) -> None:
    wait_until(lambda: not store.client.exists(KEY))


@shows("acquire", "OK")
def test_it_is_a_string_with_a_token_that_expires(store: Store) -> None:
    lock = Lock(store.client, KEY, LONG)
    assert lock.acquire()
    assert store.client.get(KEY) == lock.token.encode()
    assert LONG - 10_000 < store.client.pttl(KEY) <= LONG


def test_no_two_locks_have_one_token(store: Store) -> None:
    tokens = {Lock(store.client, KEY, LONG).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) == 32


@shows("acquire", "HELD")
def test_it_is_not_acquired_twice_be_it_by_its_holder(store: Store) -> None:
    first, second = Lock(store.client, KEY, LONG), Lock(store.client, KEY, LONG)
    assert first.acquire()
    before = everything(store)
    assert not second.acquire()
    assert not first.acquire()
    assert not changed(before, store)


def test_of_ten_that_try_at_once_one_acquires_it(clients: list[Redis], store: Store) -> None:
    barrier = threading.Barrier(10)

    def acquire(client: Redis) -> bool:
        lock = Lock(client, KEY, LONG)
        barrier.wait()
        return lock.acquire()

    with ThreadPoolExecutor(10) as threads:
        for _ in range(20):
            store.client.delete(KEY)
            assert sorted(threads.map(acquire, clients)) == [False] * 9 + [True]


def test_after_it_ran_out_anybody_acquires_it(store: Store) -> None:
    assert Lock(store.client, KEY, 30).acquire()
    other = Lock(store.client, KEY, LONG)
    wait_until(other.acquire)
    assert store.client.get(KEY) == other.token.encode()


@shows("extend", "OK")
def test_extended_it_lasts_its_full_time_again(store: Store) -> None:
    lock = Lock(store.client, KEY, LONG)
    assert lock.acquire()
    store.client.pexpire(KEY, 5_000)
    assert lock.extend()
    assert LONG - 10_000 < store.client.pttl(KEY) <= LONG


@shows("release", "OK")
def test_released_it_is_free(store: Store) -> None:
    lock = Lock(store.client, KEY, LONG)
    assert lock.acquire()
    assert lock.release()
    assert not store.client.exists(KEY)
    assert Lock(store.client, KEY, LONG).acquire()


@shows("extend", "LOST")
@shows("release", "LOST")
def test_a_stranger_can_neither_extend_nor_release_it(store: Store) -> None:
    assert Lock(store.client, KEY, LONG).acquire()
    before, stranger = everything(store), Lock(store.client, KEY, LONG)
    assert not stranger.extend()
    assert not stranger.release()
    assert not changed(before, store)


def test_who_lost_it_to_another_cannot_touch_the_others(store: Store) -> None:
    late, other = Lock(store.client, KEY, 30), Lock(store.client, KEY, LONG)
    assert late.acquire()
    wait_until(other.acquire)
    before = everything(store)
    assert not late.extend()
    assert not late.release()
    assert not changed(before, store)


def test_after_it_ran_out_it_is_not_extended_to_life_again(store: Store) -> None:
    lock = Lock(store.client, KEY, 30)
    assert lock.acquire()
    ran_out(store)
    assert not lock.extend()
    assert not lock.release()
    assert not store.client.exists(KEY)


def test_a_key_that_is_no_string_is_nobodys_lock(store: Store) -> None:
    store.client.rpush(KEY, "garbage")
    store.client.pexpire(KEY, LONG)
    before, lock = everything(store), Lock(store.client, KEY, LONG)
    assert not lock.acquire()
    assert not lock.extend()
    assert not lock.release()
    assert not changed(before, store)
