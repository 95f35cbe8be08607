"""Hold the claims of a scheduler, with the decisions prepared from them, until they are due."""

from __future__ import annotations

import heapq
import itertools
import math
from typing import TYPE_CHECKING

from beat.engine import fire_items
from beat.policies.decide import prepare
from beat.policies.facts import NONE
from beat.storage.backoff import cause
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.engine.definition_cache import Page
    from beat.engine.fact_reader import Inquiry
    from beat.engine.fire_items import Chain
    from beat.engine.pacing import Pace
    from beat.policies.facts import Facts
    from beat.storage.keys import Keys
    from beat.storage.messages import Claim


class Holding:
    """The claims of one scheduler: each schedule in here is locked by it until that lock expires."""

    def __init__(self, pace: Pace, keys: Keys) -> None:
        self._pace, self._keys = pace, keys
        self.inquiry: Inquiry | None = None
        """The reader of what ticks depend on besides their time; without one, there are no such facts."""
        self._chains: list[tuple[float, int, Chain]] = []
        """A heap ordered by when each chain is due, and then by its place."""
        self._jobs = 0
        """How many jobs all chains would enqueue."""
        self.is_crowded = False
        """Whether more was due after the last page was taken; other threads may read this."""
        self._places, self._front = itertools.count(), itertools.count(-1, -1)

    def __len__(self) -> int:
        return len(self._chains)

    @property
    def ids(self) -> list[str]:
        """Return the ids of all claimed schedules, the first due first."""
        return [chain.id for *_, chain in sorted(self._chains)]

    def hold(self, chains: Sequence[Chain]) -> None:
        """Hold chains that must be sent again; they come before others that are due at the same time."""
        for chain in reversed(chains):
            self._put(chain.due, next(self._front), chain)

    def give_back(self, ids: Iterable[str]) -> None:
        """Replace everything that is held with releases of these schedules."""
        self._chains, self._jobs = [], 0
        for each in ids:
            self._put(0, next(self._places), fire_items.released(each))

    def _put(self, due: float, place: int, chain: Chain) -> None:
        heapq.heappush(self._chains, (due, place, chain))
        self._jobs += chain.jobs

    def prepare(self, claims: Sequence[tuple[Claim, Page]], now_ms: float) -> None:
        """Decide about claims by their definitions and the facts, and hold the decisions."""
        known = [page.schedule for _, page in claims if page.schedule]
        told = {claim.id: claim.told for claim, _ in claims}
        facts = self.inquiry.about(known, now_ms, told) if self.inquiry else {}
        now = clock.from_ms(int(now_ms))
        for claim, page in claims:
            chain = self._decided(claim, page, now, facts.get(claim.id, NONE))
            self._put(max(chain.due, now_ms), next(self._places), chain)  # late ticks keep the order of the page

    def _decided(self, claim: Claim, page: Page, now: datetime, facts: Facts) -> Chain:
        """Return the decisions on a claim, or a quarantine if its definition cannot be used; never raise."""
        if page.schedule is None:
            return fire_items.quarantined(claim.id, page.rev, page.problem)
        try:
            if not claim.tick:  # it follows another schedule, and its pause is over
                return fire_items.awake(claim, page.rev, page.schedule)
            tick, lateness, most = clock.read(claim.tick), self._pace.lateness, self._pace.page_size
            decided = prepare(page.schedule, tick, now, lateness=lateness, most=most, **_held(claim))
            return fire_items.chain(claim, page.rev, page.schedule, decided, self._keys, facts=facts)
        except Exception as e:  # noqa: BLE001 (a definition in Redis can hold anything)
            return fire_items.quarantined(claim.id, page.rev, f"definition cannot be followed: {cause(e)}")

    def take(self, now_ms: float) -> list[Chain]:
        """Take out the next page of due chains; a chain is never split, so one may exceed the page size."""
        size = self._pace.page_size
        page: list[Chain] = []
        while self.next_ms <= now_ms and (not page or size >= self._chains[0][-1].jobs):
            page.append(heapq.heappop(self._chains)[-1])
            size -= page[-1].jobs
        self._jobs -= sum(chain.jobs for chain in page)
        self.is_crowded = self.next_ms <= now_ms
        return page

    @property
    def room(self) -> int:
        """Return how many more jobs it may hold; negative if it holds too many."""
        return self._pace.most_claims - self._jobs

    @property
    def next_ms(self) -> float:
        """Return when the next chain is due, in ms by Redis' clock; infinity if nothing is held."""
        return self._chains[0][0] if self._chains else math.inf


def _held(claim: Claim) -> dict[str, datetime]:
    """Return when an operator made the tick due, or when the pause of its schedule ended; empty for most."""
    if not claim.mark:
        return {}
    if claim.mark == fire_items.MOVED:
        return {"moved_to": clock.from_ms(claim.due)}
    return {"paused_until": clock.read(claim.mark)}
