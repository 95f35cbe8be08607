"""The jobs of the tests of place: three schedules share room for two runs, one is followed, one is broadcast."""

from __future__ import annotations

import time
from typing import Any

import rq

from beat import group, periodic
from tests.support.rq_worker import say

ROOM = 2
GROUPED = ("extract", "one", "two")
BY_TIME = (*GROUPED, "parts")
SHARDS = ("x", "y")
QUEUES = ("default", *SHARDS)

group("room", max_running=ROOM, max_waiting=4)


def step(word: str) -> None:
    """With the time by Redis' clock, which is the same for all workers."""
    job: Any = rq.get_current_job()
    seconds, micros = job.connection.time()
    say(f"{word}@{seconds}.{micros:06}")


def work(seconds: float) -> None:
    step("start")
    time.sleep(seconds)
    step("end")


@periodic(every="1s", group="room")
def extract() -> None:
    work(0.7)


@periodic(every="1s", group="room")
def one() -> None:
    work(0.8)


@periodic(every="1s", group="room", overlap="wait")
def two() -> None:
    work(0.9)


@periodic(follows="extract")
def load() -> None:
    work(0.05)


@periodic(every="1s", queues=list(SHARDS), route="broadcast")
def parts() -> None:
    work(0.01)
