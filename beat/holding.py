"""What a beat has claimed and not decided: what was prepared from its claims, until it is due."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from beat import clock, verdicts
from beat.facts import NONE
from beat.health import cause
from beat.prepare import prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from beat.book import Page
    from beat.inquiry import Inquiry
    from beat.keys import Keys
    from beat.pace import Pace
    from beat.protocol import Claim
    from beat.verdicts import Chain


class Holding:
    """One beat's claims. Whatever is in here is locked by us, and in nobody else's hands until that lock runs out."""

    def __init__(self, pace: Pace, keys: Keys) -> None:
        self._pace, self._keys = pace, keys
        self.inquiry: Inquiry | None = None
        """Whom to ask what ticks depend on besides their time."""
        self._chains: list[Chain] = []

    def __len__(self) -> int:
        return len(self._chains)

    @property
    def ids(self) -> list[str]:
        """Every schedule that is ours."""
        return [chain.id for chain in self._chains]

    def hold(self, chains: Iterable[Chain]) -> None:
        """What is to be sent, or to be sent again."""
        self._chains = [*chains, *self._chains]

    def give_back(self, ids: Iterable[str]) -> None:
        """These, and nothing else: all of them are to be released."""
        self._chains = [verdicts.released(each) for each in ids]

    def prepare(self, claims: Sequence[tuple[Claim, Page]], now_ms: float) -> None:
        """Decides about claims by their definitions and the facts, and holds what was decided."""
        known = [page.schedule for _, page in claims if page.schedule]
        told = {claim.id: claim.told for claim, _ in claims}
        facts = self.inquiry.about(known, now_ms, told) if self.inquiry else {}
        now, lateness = clock.from_ms(int(now_ms)), self._pace.lateness
        for claim, page in claims:
            if page.schedule is None:
                self._chains.append(verdicts.quarantined(claim.id, page.rev, page.problem))
                continue
            try:
                if not claim.tick:  # it follows another, and its pause is over
                    self._chains.append(verdicts.awake(claim, page.rev, page.schedule))
                    continue
                tick = clock.read(claim.tick)
                held = _held(claim)
                decided = prepare(page.schedule, tick, now, lateness=lateness, most=self._pace.page_size, **held)
                mine = facts.get(claim.id, NONE)
                self._chains.append(verdicts.chain(claim, page.rev, page.schedule, decided, self._keys, facts=mine))
            except Exception as e:  # noqa: BLE001 (whatever is wrong with one schedule, the others of its page go on)
                problem = f"definition cannot be followed: {cause(e)}"
                self._chains.append(verdicts.quarantined(claim.id, page.rev, problem))

    def take(self, now_ms: float) -> list[Chain]:
        """Hands out a page of what is due; a chain is never torn."""
        size = self._pace.page_size
        due: list[Chain] = []
        rest: list[Chain] = []
        for chain in self._chains:
            fits = chain.due <= now_ms and (not due or size >= chain.jobs)
            size -= chain.jobs if fits else 0
            (due if fits else rest).append(chain)
        self._chains = rest
        return due

    @property
    def next_ms(self) -> float:
        """When the first of it is due."""
        return min((chain.due for chain in self._chains), default=math.inf)


def _held(claim: Claim) -> dict[str, datetime]:
    """What an operator said about the tick: when it is due, or until when it was held."""
    if not claim.mark:
        return {}
    if claim.mark == verdicts.MOVED:
        return {"moved_to": clock.from_ms(claim.due)}
    return {"paused_until": clock.read(claim.mark)}
