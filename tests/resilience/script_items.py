"""Name what beat asks of the scripts that decide, close and register, without the words that carry it.

Each class is one kind of item. How an item becomes arguments of a script is the protocol's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Slot(NamedTuple):
    """What a schedule does when its runs overlap, how many may run, and how many ticks may wait."""

    policy: str
    limit: int
    waiting: int


class Expectation(NamedTuple):
    """A field of a schedule's hash that must have a value."""

    id: str
    field: str
    value: str


@dataclass(frozen=True)
class Enqueued:
    """What an item that becomes a job says about it."""

    job: str = ""
    queues: tuple[str, ...] = ()
    """The keys of its queues; several for a broadcast."""
    runs: tuple[bytes, ...] = ()
    """The end of the job's meta, for each queue."""
    by: str = "scheduler"
    at_front: bool = False
    slot: Slot | None = None
    group: str = ""
    max_runs: int | None = None
    why: str = ""
    uses: str = ""


@dataclass(frozen=True)
class FireItem(Enqueued):
    """A tick becomes a job."""

    id: str = ""
    rev: str = ""
    tick: str = ""
    due: int = 0
    next: str = ""
    next_due: int = 0
    error: str = ""
    is_cleared: bool = False
    """Whether the ended runs in its slots were closed just now."""
    expects: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class SkipItem:
    """A range of ticks becomes no job."""

    id: str
    rev: str
    tick: str
    due: int
    next: str
    next_due: int
    last: str
    count: int
    reason: str
    why: str = ""
    error: str = ""
    expects: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class ReleaseItem:
    """A claim is given back undecided."""

    id: str


@dataclass(frozen=True)
class QuarantineItem:
    """A definition that cannot be read stops its schedule."""

    id: str
    rev: str
    error: str


@dataclass(frozen=True)
class AdmitItem(Enqueued):
    """A tick that waited becomes a job."""

    id: str = ""
    rev: str = ""
    tick: str = ""
    due: int = 0
    after: str = ""
    """The job that the tick follows."""


@dataclass(frozen=True)
class DropItem(AdmitItem):
    """A tick that waited becomes no job."""

    reason: str = ""
    expects: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class TriggerItem(Enqueued):
    """An operator asks for a run, or for the run of a past tick (a backfill)."""

    id: str = ""
    rev: str = ""
    tick: str = ""
    remembered_s: int = 3600
    instead_of: str = ""
    """The next tick, if the run replaces it; `next` follows it."""
    next: str = ""
    next_due: int = 0
    is_forced: bool = False
    data: bytes = b""


@dataclass(frozen=True)
class ResumeItem:
    """A pause ends, and the ticks of it are skipped."""

    id: str
    rev: str
    tick: str
    next: str
    next_due: int
    count: int = 0
    last: str = ""
    until: str = ""
    """When the pause must end by itself; empty if an operator ends it."""
    version: int | None = None
    is_disabled: bool = False


class Part(NamedTuple):
    """Which job of a broadcast tick a run is."""

    job: str
    number: int
    of: int


class Sign(NamedTuple):
    """What RQ's hash of a job said."""

    status: str
    started_at: str
    ended_at: str


@dataclass(frozen=True)
class CloseItem:
    """A run ends (`close`), starts again (`reopen`), or only its record changes (`mark`, `forget`)."""

    kind: str
    job: str
    seen: str
    sign: Sign | None
    record: str = ""
    id: str = ""
    tick: str = ""
    outcome: str = ""
    entry: str = ""
    was: str = ""
    was_ended: str = ""
    ended: str = ""
    duration: str = ""
    error: str = ""
    ttl: int | None = None
    registry: str = ""
    life: str = ""
    group: str = ""
    part: Part | None = None


@dataclass(frozen=True)
class RegisterItem:
    """A definition, and the state of the schedule for which it was prepared."""

    id: str
    rev: str
    seen_rev: str
    seen_next: str
    seen_state: str
    state: str
    next: str | None
    """None leaves the next tick as it is."""
    next_due: int
    rule: str
    origin: str
    declared: str
    app: str = ""
    func: str = ""
    version: int | None = None
    follows: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    template: Mapping[str, bytes] = field(default_factory=dict)


Item = (
    FireItem
    | SkipItem
    | ReleaseItem
    | QuarantineItem
    | AdmitItem
    | DropItem
    | TriggerItem
    | ResumeItem
    | CloseItem
    | RegisterItem
)


class Message(NamedTuple):
    """Items of one step, and who sends them."""

    step: str
    """`fire` (with skip, release and quarantine), `admit` (with drop), `trigger`, `resume`, `close` or `register`."""
    items: tuple[Item, ...]
    by: str
