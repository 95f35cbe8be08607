"""The ticker: claim → prepare → fire.

A pass takes what is due, decides about it, and has Redis carry the verdicts out. Any number of beats do this side by
side on one Redis, and none of them leads.

::

    claim     one script    the earliest schedules that are due, or will be within the lookahead: each gets a lock and
                            is hidden from the others; with what some depend on besides their time
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
    half of the replies are lost        as if all were: the connection is closed, and nobody reads the rest
    it is stopped longer than a lock    another beat has fired: STALE or FENCED
    its clock is wrong                  nobody asks it: Redis' own TIME decides, EARLY says how long to wait
    the definition changed meanwhile    CHANGED: the schedule is claimed again at once
    Redis refuses to write              the script is refused as a whole; the tick stays due

What is claimed ahead is held until it is due, so that preparing costs no lateness. While page follows page, a fire and
a claim go out in one message, and the next message before the answer to the last has come: Redis always has something
to do, and the next page is prepared meanwhile.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from beat.engine import fire_items
from beat.engine.claims import Holding
from beat.engine.clock_guard import Timekeeper, mark, uptime_ms
from beat.engine.events import Event
from beat.engine.pacing import RedisClock
from beat.engine.replies import Replies
from beat.storage import connection
from beat.storage.backoff import Patience, cause
from beat.storage.messages import Claimed, Decided
from beat.storage.store import pages

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from beat.engine.clock_guard import Mark
    from beat.engine.definition_cache import Book
    from beat.engine.events import Emit
    from beat.engine.fire_items import Chain
    from beat.engine.health import Health
    from beat.engine.obstacles import Obstacles
    from beat.engine.pacing import Pace
    from beat.engine.ports import Desk
    from beat.engine.waiting import Attendant

QUESTIONS = 2
"""So many may be on their way: Redis finds the next one when it has answered the last."""
_GIVEN = {"OK", "WAITS", "SKIPPED", "ENDED"}
_RELEASED = 1000
"""So many are given back at once: who ends has little time."""
IN_VAIN = 3
"""So many pages in a row without a verdict end a pass."""


class Asked(NamedTuple):
    """A question to which the answer has not come."""

    due: list[Chain]
    claims: int
    """How many schedules the answer may bring."""
    uptime_ms: int
    alone: bool
    """Whether no other was on its way: then the answer says what time it is."""
    void: bool = False
    """Whether Redis' clock jumped meanwhile: what it brings goes back."""


class Ticker:
    """One beat's part in the work."""

    def __init__(
        self,
        desk: Desk,
        book: Book,
        pace: Pace,
        *,
        token: str,
        emit: Emit,
        health: Health,
        only: str = "",
        obstacles: Obstacles | None = None,
    ) -> None:
        self.timekeeper = Timekeeper(desk, emit)
        self.clock = RedisClock()
        self.attendant: Attendant | None = None
        self.awake_at = time.monotonic()
        """Since when it is at one step, or until when it sleeps, by the monotonic clock."""
        self.passed_ms, self.passes = 0.0, deque[float](maxlen=1000)
        """When the last pass ended by Redis' clock; how many seconds each of the last took, for whoever takes them."""
        self._desk, self._book, self._pace = desk, book, pace
        self._token, self._only, self._emit, self._health = token, only, emit, health
        self._replies = Replies(emit, obstacles)
        self.holding = Holding(pace, desk.keys)
        self._asked: deque[Asked] = deque()
        self._wanted, self._busy = 0, False
        """How many claims are worth asking for: there may be more to hand out; whether the last page was full."""
        self._in_vain, self._freed_at = 0, math.inf

    def run(self, stopping: threading.Event) -> None:
        """Passes on whole seconds of Redis' clock, until it is time to stop; no error ends it."""
        patience = Patience()
        while not stopping.is_set():
            self.awake_at = time.monotonic()
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
                self.awake_at = self.clock.local_s(wakes_at := self._wakes_at())
                self.clock.sleep_until(wakes_at, stopping)
        self.release()

    def turn(self, stopping: threading.Event) -> None:
        """One pass: page after page of what is due. While Redis works on one, the next is prepared and sent."""
        self._freed_at, self._wanted, self._busy, self._in_vain = math.inf, 1, False, 0
        began = time.monotonic()
        while True:
            over = stopping.is_set() or self._in_vain >= IN_VAIN  # what leads nowhere waits for the next pass
            left = self._wanted > 0 or self.holding.next_ms <= self.clock.now_ms()
            if left and not over and len(self._asked) < (QUESTIONS if self._busy or self.holding.is_crowded else 1):
                self._ask()
            elif self._asked:
                self._hear()
            else:
                break
            self.awake_at = time.monotonic()
        self.passed_ms = self.clock.now_ms()
        self.passes.append(time.monotonic() - began)

    def release(self) -> None:
        """Gives back what is claimed and not decided."""
        with contextlib.suppress(*connection.Errors):  # the locks run out by themselves
            while self._asked:
                self._hear()
            for page in pages(self.holding.ids, _RELEASED):
                self._desk.fire([fire_items.released(each).items[0] for each in page], token=self._token)

    def _ask(self) -> None:
        """What is due goes out, and a claim of what comes next; the two together only between the last pages of many.

        Else a beat would claim what it has just fired before any other could, or more than it gets round to.
        """
        due = self.holding.take(self.clock.now_ms())
        if alone := not self._asked:
            self.clock.ask()
        room = self.holding.room - len(due) - sum(len(each.due) + each.claims for each in self._asked)
        asks = self._pace.asks(room if not due or (self._busy and not self.holding.is_crowded) else None)
        self._asked.append(Asked(due, asks["limit"], uptime_ms(), alone))
        self._wanted = max(0, self._wanted - 1) if asks["limit"] else 1
        try:
            items = [self._replies.stamped(item) for chain in due for item in chain.items]
            self._desk.ask(items, self._replies.unread(), token=self._token, only=self._only, **asks)
        except Exception as e:
            self._lost(e)
            raise

    def _hear(self) -> None:
        """Takes note of the oldest answer; no verdict in it, though something was due, was in vain."""
        try:
            fired, claimed = self._desk.answer()
        except Exception as e:
            self._lost(e)
            raise
        asked = self._asked.popleft()
        if isinstance(claimed, Claimed) and asked.alone:
            self.clock.learn(fired.now if asked.due and isinstance(fired, Decided) else claimed.now, claimed.now)
        given = self._settle(asked.due, fired)
        if asked.due:
            self._in_vain = 0 if given or (self.holding.is_crowded and not _early(fired)) else self._in_vain + 1
        if isinstance(claimed, Claimed) and asked.claims:
            self._take(claimed, None if asked.void else mark(asked.uptime_ms, claimed.now))
        if isinstance(fired, Exception):
            raise fired
        if isinstance(claimed, connection.Refused):  # out of memory, read-only …: reads still work
            self._replies.refused(self._book.functions(self._desk.due(self._pace.page_size)), claimed)
        if isinstance(claimed, Exception):
            raise claimed

    def _lost(self, error: Exception) -> None:
        """Perhaps it happened, and the replies were lost: sent again, it does nothing if it had."""
        self._desk.hang_up()
        asked, self._asked = self._asked, deque()
        for each in reversed(asked) if isinstance(error, connection.Errors) else ():  # after a bug the locks run out
            self._settle(each.due, error)

    def _take(self, claimed: Claimed, now: Mark | None) -> None:
        """What we were handed goes to what we hold; all of it goes back if Redis' clock has jumped.

        So does what was asked for before that was noticed: then there is no reading of the clock to judge by.
        """
        self._freed_at = min(self._freed_at, self._replies.met(claimed))
        if now is None or self.timekeeper.is_ahead(now):
            self.holding.give_back([*self.holding.ids, *(claim.id for claim in claimed.claims)])
            self._asked = deque(each._replace(void=True) for each in self._asked)
            if now:
                self.timekeeper.hold(now)
        else:
            found = zip(claimed.claims, self._book.find(claimed.claims), strict=True)
            self.holding.prepare(list(found), self.clock.now_ms())
            self._busy = len(claimed.claims) >= self._pace.page_size
            self._wanted = max(self._wanted, QUESTIONS if self._busy else int(bool(claimed.claims)))

    def _settle(self, due: Sequence[Chain], fired: Decided | Exception) -> bool:
        """Takes note of what became of what was due; whether any verdict was given."""
        if isinstance(fired, Exception):
            self.holding.hold(due)
            self._replies.refused(((chain.id, chain.func) for chain in due if chain.func), fired)
            return False
        replies, unseen = iter(fired.replies), [reply for reply in fired.replies if reply.code == "ENDED"]
        settled = (self._replies.settle(chain, [next(replies) for _ in chain.items], fired.now) for chain in due)
        self.holding.hold([again for again in settled if again])
        if unseen and self.attendant:  # before they are sent again
            self.attendant.clear(sum(int(reply.words) for reply in unseen))
        return any(reply.code in _GIVEN for reply in fired.replies)

    def _wakes_at(self) -> float:
        """Return the next whole interval of Redis' clock, or when a held tick is due or a lock expires, if sooner.

        While Redis rejects ticks, an interval longer than a quarter of `misfire_after` would turn them into misfires.
        """
        interval = self._pace.cycle if self._replies.obstacles.retries() else self._pace.interval
        boundary = (self.clock.now_ms() // interval + 1) * interval
        return min(boundary, self._freed_at, self.holding.next_ms)


def _early(fired: Decided | Exception) -> bool:
    """Whether Redis' clock does not show what we thought: then there is no use in sending more of it."""
    return isinstance(fired, Decided) and any(reply.code == "EARLY" for reply in fired.replies)
