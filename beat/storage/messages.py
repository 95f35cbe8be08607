"""Define the items that the scripts take and the replies that they give, as Python types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from beat.policies.facts import UNTOLD, Parent, Told
from beat.schedule.state import State
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


class Claim(NamedTuple):
    """A schedule that this scheduler may decide about until its lock expires."""

    id: str
    rev: str
    tick: str
    due: int
    priority: str
    mark: str = ""
    """`moved` if an operator set the due time of the tick, the end of the pause that held the schedule, or empty."""
    told: Told = UNTOLD
    """The facts that its ticks may depend on besides their time."""


class Reply(NamedTuple):
    """The reply about one item: a code from the script's header, and its details."""

    code: str
    words: str = ""


class Item(NamedTuple):
    """One item of `fire`: the decision on a tick, or why there is none."""

    kind: str
    id: str
    rev: str
    tick: str = ""
    due: int = 0
    next: str = ""
    next_due: int = 0
    job: str = ""
    queue: str = ""
    run: bytes = b""
    by: str = ""
    at: str = "back"
    number: int = 0
    error: str = ""
    last: str = ""
    reason: str = ""
    slot: str = ""
    max_runs: int | str = ""
    data: bytes = b""
    why: str = ""
    group: str = ""
    expects: str = ""
    uses: str = ""


class Slot(NamedTuple):
    """A schedule or group with limited concurrency, the jobs in its slots, and the ticks on its waiting list."""

    id: str
    rev: str
    state: str
    ended: int
    """How many of its runs have ended and are not closed."""
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    """Each as `id tick by`, with the job for a tick that follows one; the earliest due tick comes first."""
    hall: int = 0
    """How many more ticks have a slot of the schedule, and wait for one of the group."""
    revs: tuple[str, ...] = ()
    """For a group, the revs of the schedules whose ticks wait; the group's own `rev` is its capacity."""

    @property
    def is_group(self) -> bool:
        """Return whether several schedules share the slots."""
        return self.id.startswith("@")


class Registration(NamedTuple):
    """One item of `register`: a definition, and the state of the schedule for which it was prepared."""

    id: str
    rev: str
    seen_rev: str
    seen_next: str
    seen_state: str
    state: str
    next: str
    next_due: int
    rule: str
    origin: str
    declared: str
    app: str
    func: str
    version: str
    follows: str
    fields: Mapping[str, str]
    template: Mapping[str, bytes]


class Sight(NamedTuple):
    """One item of `look`: the expected state of a schedule; without `next`, the reply always has its state."""

    id: str
    rev: str = ""
    next: str = ""


class Closing(NamedTuple):
    """One item of `close`: the end of a run, or another change of its record."""

    kind: str
    job: str
    seen: str
    record: str = ""
    sign: str = ""
    id: str = ""
    tick: str = ""
    outcome: str = ""
    entry: str = ""
    was: str = ""
    was_ended: str = ""
    ended: str = ""
    duration: str = ""
    error: str = ""
    ttl: str = ""
    registry: str = ""
    life: str = ""
    group: str = ""
    part: str = ""


@dataclass(frozen=True)
class Claimed:
    """A page of claims; `now` is Redis' clock in ms."""

    code: str
    now: int
    claims: tuple[Claim, ...] = ()
    troubles: tuple[tuple[str, Reply], ...] = ()
    """Schedules that were due but not claimed, each with the reason."""

    @classmethod
    def read(cls, reply: Any) -> Self:
        """Parse the reply of the script `claim`, and sort the claims by priority and due time."""
        code, now, claims, troubles, facts = reply
        if code != b"OK":
            words = decoded(claims) if isinstance(claims, bytes) else ""
            return cls(decoded(code), now, troubles=(("", Reply(decoded(code), words)),))
        lines = (line.split(" ") for line in decoded(claims).split("\n") if line)
        told = {each: Told(uses, slow, _parents(said)) for each, uses, slow, said in json.loads(f"[{decoded(facts)}]")}
        found = [
            Claim(each, rev, tick, int(due), priority, mark, told.get(each, UNTOLD))
            for each, rev, tick, due, priority, mark in lines
        ]
        found.sort(key=lambda claim: (_PRIORITIES.get(claim.priority, 1), claim.due))
        met = tuple((decoded(schedule_id), Reply(*map(decoded, words))) for schedule_id, *words in troubles)
        return cls("OK", now, tuple(found), met)


@dataclass(frozen=True)
class Decided:
    """The replies to a page of items; `now` is Redis' clock in ms."""

    now: int
    replies: tuple[Reply, ...]

    @classmethod
    def read(cls, reply: Any, number: int) -> Self:
        """Parse the reply of the script `fire` to `number` items; it names only those that are not OK."""
        now, _, *others = reply
        return cls(now, tuple(unless_named(_OK, number, others)))


@dataclass(frozen=True)
class Looked:
    """The schedules that differ from the expected state, by their position among the items, at Redis' time `now`."""

    now: datetime
    others: dict[int, State | None]

    @classmethod
    def read(cls, reply: Any) -> Self:
        """Parse the reply of the script `look`."""
        now, told = reply
        found = json.loads(decoded(told))
        return cls(clock.from_ms(now), {n: State.read(values, template=bool(there)) for n, *values, there in found})


def unless_named(usual: Reply, number: int, others: Iterable[Sequence[Any]]) -> list[Reply]:
    """Return `number` usual replies, except for the items that `others` names by their number; 0 names all of them."""
    found = [usual] * number
    for which, *words in others:
        said = Reply(*map(decoded, words))
        if which:
            found[which - 1] = said
        else:
            found = [said] * number
    return found


def replies(reply: Iterable[Sequence[Any]]) -> list[Reply]:
    """Parse a code and its details for each item."""
    return [Reply(*map(decoded, each)) for each in reply]


_OK = Reply("OK")
_PRIORITIES = {"high": 0, "normal": 1, "low": 2}


def _parents(told: Iterable[Sequence[str]]) -> dict[str, Parent]:
    return {each: Parent(*words) for each, *words in told}


def decoded(value: Any) -> str:
    """Decode bytes from Redis; invalid UTF-8 is replaced and never raises."""
    return str(value.decode(errors="replace"))
