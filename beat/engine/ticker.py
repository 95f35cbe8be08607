"""Claim due schedules, decide about their ticks, and let Redis carry the decisions out, so that each tick fires once.

Any number of schedulers run this cycle side by side on one Redis, without a leader::

    claim     one script    lock and hide the earliest schedules that are due, or will be within the lookahead; read
                            with them what their ticks depend on besides the time
    prepare   pure Python   decide what becomes of each tick, and which tick is next
    fire      one script    for each tick: guards → compare-and-set → job, queue, state and index in one step → a code

The states of a tick::

                 claim                      prepare, fire
    waiting ────────────────▶ claimed ─────────────────────▶ enqueued or skipped
       ▲   due, or nearly        │                            (next_run has moved on: the next tick waits)
       └─────────────────────────┘
         the lock expires, or is released

The lock only divides the work. Correctness comes from the compare-and-set: `fire` does nothing unless next_run is still
the tick that was prepared, and it moves next_run on in the same step. So each tick gets exactly one decision::

    the scheduler dies before fire      nothing was written; the lock expires, and another scheduler claims the schedule
    the scheduler dies after fire       everything was written; next_run has moved on
    the reply of claim is lost          as if the scheduler died before fire: the locks expire
    the reply of fire is lost           the items are sent again; STALE with our job in last_job means that it was done
    some of the replies are lost        as if all were lost: the connection is closed, and no later reply is read
    the scheduler stalls past its lock  another scheduler has fired: STALE or FENCED
    the local clock is wrong            it does not count: Redis' TIME decides, and EARLY says how long to wait
    the definition changed              CHANGED: the schedule is claimed again at once
    Redis rejects writes                the script is rejected as a whole; the tick stays due

A schedule that is claimed ahead of time is held until it is due, so that preparing it does not make it late. Between
full pages, `fire` and `claim` go out in one message, and the next message goes out before the last answer comes. So
Redis is never idle, and the next page is prepared meanwhile.
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
"""How many messages may be in flight: Redis finds the next one as soon as it has answered the last."""
_GIVEN = {"OK", "WAITS", "SKIPPED", "ENDED"}
_RELEASED = 1000
"""How many schedules are released in one message; large, because a scheduler that stops has little time."""
IN_VAIN = 3
"""How many pages in a row without a decision end a cycle."""


class Asked(NamedTuple):
    """A message whose answer has not come yet."""

    due: list[Chain]
    claims: int
    """The maximum number of schedules in the answer."""
    uptime_ms: int
    alone: bool
    """Whether no other message was in flight; only then does the answer tell the time."""
    void: bool = False
    """Whether Redis' clock was found to have jumped meanwhile; then the claims in the answer are released."""


class Ticker:
    """The loop of one scheduler that claims, prepares and fires."""

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
        """When the current step began, or when the current sleep ends, by the monotonic clock."""
        self.passed_ms, self.passes = 0.0, deque[float](maxlen=1000)
        """When the last cycle ended, in ms by Redis' clock; how many seconds recent cycles took, for the metrics."""
        self._desk, self._book, self._pace = desk, book, pace
        self._token, self._only, self._emit, self._health = token, only, emit, health
        self._replies = Replies(emit, obstacles)
        self.holding = Holding(pace, desk.keys)
        self._asked: deque[Asked] = deque()
        self._wanted, self._busy = 0, False
        """How many more pages of claims to ask for in this cycle; whether the last page was full."""
        self._in_vain, self._freed_at = 0, math.inf

    def run(self, stopping: threading.Event) -> None:
        """Run a cycle at each whole interval of Redis' clock until `stopping` is set; no error ends the loop."""
        patience = Patience()
        while not stopping.is_set():
            self.awake_at = time.monotonic()
            try:
                self.turn(stopping)
            except connection.Errors as e:
                self._health.failed("ticker", e)
                patience.wait(stopping)
            except Exception as e:  # noqa: BLE001 (a bug in one cycle must not stop the scheduler)
                self._emit(Event("failed", fields={"error": cause(e), "exception": e}))
                patience.wait(stopping)
            else:
                self._health.worked("ticker")
                patience.reset()
                self.awake_at = self.clock.local_s(wakes_at := self._wakes_at())
                self.clock.sleep_until(wakes_at, stopping)
        self.release()

    def turn(self, stopping: threading.Event) -> None:
        """Run one cycle: process pages of due schedules; while Redis works on one, prepare and send the next."""
        self._freed_at, self._wanted, self._busy, self._in_vain = math.inf, 1, False, 0
        began = time.monotonic()
        while True:
            over = stopping.is_set() or self._in_vain >= IN_VAIN  # pages without decisions wait for the next cycle
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
        """Release the schedules that are claimed and not decided."""
        with contextlib.suppress(*connection.Errors):  # the locks expire by themselves
            while self._asked:
                self._hear()
            for page in pages(self.holding.ids, _RELEASED):
                self._desk.fire([fire_items.released(each).items[0] for each in page], token=self._token)

    def _ask(self) -> None:
        """Send the held ticks that are due, or a claim of the next schedules; both together only between full pages.

        Otherwise a scheduler would claim again what it has just fired, before any other could, or claim more than it
        can fire in time.
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
        """Process the oldest answer; count it as in vain if ticks were due and none was decided.

        Raises the errors in the answer once everything else in it is processed.
        """
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
        if isinstance(claimed, connection.Refused):  # Redis is out of memory, read-only …; reads still work
            self._replies.refused(self._book.functions(self._desk.due(self._pace.page_size)), claimed)
        if isinstance(claimed, Exception):
            raise claimed

    def _lost(self, error: Exception) -> None:
        """Give up all answers in flight and hold their ticks again; `fire` ignores those that it has decided."""
        self._desk.hang_up()
        asked, self._asked = self._asked, deque()
        for each in reversed(asked) if isinstance(error, connection.Errors) else ():  # after a bug the locks expire
            self._settle(each.due, error)

    def _take(self, claimed: Claimed, now: Mark | None) -> None:
        """Prepare the claimed schedules and hold them, or release everything that is held if Redis' clock has jumped.

        Claims that were in flight when the jump was noticed are released, too. They come without `now`, because their
        reading of the clock cannot be judged.
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
        """Process the replies to due ticks, hold those to send again, and return whether any tick was decided."""
        if isinstance(fired, Exception):
            self.holding.hold(due)
            self._replies.refused(((chain.id, chain.func) for chain in due if chain.func), fired)
            return False
        replies, unseen = iter(fired.replies), [reply for reply in fired.replies if reply.code == "ENDED"]
        settled = (self._replies.settle(chain, [next(replies) for _ in chain.items], fired.now) for chain in due)
        self.holding.hold([again for again in settled if again])
        if unseen and self.attendant:  # close ended runs before these items are sent again
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
    """Return whether Redis rejected a tick as early; then our estimate of its clock is ahead."""
    return isinstance(fired, Decided) and any(reply.code == "EARLY" for reply in fired.replies)
