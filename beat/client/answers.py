"""What can be said about one instant of a schedule: an answer by its name, and the facts that go with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.placing import Parent
    from beat.client.staffing import Queue
    from beat.client.standing import Bound, Pause
    from beat.history import Action, Change, Fired, Passed, Waits
    from beat.schedule import Schedule

Answer = Literal[
    "enqueued",  # it became a job: `runs`; `passed`, if it was skipped at first and made up for later
    "skipped",  # it passed without one: `passed`; `behind` or `instead`, if another was in its way or had its turn
    "waiting",  # it waits for an earlier run to end: `waits`, `behind`
    "due",  # it is due, and no beat has decided yet: `late`, `holder`, `beats`
    "catching_up",  # the same, and missed ticks have their turn before it: `ahead`
    "not_due",  # it lies ahead, or jitter or an operator (`deferred`) has put it off: `due_at`; `pause`,
    # if that ends by then
    "held",  # it will not be decided while the schedule is in its `state`: `pause`; or nobody declares it:
    # `unannounced_at`
    "not_a_tick",  # the schedule does not tick then: `before`, `after`, and the `change` that moved over it, or what
    # had `finished` the schedule, if that is why
    "no_success",  # it follows a `parent`, which had no success then: `before`, `after`
    "not_registered",  # the schedule was not there yet: `begins`
    "trimmed",  # the ledger no longer goes back so far: `begins`
    "missing",  # it should have been decided, and was not
    "unreadable",  # the rule that decided then cannot be read
]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What there is to say about one instant of one schedule; fields that `answer` does not name may be empty."""

    schedule_id: str
    instant: datetime
    answer: Answer
    tz: str
    state: str
    next_run: datetime | None
    runs: tuple[Fired, ...] = ()
    """One, unless something went wrong; where it was made up for, as often as it was."""
    backfills: tuple[Fired, ...] = ()
    """Those that made up for it once more."""
    unread: tuple[Queue, ...] = ()
    """The queues in which one of them waits, and that no live worker reads."""
    passed: Passed | None = None
    waits: Waits | None = None
    """None where that line was trimmed."""
    behind: Fired | None = None
    """The run that was in its way; None where the ledger no longer holds it."""
    instead: datetime | None = None
    """The tick that had its turn."""
    pause: Pause | None = None
    """That which holds it, or made it pass."""
    deferred: Action | None = None
    """By whom, and to when, it was moved."""
    unannounced_at: datetime | None = None
    """Since when no running scheduler declares the schedule."""
    before: datetime | None = None
    """The nearest tick before the instant."""
    after: datetime | None = None
    """The nearest tick after it."""
    parent: Parent | None = None
    """Whom the schedule follows."""
    change: Change | None = None
    finished: Bound | None = None
    begins: datetime | None = None
    due_at: datetime | None = None
    """When it is due, or was."""
    moved_by: str = ""
    """The operator who has said so; nothing where it is due by itself."""
    late: float | None = None
    """Seconds since then."""
    ahead: int = 0
    """How many missed ticks are caught up with before this one."""
    holder: str = ""
    """The beat that is at work on the schedule."""
    beats: int = 0
    """How many beats are alive."""
    policies: Schedule | None = field(default=None, repr=False)
    """As they are now; None where the definition cannot be read."""
