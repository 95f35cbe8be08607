"""Define the facts by which the doctor judges; each is read once and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from beat.storage.announcements import Conflict
    from beat.storage.clock_setback import Setback
    from beat.storage.heartbeat import Instance


class Unseen(NamedTuple):
    """A fact that could not be read because this user lacks a right."""

    right: str
    """As the ACL names it: `+info`."""


@dataclass(frozen=True)
class Server:
    """The Redis server."""

    url: str
    """The URL without its secrets."""
    info: Mapping[str, Any] | Unseen
    now: datetime
    """The time of Redis' clock."""
    pings_ms: tuple[float, ...] = ()


class Ledger(NamedTuple):
    """One ledger of the sample."""

    size: int | None
    """In bytes; None if this user may not read it."""
    verdicts: int
    per_day: float
    """How many ticks its schedule has per day; 0 if it does not tick."""


@dataclass(frozen=True)
class Growth:
    """How large the ledgers and the event stream are, and how fast they grow."""

    ledgers: int
    """How many ledgers there are."""
    sample: tuple[Ledger, ...]
    history_limit: int
    events: int | None
    events_size: int | None
    events_limit: int


@dataclass(frozen=True)
class Beats:
    """The live schedulers."""

    alive: tuple[Instance, ...]
    now: datetime
    version: str
    """The version of the command that asks."""
    patience: timedelta
    """How old the last cycle of a working scheduler may be."""
    schedules: int


class Case(NamedTuple):
    """One schedule of a kind, with details."""

    id: str
    words: str = ""


class Unfit(NamedTuple):
    """A failing schedule whose function the worker could not call."""

    id: str
    problem: str
    remedy: str


class Late(NamedTuple):
    """A schedule whose tick is overdue for a decision."""

    id: str
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Census:
    """The schedules, counted by state and kind."""

    total: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    """How many are broken, failing, paused, overridden, retired or on hold."""
    cases: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)
    """A few schedules of each kind."""
    late: int = 0
    latest: tuple[Late, ...] = ()
    """The most overdue schedules, worst first."""
    unfit: tuple[Unfit, ...] = ()
    """The schedules whose newest run failed because the worker could not call their function."""


@dataclass(frozen=True)
class Declarations:
    """The declarations of live schedulers."""

    announcers: int
    """How many announcements there are; schedulers of the same code share one."""
    conflicts: tuple[Conflict, ...] = ()
    unrelated: tuple[tuple[str, str], ...] = ()
    """Two schedulers of one application without a common schedule: what is wrong, and the remedy."""
    undeclared: tuple[Case, ...] = ()
    """Schedules that still fire and that no live scheduler declares, with the modules that did."""


@dataclass(frozen=True)
class Index:
    """The ids whose entry in `beat:due` or in a state's set disagrees with their hash, after a second look."""

    looked: int = 0
    no_hash: tuple[str, ...] = ()
    """Ids in an index without a schedule."""
    no_entry: tuple[str, ...] = ()
    """Schedules that are active, or paused until a time, and not in `beat:due`."""
    not_active: tuple[str, ...] = ()
    """Schedules in `beat:due` that are not active."""
    elsewhere: tuple[str, ...] = ()
    """Schedules in `beat:due` with a score other than the time at which they are due."""
    unlisted: tuple[str, ...] = ()
    """Schedules missing from the set of their state, or listed in another one."""


class Queue(NamedTuple):
    """A queue that schedules use."""

    name: str
    active: int
    """How many active schedules use it."""
    due_at: datetime | None
    """When the next of them is due."""
    queued: int | None
    """How many jobs wait in it; None if this user may not read it."""
    workers: int | None
    """How many live workers listen to it; None if this user may not read it."""
    strange: str = ""
    """The queue's key, if it is of another type."""
    unread_since: datetime | None = None
    """When a scheduler first noticed that ticks go there and no worker listens."""


@dataclass(frozen=True)
class Queues:
    """All queues that schedules use."""

    queues: tuple[Queue, ...]
    suspended: bool
    now: datetime


class Far(NamedTuple):
    """A lock that lasts longer than it may, or an index with a score further ahead than it may be."""

    key: str
    ms: int
    """How long or how far, in ms; -1 for ever."""
    most_ms: int


@dataclass(frozen=True)
class Kept:
    """Whether beat's keys in Redis can be used."""

    strange: tuple[str, ...] | Unseen
    """A sentence for each key of the wrong type."""
    format: str
    understood: int
    hold_until: datetime | None
    scripts: int
    loaded: int | Unseen
    """How many of the scripts Redis knew already."""
    refused: Mapping[str, str]
    """The scripts that Redis rejects, with the error."""
    unexposed: tuple[Case, ...] = ()
    """Schedules from data whose function no application exposes."""
    now: datetime | None = None
    setback: Setback | None = None
    """Set if Redis' clock went back."""
    far: tuple[Far, ...] | Unseen = ()
    """Locks and scores that lie too far ahead."""


@dataclass(frozen=True)
class Rights:
    """The rights of this user."""

    user: str
    lacks: tuple[str, ...] | Unseen
    """The missing rights that a scheduler needs."""
    lacks_asking: tuple[str, ...] = ()
    """The missing rights that only the command line needs."""
    excess: tuple[str, ...] = ()
    """The rights that it has and that beat never needs."""
    probed: tuple[str, ...] = ()
    """All unneeded rights that were probed."""
