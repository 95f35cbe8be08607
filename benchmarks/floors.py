"""Measure the floors that no scheduler can beat: RQ's own `enqueue_many`, and raw writes to Redis.

    python -m benchmarks.floors enqueue_many|packed URL JOBS QUEUES

prints the seconds that it took. Both programs write the same data, in pages of 1,000 over one connection: the job's
hash, its entry in the queue, and the set of queues. They make no decisions, keep no state and handle no failures.
"""

from __future__ import annotations

import socket
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from redis import Redis
from rq import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = 1000


def work() -> None:
    """Stand in for the function of the jobs."""


def enqueue_many(url: str, jobs: int, queues: int) -> float:
    """Enqueue as a user would: prepare the data, call each queue of the page, send one round trip per page."""
    redis = Redis.from_url(url)
    redis.ping()
    began = time.perf_counter()
    for names in pages(jobs, queues):
        with redis.pipeline() as pipe:
            fill(pipe, redis, names)
            pipe.execute()
    return time.perf_counter() - began


def packed(url: str, jobs: int, queues: int) -> float:
    """Send the same writes as bytes packed beforehand; time only the sending and the wait for replies."""
    redis = Redis.from_url(url)
    ready = [pack(redis, names) for names in pages(jobs, queues)]
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as wire:
        began = time.perf_counter()
        for page, commands in ready:
            wire.sendall(page)
            read_lines(wire, commands)
        return time.perf_counter() - began


def pages(jobs: int, queues: int) -> Iterator[dict[str, int]]:
    """Yield for each page how many jobs go to each queue."""
    for begin in range(0, jobs, PAGE):
        names: dict[str, int] = defaultdict(int)
        for n in range(begin, min(begin + PAGE, jobs)):
            names[f"q{n % queues}"] += 1
        yield names


def fill(pipe: Any, redis: Any, names: dict[str, int]) -> None:
    for name, number in names.items():
        data = [Queue.prepare_data(work) for _ in range(number)]
        Queue(name, connection=redis).enqueue_many(data, pipeline=pipe)


def pack(redis: Any, names: dict[str, int]) -> tuple[bytes, int]:
    """Return a page as bytes for the wire, and the number of its commands."""
    pipe = redis.pipeline(transaction=False)
    fill(pipe, redis, names)
    commands = [words for words, _ in pipe.command_stack]
    packer = redis.connection_pool.connection_class()  # never connected
    return b"".join(packer.pack_commands(commands)), len(commands)


def read_lines(wire: socket.socket, number: int) -> None:
    """Wait for this many replies, each of which is a number on its own line."""
    read = b""
    while (number := number - read.count(b"\n")) > 0:
        read = wire.recv(1 << 16)
        if not read or b"-" in read:
            raise AssertionError(f"Redis refused: {read[:200]!r}")


FLOORS = {"enqueue_many": enqueue_many, "packed": packed}


if __name__ == "__main__":
    print(FLOORS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
