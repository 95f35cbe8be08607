"""What goes to the scripts and what comes back: the items and replies of their headers, as Python sees them."""

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
    """A schedule that is ours to decide about, until its lock runs out."""

    id: str
    rev: str
    tick: str
    due: int
    priority: str
    mark: str = ""
    """`moved` when an operator said when the tick is due; or when the pause ended that holds the schedule."""
    told: Told = UNTOLD
    """What its ticks may depend on besides their time."""


class Reply(NamedTuple):
    """What became of one item: a word of the script's header, and what goes with it."""

    code: str
    words: str = ""


class Item(NamedTuple):
    """One item of `fire`: the verdict on a tick, or why there is none."""

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
    """A slot for which ticks wait."""

    id: str
    rev: str
    state: str
    ended: int
    """How many of its runs have ended, and are not closed."""
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    """Each as `id tick by`, for one that follows another with its job; the one that was due first first."""
    hall: int = 0
    """How many more have its room, and wait for their group's."""
    revs: tuple[str, ...] = ()
    """Of a group, the revs of the schedules that wait; its own is what the group may have."""

    @property
    def is_group(self) -> bool:
        """Whether schedules share it."""
        return self.id.startswith("@")


class Registration(NamedTuple):
    """One item of `register`: a definition, and what was seen when it was prepared."""

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
    """One item of `look`: how a schedule should stand; without `next`, all is to be told."""

    id: str
    rev: str = ""
    next: str = ""


class Closing(NamedTuple):
    """One item of `close`: what became of a run, or what else is to be noted about it."""

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
    """A page of claims, by Redis' clock."""

    code: str
    now: int
    claims: tuple[Claim, ...] = ()
    troubles: tuple[tuple[str, Reply], ...] = ()
    """Schedules that were met but not handed out, each with the reason."""

    @classmethod
    def read(cls, reply: Any) -> Self:
        """What the script `claim` said; of the claims those of high priority come first."""
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
    """The codes of a page of items, by Redis' clock."""

    now: int
    replies: tuple[Reply, ...]

    @classmethod
    def read(cls, reply: Any, number: int) -> Self:
        """What the script `fire` said about so many items: it names those that are not OK."""
        now, _, *others = reply
        return cls(now, tuple(unless_named(_OK, number, others)))


@dataclass(frozen=True)
class Looked:
    """What stands otherwise than it should, by its place among the items, at a time by Redis' clock."""

    now: datetime
    others: dict[int, State | None]

    @classmethod
    def read(cls, reply: Any) -> Self:
        """What the script `look` said."""
        now, told = reply
        found = json.loads(decoded(told))
        return cls(clock.from_ms(now), {n: State.read(values, template=bool(there)) for n, *values, there in found})


def unless_named(usual: Reply, number: int, others: Iterable[Sequence[Any]]) -> list[Reply]:
    """So many of the usual replies, but for those that are named by their number; 0 names all of them."""
    found = [usual] * number
    for which, *words in others:
        said = Reply(*map(decoded, words))
        if which:
            found[which - 1] = said
        else:
            found = [said] * number
    return found


def replies(reply: Iterable[Sequence[Any]]) -> list[Reply]:
    """A code, and what goes with it, for each item."""
    return [Reply(*map(decoded, each)) for each in reply]


_OK = Reply("OK")
_PRIORITIES = {"high": 0, "normal": 1, "low": 2}


def _parents(told: Iterable[Sequence[str]]) -> dict[str, Parent]:
    return {each: Parent(*words) for each, *words in told}


def decoded(value: Any) -> str:
    """What Redis has as bytes, as text; no byte is a reason to fail."""
    return str(value.decode(errors="replace"))
