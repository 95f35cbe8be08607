"""Run many processes that only claim, so that the figures measure the claim and not the whole scheduler.

Like schedulers, all processes begin at the same instant, and each claims page after page until nothing is left. Unlike
schedulers, they prepare and fire nothing in between, so the contention is as high as it can be.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.config import settings
from beat.engine.pacing import Pace
from beat.storage import connection
from beat.storage.keys import Keys
from beat.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PATIENCE_S = 60
_AHEAD_S = 0.1


class Call(NamedTuple):
    """One claim: when it was sent and answered (in seconds of a clock that all processes share), and its result."""

    sent: float
    answered: float
    got: int
    """How many schedules were handed out."""
    in_vain: int
    """How many were found but not handed out."""

    @property
    def ms(self) -> float:
        """Return how long the caller waited, in ms."""
        return (self.answered - self.sent) * 1000


def rate(calls: Iterable[Call]) -> float:
    """Return schedules handed out per second of one round, from the first call to the last answer with a schedule."""
    asked = list(calls)
    brought = [call for call in asked if call.got]
    first, last = min(call.sent for call in asked), max(call.answered for call in brought)
    return sum(call.got for call in brought) / (last - first)


def measure(url: str, claimers: int, rounds: int, refill: Callable[[], None]) -> list[list[Call]]:
    """Return the calls of each round. Before each round, `refill` makes the same schedules claimable again."""
    context = multiprocessing.get_context("forkserver")  # whoever shows progress has threads, which do not fork well
    context.set_forkserver_preload([__name__])
    barrier, begin = context.Barrier(claimers + 1), context.Value("d", 0.0)
    pipes = [context.Pipe(duplex=False) for _ in range(claimers)]
    crowd = [context.Process(target=_claim, args=(url, rounds, barrier, begin, pipe), daemon=True) for _, pipe in pipes]
    for each in crowd:
        each.start()
    try:
        for _ in range(rounds):
            refill()
            begin.value = time.monotonic() + _AHEAD_S
            barrier.wait(PATIENCE_S)  # everybody is there
            barrier.wait(PATIENCE_S)  # everybody is done
        told: list[Sequence[list[Call]]] = [receiver.recv() for receiver, _ in pipes]
    finally:
        for each in crowd:
            each.join(1)
            each.kill()
    return [[call for one in told for call in one[n]] for n in range(rounds)]


def _claim(url: str, rounds: int, barrier: Any, begin: Any, pipe: Any) -> None:
    """Claim in every round, then send the calls through `pipe`."""
    store, pace = Store(connection.connect(url), Keys()), Pace.of(settings.load({}).settings)
    name = multiprocessing.current_process().name
    store.time()  # connects
    told = []
    for _ in range(rounds):
        barrier.wait(PATIENCE_S)
        time.sleep(max(0.0, begin.value - time.monotonic()))
        told.append(_round(store, pace, name))
        barrier.wait(PATIENCE_S)
    pipe.send(told)


def _round(store: Store, pace: Pace, token: str) -> list[Call]:
    calls: list[Call] = []
    while not calls or calls[-1].got:
        sent = time.monotonic()
        claimed = store.claim(
            token=token, lock_ttl=pace.lock_ttl, lookahead=pace.lookahead, limit=pace.page_size, only=""
        )
        calls.append(Call(sent, time.monotonic(), len(claimed.claims), len(claimed.troubles)))
    return calls
