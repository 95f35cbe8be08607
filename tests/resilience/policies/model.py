"""What must become of every tick of one schedule: the policies in as few words as they can be said.

The model knows no Redis, no scripts, no locks and no pages. It is told when a beat passes and what the workers have
done by then; it says which ticks have which verdict, which of them wait, and which comes next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from beat.config.groups import Group

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Tick:
    """One due instant."""

    at: datetime
    due: datetime
    """With its part of the jitter."""
    excluded: bool = False
    """Whether it lies on a day of rest."""


@dataclass(frozen=True)
class Policy:
    """What a schedule says about late, overlapping and bounded ticks, with the defaults filled in."""

    misfire: str = "once"
    misfire_after: timedelta = 20 * SECOND
    catchup_window: timedelta = timedelta(days=366)
    catchup_limit: int = 10
    overlap: str = "allow"
    max_running: int = 1
    max_waiting: int = 1
    max_runs: int | None = None
    jitter: timedelta = timedelta(0)
    parts: int = 1
    """How many jobs a tick becomes."""
    group: Group | None = None
    enabled: bool = True
    follows: str | None = None
    within: timedelta | None = None
    """How long ago what it requires may have succeeded."""


class Model:
    """One schedule. `ticks` are all that it has, from the first after it was registered."""

    def __init__(self, policy: Policy, ticks: Iterator[Tick]) -> None:
        self.policy = policy
        self.verdicts: dict[datetime, str] = {}
        """By tick: `enqueued`, `catchup` (enqueued as well, late), or why it was skipped."""
        self._line: dict[Tick, str] = {}
        """Those that wait for an earlier run to end, the oldest first, and as what they will be enqueued."""
        self._hall: dict[Tick, str] = {}
        """Those that have their own room, and wait for the group's."""
        self._ticks, self._coming = ticks, next(ticks, None)
        self._due: deque[Tick] = deque()
        self._running: set[datetime] = set()
        self._succeeded: datetime | None = None
        self._resumes = datetime.min.replace(tzinfo=UTC)

    @property
    def next(self) -> Tick | None:
        """The first tick that nobody has decided about; None when the schedule has finished."""
        return self._due[0] if self._due else self._coming

    @property
    def goes_on(self) -> bool:
        """Whether there is more to come: it has not finished."""
        return self.next is not None or (self.policy.follows is not None and not self._is_enough(len(self.enqueued)))

    @property
    def wakes(self) -> datetime | None:
        """When the next tick may be decided."""
        return max(self.next.due, self._resumes) if self.next else None

    @property
    def enqueued(self) -> list[datetime]:
        """The ticks that became jobs, in the order in which they did."""
        return [tick for tick, verdict in self.verdicts.items() if verdict in {"enqueued", "catchup"}]

    @property
    def waiting(self) -> list[Tick]:
        """Those that wait, for whatever."""
        return sorted([*self._hall, *self._line], key=lambda tick: tick.at)

    def passes(
        self,
        now: datetime,
        *,
        ended: Collection[datetime],
        queued: Collection[datetime],
        succeeded: datetime | None = None,
        arrivals: Iterable[Tick] = (),
    ) -> None:
        """A beat passes: those runs have `ended` since, those are `queued` that no worker has begun.

        What it requires has last `succeeded` then; `arrivals` are its ticks if it has none of its own, but follows.
        """
        self._succeeded = succeeded
        while self._coming and self._coming.at <= now:
            self._due.append(self._coming)
            self._coming = next(self._ticks, None)
        self._make_room(ended)
        replaces = self.policy.overlap == "replace" and self._line  # the newest wins: out of the queue with the older
        self._make_room(self._running.intersection(queued if replaces else ()))
        if now >= self._resumes:
            self._decide(now)
        for tick in arrivals:
            self._arrive(tick)

    def _make_room(self, ended: Collection[datetime]) -> None:
        self._running.difference_update(ended)
        while self._hall and self._fits():
            tick = next(iter(self._hall))
            self._enqueue(tick, self._hall.pop(tick))
        while self._line and self._has_own_room():
            tick = next(iter(self._line))
            self._enter_group(tick, self._line.pop(tick))

    def _has_own_room(self) -> bool:
        return self.policy.overlap == "allow" or len(self._running) + len(self._hall) < self.policy.max_running

    def _fits(self) -> bool:
        """Whether the group has room."""
        group = self.policy.group
        return not group or (len(self._running) + 1) * self.policy.parts <= group.max_running

    def _enter_group(self, tick: Tick, how: str) -> None:
        group = self.policy.group
        if not group or (not self._hall and self._fits()):
            self._enqueue(tick, how)
        elif group.when_full == "skip" or len(self._hall) >= group.max_waiting:
            self.verdicts[tick.at] = "group"
        else:
            self._hall[tick] = how

    def _arrive(self, tick: Tick) -> None:
        """What becomes of a tick that follows a success."""
        if tick.excluded or self._lacks(tick):
            self.verdicts[tick.at] = "excluded" if tick.excluded else "dependency"
        elif not self.policy.enabled:
            self.verdicts[tick.at] = "disabled"
        elif self._is_enough(len(self.enqueued)):
            self.verdicts[tick.at] = "finished"
        else:
            self._fire(tick, "enqueued")

    def _lacks(self, tick: Tick) -> bool:
        """Whether what it requires has not happened."""
        within = self.policy.within
        return within is not None and (self._succeeded is None or self._succeeded < tick.at - within)

    def _decide(self, now: datetime) -> None:
        left, policy = self.policy.catchup_limit, self.policy
        late = {tick: now - tick.at - policy.jitter for tick in self._due}
        missed = [tick for tick in self._due if policy.misfire_after < late[tick] <= policy.catchup_window]
        latest = max((tick.at for tick in missed if not tick.excluded), default=None)
        while self._due and left and self._due[0].due <= now:
            tick = self._due.popleft()
            if late[tick] > policy.catchup_window:
                verdict = "too_old"
            elif tick in missed:
                verdict = self._missed(tick, latest)
            else:
                verdict = "excluded" if tick.excluded else "enqueued"
            if verdict in {"enqueued", "catchup"} and self._lacks(tick):
                verdict = "dependency"
            left -= policy.misfire == "all" and verdict == "catchup"
            if verdict in {"enqueued", "catchup"}:
                self._fire(tick, verdict)
            else:
                self.verdicts[tick.at] = verdict
        if not left:
            self._resumes = now + SECOND

    def _missed(self, tick: Tick, latest: datetime | None) -> str:
        """What becomes of a tick that nobody decided in time."""
        if self.policy.misfire == "skip":
            return "misfire"
        if self.policy.misfire == "all":
            return "excluded" if tick.excluded else "catchup"
        if latest is None or tick.at > latest:
            return "excluded"
        return "catchup" if tick.at == latest else "misfire"

    def _fire(self, tick: Tick, how: str) -> None:
        """Into the room, or into the line, or neither."""
        policy = self.policy
        if self._has_own_room():
            self._enter_group(tick, how)
        elif policy.overlap == "replace":
            self.verdicts |= dict.fromkeys((older.at for older in self.waiting), "replaced")
            self._line, self._hall = {tick: how}, {}
        elif policy.overlap == "wait" and len(self._line) < policy.max_waiting:
            self._line[tick] = how
        else:
            self.verdicts[tick.at] = "overlap"
        if self._is_enough(len(self.enqueued) + len(self.waiting)):
            self._due.clear()  # finished: what would come after has no ticks
            self._ticks, self._coming = iter(()), None

    def _is_enough(self, count: int) -> bool:
        return self.policy.max_runs is not None and count >= self.policy.max_runs

    def _enqueue(self, tick: Tick, how: str) -> None:
        self.verdicts[tick.at] = how
        self._running.add(tick.at)
