"""The ticker: claim → prepare → fire.

A pass takes what is due, decides about it, and has Redis carry the verdicts out. Any number of beats do this side by
side on one Redis, and none of them leads.

::

    claim     one script    the earliest schedules that are due, or will be within the lookahead: each gets a lock and
                            is hidden from the others
    prepare   pure Python   what becomes of each tick, and which tick follows
    fire      one script    per tick: guards → compare-and-set → job, queue, state and index at once → one code back

What can happen to a tick::

                 claim                      prepare, fire
    waiting ────────────────▶ claimed ─────────────────────▶ enqueued or skipped
       ▲   due, or nearly        │                            (next_run has moved on: the next tick waits)
       └─────────────────────────┘
         the lock runs out, or is given back

The lock is for speed, the compare-and-set is for safety: `fire` does nothing unless next_run is still the tick that was
prepared, and moves it on in the same step. So whatever happens in between, a tick has one verdict::

    this beat is killed before fire     nothing was written; the lock runs out, another beat claims the schedule
    it is killed after fire             all of it was written; next_run has moved on
    the reply of claim is lost          as if killed before fire: the locks run out
    the reply of fire is lost           the same is sent again: STALE with our job in last_job says that it had happened
    it is stopped longer than a lock    another beat has fired: STALE or FENCED
    its clock is wrong                  nobody asks it: Redis' own TIME decides, EARLY says how long to wait
    the definition changed meanwhile    CHANGED: the schedule is claimed again at once
    Redis refuses to write              the script is refused as a whole; the tick stays due

What is claimed ahead is held until it is due, so that preparing costs no lateness.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from beat import clock, connection, verdicts
from beat.event import Event
from beat.guard import mark, uptime_ms
from beat.health import Patience, cause
from beat.pace import RedisClock
from beat.prepare import prepare
from beat.replies import Replies
from beat.timekeeper import Timekeeper

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    from beat.book import Book
    from beat.event import Emit
    from beat.health import Health
    from beat.keys import Keys
    from beat.pace import Pace
    from beat.protocol import Claim, Claimed, Decided, Item
    from beat.verdicts import Chain

MOST_CLAIMS = 1000
"""How many schedules a beat holds at once."""
IN_VAIN = 3
"""So many pages in a row without a verdict end a pass."""
UNREAD_S = 60
"""How long a schedule is passed over that this beat cannot read and another can."""


class Desk(Protocol):
    """What the ticker needs of Redis."""

    keys: Keys

    def claim(
        self, unread: Iterable[str], /, *, token: str, lock_ttl: int, lookahead: int, limit: int, only: str
    ) -> Claimed:
        """Schedules that are ours to decide about."""

    def fire(self, items: Sequence[Item], *, token: str) -> Decided:
        """Verdicts, carried out."""

    def due(self, limit: int) -> list[str]:
        """The ids of what is due, without taking it."""

    def high_water(self) -> tuple[str, str]:
        """The highest time that a beat has found sound, and the mark that went with it."""

    def hold(self, since: int, until: int) -> None:
        """Nothing is handed out meanwhile."""


class Ticker:
    """One beat's part in the work."""

    def __init__(
        self, desk: Desk, book: Book, pace: Pace, *, token: str, emit: Emit, health: Health, only: str = ""
    ) -> None:
        self.timekeeper = Timekeeper(desk, emit)
        self.clock = RedisClock()
        self.passed_at = time.monotonic()
        """When the last pass, or a page of it, ended by the monotonic clock."""
        self.passed_ms = 0.0
        """When the last pass ended by Redis' clock."""
        self._desk, self._book, self._pace = desk, book, pace
        self._token, self._only = token, only
        self._emit, self._health = emit, health
        self._replies = Replies(emit)
        self._held: list[Chain] = []
        self._freed_at = math.inf
        self._unread: dict[str, float] = {}

    def run(self, stopping: threading.Event) -> None:
        """Passes on whole seconds of Redis' clock, until it is time to stop; no error ends it."""
        patience = Patience()
        while not stopping.is_set():
            try:
                self.turn(stopping)
            except connection.Errors as e:
                self._health.failed("ticker", e)
                patience.wait(stopping)
            except Exception as e:  # noqa: BLE001 (a bug in one pass must not silence the beat)
                self._emit(Event("failed", fields={"error": cause(e), "exception": e}))
                patience.wait(stopping)
            else:
                self._health.worked("ticker")
                patience.reset()
                self.clock.sleep_until(self._wakes_at(), stopping)
        self.release()

    def turn(self, stopping: threading.Event) -> None:
        """One pass: what is held and due, then page after page of what else is due."""
        self._freed_at = math.inf
        self._fire(self._due())
        in_vain = 0
        while not stopping.is_set() and in_vain < IN_VAIN and (claims := self._claim()):
            self._held += self._prepare(claims)
            due = self._due()
            in_vain = 0 if self._fire(due) or not due else in_vain + 1  # what leads nowhere waits for the next pass
            self.passed_at = time.monotonic()
        self.passed_at, self.passed_ms = time.monotonic(), self.clock.now_ms()

    def release(self) -> None:
        """Gives back what is claimed and not decided."""
        held, self._held = self._held, []
        try:
            self._fire([verdicts.released(chain.id) for chain in held])
        except connection.Errors:
            self._held = []  # the locks run out by themselves

    def _claim(self) -> Sequence[Claim]:
        room, asked_ms = MOST_CLAIMS - len(self._held), uptime_ms()
        self.clock.ask()
        self._unread = {each: since for each, since in self._unread.items() if time.monotonic() - since < UNREAD_S}
        try:
            claimed = self._desk.claim(
                self._unread,
                token=self._token,
                lock_ttl=self._pace.lock_ttl,
                lookahead=self._pace.lookahead if room > 0 else 0,
                limit=min(self._pace.page_size, room) if room > 0 else self._pace.page_size,
                only=self._only,
            )
        except connection.Refused as e:  # out of memory, read-only …: reads still work
            self._replies.refused(self._book.functions(self._desk.due(self._pace.page_size)), e)
            raise
        self.clock.learn(claimed.now)
        if claimed.code == "OK":
            self._replies.well()
        for schedule_id, reply in claimed.troubles:
            self._replies.trouble(schedule_id, reply)
            if reply.code == "LOCKED":
                self._freed_at = min(self._freed_at, claimed.now + int(reply.words) + 1)
        if self.timekeeper.is_ahead(now := mark(asked_ms, claimed.now)):
            ours = [*(chain.id for chain in self._held), *(claim.id for claim in claimed.claims)]
            self._held = [verdicts.released(each) for each in ours]
            self.timekeeper.hold(now)
            return ()
        return claimed.claims

    def _prepare(self, claims: Sequence[Claim]) -> Iterator[Chain]:
        now, limit = clock.from_ms(int(self.clock.now_ms())), timedelta(milliseconds=self._pace.misfire_limit)
        for claim, page in zip(claims, self._book.find(claims), strict=True):
            if page.schedule is None:
                yield verdicts.quarantined(claim.id, page.rev, page.problem)
                continue
            try:
                tick = clock.read(claim.tick)
                decided = prepare(page.schedule, tick, now, misfire_limit=limit, most=self._pace.page_size)
            except Exception as e:  # noqa: BLE001 (whatever is wrong with one schedule, the others of its page go on)
                yield verdicts.quarantined(claim.id, page.rev, f"definition cannot be followed: {cause(e)}")
            else:
                yield verdicts.chain(claim, page.rev, page.schedule, decided, self._desk.keys)

    def _fire(self, chains: Iterable[Chain]) -> bool:
        """Has them carried out; whether any verdict was given."""
        batches, done = list(_batches(chains, self._pace.page_size)), False
        while batches:
            items = [self._replies.stamped(item) for chain in batches[0] for item in chain.items]
            self.clock.ask()
            try:
                decided = self._desk.fire(items, token=self._token)
            except connection.Errors as e:
                # Perhaps it happened and the reply was lost. Sent again, it does nothing if it had.
                self._held = [chain for batch in batches for chain in batch] + self._held
                self._replies.refused(((chain.id, chain.func) for chain in batches[0] if chain.func), e)
                raise
            self.clock.learn(decided.now)
            replies = iter(decided.replies)
            for chain in batches.pop(0):
                settled = [next(replies) for _ in chain.items]
                again = self._replies.settle(chain, settled, decided.now)
                self._held += [again] if again else []
                done = done or any(reply.code == "OK" for reply in settled)
                if settled[0].code == "OTHERS":
                    self._unread[chain.id] = time.monotonic()
        return done

    def _due(self) -> list[Chain]:
        """Takes what is due out of what is held."""
        now = self.clock.now_ms()
        due = [chain for chain in self._held if chain.due <= now]
        self._held = [chain for chain in self._held if chain.due > now]
        return due

    def _wakes_at(self) -> float:
        """The next whole interval of Redis' clock, or when the first of what is held is due, or a lock runs out."""
        interval = self._pace.interval
        boundary = (self.clock.now_ms() // interval + 1) * interval
        return min(boundary, self._freed_at, *(chain.due for chain in self._held))


def _batches(chains: Iterable[Chain], size: int) -> Iterator[list[Chain]]:
    """Lists of chains with about `size` items together; a chain is never torn."""
    batch: list[Chain] = []
    items = 0
    for chain in chains:
        if batch and items + len(chain.items) > size:
            yield batch
            batch, items = [], 0
        batch.append(chain)
        items += len(chain.items)
    if batch:
        yield batch
