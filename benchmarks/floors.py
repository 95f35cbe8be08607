"""What a scheduler could at best be measured against: RQ's own `enqueue_many`, and what Redis itself can take.

    python -m benchmarks.floors enqueue_many|packed URL JOBS QUEUES

prints the seconds that it took. Both write the same, in pages of 1,000 over one connection: a job's hash, its place in
the queue, the set of queues. They decide nothing, remember nothing and guard against nothing.
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
    """What the jobs would do."""


def enqueue_many(url: str, jobs: int, queues: int) -> float:
    """As a user would write it: data prepared, handed to each queue of the page, one round trip for the page."""
    redis = Redis.from_url(url)
    redis.ping()
    began = time.perf_counter()
    for names in pages(jobs, queues):
        with redis.pipeline() as pipe:
            fill(pipe, redis, names)
            pipe.execute()
    return time.perf_counter() - began


def packed(url: str, jobs: int, queues: int) -> float:
    """The same writes as bytes, made beforehand: only sending them and waiting for the replies is timed."""
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
    """How many jobs of each page go to which queue."""
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
    """A page as it goes over the wire, and how many commands that is."""
    pipe = redis.pipeline(transaction=False)
    fill(pipe, redis, names)
    commands = [words for words, _ in pipe.command_stack]
    packer = redis.connection_pool.connection_class()  # never connected
    return b"".join(packer.pack_commands(commands)), len(commands)


def read_lines(wire: socket.socket, number: int) -> None:
    """Waits for so many replies, each of which is a number in a line of its own."""
    read = b""
    while (number := number - read.count(b"\n")) > 0:
        read = wire.recv(1 << 16)
        if not read or b"-" in read:
            raise AssertionError(f"Redis refused: {read[:200]!r}")


FLOORS = {"enqueue_many": enqueue_many, "packed": packed}


if __name__ == "__main__":
    print(FLOORS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
