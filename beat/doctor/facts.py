"""The facts that the doctor judges by: read once, from one installation, and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from beat.client.schedulers import Instance
    from beat.storage.announcements import Conflict
    from beat.storage.clock_setback import Setback


class Unseen(NamedTuple):
    """What could not be read, because this user lacks a right."""

    right: str
    """As the ACL names it: `+info`."""


@dataclass(frozen=True)
class Server:
    """The Redis."""

    url: str
    """Without its secrets."""
    info: Mapping[str, Any] | Unseen
    now: datetime
    """By its own clock."""
    pings_ms: tuple[float, ...] = ()


class Ledger(NamedTuple):
    """One ledger of the sample."""

    size: int | None
    """Bytes; None if nobody let us look."""
    verdicts: int
    per_day: float
    """How many ticks its schedule has in a day; 0 if it does not tick."""


@dataclass(frozen=True)
class Growth:
    """What the ledgers and the outbox take, and how fast that grows."""

    ledgers: int
    """How many there are."""
    sample: tuple[Ledger, ...]
    history_limit: int
    events: int | None
    events_size: int | None
    events_limit: int


@dataclass(frozen=True)
class Beats:
    """Who is alive."""

    alive: tuple[Instance, ...]
    now: datetime
    version: str
    """Of the beat that looks."""
    patience: timedelta
    """How old a last pass may be."""
    schedules: int


class Case(NamedTuple):
    """One schedule of a kind, and what there is to say about it."""

    id: str
    words: str = ""


class Unfit(NamedTuple):
    """A failing schedule whose function the worker could not call."""

    id: str
    problem: str
    remedy: str


class Late(NamedTuple):
    """A schedule whose tick should have its verdict."""

    id: str
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Census:
    """The schedules, counted by what they are."""

    total: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    """How many are broken, failing, paused, overridden, retired, unannounced."""
    cases: Mapping[str, tuple[Case, ...]] = field(default_factory=dict)
    """A few of each kind."""
    late: int = 0
    latest: tuple[Late, ...] = ()
    """The latest of them first."""
    unfit: tuple[Unfit, ...] = ()
    """The newest run of each failed because the worker could not call its function."""


@dataclass(frozen=True)
class Declarations:
    """What live schedulers declare."""

    announcers: int
    """How many announcements there are; schedulers of the same code share one."""
    conflicts: tuple[Conflict, ...] = ()
    unrelated: tuple[tuple[str, str], ...] = ()
    """Two schedulers of one application without a common schedule: what is wrong, and the remedy."""
    undeclared: tuple[Case, ...] = ()
    """Schedules that still fire and that no live scheduler declares, with the modules that did."""


@dataclass(frozen=True)
class Index:
    """`beat:due` against the hashes: how many do not agree, after a second look."""

    looked: int = 0
    no_hash: tuple[str, ...] = ()
    """Indexed or listed, but there is no such schedule."""
    no_entry: tuple[str, ...] = ()
    """Active, or paused until a time, but not indexed."""
    not_active: tuple[str, ...] = ()
    """Indexed, but not active."""
    elsewhere: tuple[str, ...] = ()
    """Indexed for another time than that at which they are due."""
    unlisted: tuple[str, ...] = ()
    """Not in the set of their state, or in another one."""


class Queue(NamedTuple):
    """A queue of schedules."""

    name: str
    active: int
    """How many active schedules use it."""
    due_at: datetime | None
    """When the next of them is due."""
    queued: int | None
    """How many jobs wait in it; None if nobody let us look."""
    workers: int | None
    """How many live workers listen to it; None if nobody let us look."""
    strange: str = ""
    """The key that should be the queue and is of another type."""
    unread_since: datetime | None = None
    """Since when a beat knows that no worker listens, although ticks go there."""


@dataclass(frozen=True)
class Queues:
    """All of them."""

    queues: tuple[Queue, ...]
    suspended: bool
    now: datetime


class Far(NamedTuple):
    """A lock that lasts longer than it may, or an index with a score that lies further ahead than it may."""

    key: str
    ms: int
    """How long, or how far; -1 for ever."""
    most_ms: int


@dataclass(frozen=True)
class Kept:
    """Whether what stands in Redis can be used."""

    strange: tuple[str, ...] | Unseen
    """Keys of the wrong type, in words."""
    format: str
    understood: int
    hold_until: datetime | None
    scripts: int
    loaded: int | Unseen
    """How many of the scripts Redis knew already."""
    refused: Mapping[str, str]
    """Those that it does not take, and why."""
    unexposed: tuple[Case, ...] = ()
    """Schedules from data whose function no application exposes."""
    now: datetime | None = None
    setback: Setback | None = None
    """That Redis' clock went back."""
    far: tuple[Far, ...] | Unseen = ()
    """What lies too far ahead."""


@dataclass(frozen=True)
class Rights:
    """What this user may do."""

    user: str
    lacks: tuple[str, ...] | Unseen
    """What beat needs and it may not."""
    lacks_asking: tuple[str, ...] = ()
    """What only the command line needs."""
    excess: tuple[str, ...] = ()
    """What it may, and need not."""
    probed: tuple[str, ...] = ()
    """All of that for which was looked."""
