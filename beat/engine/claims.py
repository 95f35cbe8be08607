"""What a beat has claimed and not decided: what was prepared from its claims, until it is due."""

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
    """One beat's claims. Whatever is in here is locked by us, and in nobody else's hands until that lock runs out."""

    def __init__(self, pace: Pace, keys: Keys) -> None:
        self._pace, self._keys = pace, keys
        self.inquiry: Inquiry | None = None
        """Whom to ask what ticks depend on besides their time."""
        self._chains: list[tuple[float, int, Chain]] = []
        """A heap by when each is to be sent, and then by its place."""
        self._jobs = 0
        """How many jobs all of it would make."""
        self.is_crowded = False
        """Whether more was due when the last page was taken; other threads may ask, too."""
        self._places, self._front = itertools.count(), itertools.count(-1, -1)

    def __len__(self) -> int:
        return len(self._chains)

    @property
    def ids(self) -> list[str]:
        """Every schedule that is ours."""
        return [chain.id for *_, chain in sorted(self._chains)]

    def hold(self, chains: Sequence[Chain]) -> None:
        """What is to be sent, or to be sent again: of what is due at the same time it comes first."""
        for chain in reversed(chains):
            self._put(chain.due, next(self._front), chain)

    def give_back(self, ids: Iterable[str]) -> None:
        """These, and nothing else: all of them are to be released."""
        self._chains, self._jobs = [], 0
        for each in ids:
            self._put(0, next(self._places), fire_items.released(each))

    def _put(self, due: float, place: int, chain: Chain) -> None:
        heapq.heappush(self._chains, (due, place, chain))
        self._jobs += chain.jobs

    def prepare(self, claims: Sequence[tuple[Claim, Page]], now_ms: float) -> None:
        """Decides about claims by their definitions and the facts, and holds what was decided."""
        known = [page.schedule for _, page in claims if page.schedule]
        told = {claim.id: claim.told for claim, _ in claims}
        facts = self.inquiry.about(known, now_ms, told) if self.inquiry else {}
        now = clock.from_ms(int(now_ms))
        for claim, page in claims:
            chain = self._decided(claim, page, now, facts.get(claim.id, NONE))
            self._put(max(chain.due, now_ms), next(self._places), chain)  # what is late keeps the order of the page

    def _decided(self, claim: Claim, page: Page, now: datetime, facts: Facts) -> Chain:
        """Whatever is wrong with one schedule, the others go on."""
        if page.schedule is None:
            return fire_items.quarantined(claim.id, page.rev, page.problem)
        try:
            if not claim.tick:  # it follows another, and its pause is over
                return fire_items.awake(claim, page.rev, page.schedule)
            tick, lateness, most = clock.read(claim.tick), self._pace.lateness, self._pace.page_size
            decided = prepare(page.schedule, tick, now, lateness=lateness, most=most, **_held(claim))
            return fire_items.chain(claim, page.rev, page.schedule, decided, self._keys, facts=facts)
        except Exception as e:  # noqa: BLE001 (a definition of somebody else's may do anything)
            return fire_items.quarantined(claim.id, page.rev, f"definition cannot be followed: {cause(e)}")

    def take(self, now_ms: float) -> list[Chain]:
        """Hands out a page of what is due; a chain is never torn."""
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
        """How many more it could take."""
        return self._pace.most_claims - self._jobs

    @property
    def next_ms(self) -> float:
        """When the next of it is due."""
        return self._chains[0][0] if self._chains else math.inf


def _held(claim: Claim) -> dict[str, datetime]:
    """What an operator said about the tick: when it is due, or until when it was held."""
    if not claim.mark:
        return {}
    if claim.mark == fire_items.MOVED:
        return {"moved_to": clock.from_ms(claim.due)}
    return {"paused_until": clock.read(claim.mark)}
