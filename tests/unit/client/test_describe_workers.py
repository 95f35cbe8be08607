"""Who works at a queue, as `beat show` and `beat why` say it."""

from __future__ import annotations

import pytest

from beat.client.describe import workers
from beat.client.workers import Queue
from beat.timing import clock
from beat.timing.zones import zone

UTC = zone("UTC")
SINCE = clock.read("2026-11-16T08:00:00.123Z")


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (Queue("mail", 0, 1, 1, None), "1 (idle)"),
        (Queue("mail", 0, 3, 1, None), "3 (1 idle)"),
        (Queue("mail", 0, 3, 3, None), "3 (idle)"),
        (Queue("mail", 1, 2, 0, None), "2, and 1 job waits"),
        (Queue("mail", 1200, 2, 0, None), "2, and 1,200 jobs wait"),
        (Queue("mail", 0, 0, 0, None), "no live worker reads mail: rq worker mail"),
        (
            Queue("mail", 2, 0, 0, SINCE),
            "no live worker reads mail since Mon 2026-11-16 08:00 UTC, and 2 jobs wait: rq worker mail",
        ),
        (Queue("mail", 2, None, None, None), ""),
    ],
    ids=["one", "one idle", "all idle", "a job", "many jobs", "nobody", "nobody since", "unknown"],
)
def test_one_queue_is_told_in_words(queue: Queue, words: str) -> None:
    assert workers.workers([queue], UTC) == words


def test_several_queues_are_told_by_name() -> None:
    queues = [Queue("a", 0, 2, 0, None), Queue("b", 0, 0, 0, None), Queue("c", 0, None, None, None)]
    assert workers.workers(queues, UTC) == "2 at a; no live worker reads b: rq worker b"


def test_queues_for_programs() -> None:
    assert workers.plain([Queue("mail", 2, 0, 0, SINCE), Queue("slow", 0, None, None, None)]) == [
        {"name": "mail", "queued": 2, "workers": 0, "idle": 0, "unread_since": "2026-11-16T08:00:00.123Z"},
        {"name": "slow", "queued": 0, "workers": None, "idle": None, "unread_since": None},
    ]
