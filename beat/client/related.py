"""What schedules from data say about others and about their groups: it must be true in Redis before they are added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat import groups_kept, relations
from beat.errors import BadOption, Refused, did_you_mean
from beat.relations import Bond
from beat.requires import Requires

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from beat.schedule import Schedule
    from beat.store import Store

_MOST_NAMES = 10_000  # among which one that was meant is looked for


class Related(NamedTuple):
    """Of some schedules that are to be added."""

    refused: dict[str, Refused]
    """Those that cannot be, by their ids, and why."""
    later: set[str]
    """Those that wait for others of these to be added first."""


class _Known(NamedTuple):
    """What Redis says of a schedule."""

    is_there: bool
    bonds: list[Bond]


def look(store: Store, schedules: Iterable[Schedule], added: Container[str]) -> Related:
    """Compares them with Redis; those that are `added` count as if they were there already."""
    wanted = {schedule.id: schedule for schedule in schedules}
    bound = {each: bonds for each, schedule in wanted.items() if (bonds := relations.bonds(schedule))}
    refused: dict[str, Refused] = {}
    later: set[str] = set()
    if bound:
        found = _reached(store, bound)
        for words, circle in _circles(wanted, bound, found):
            refused |= {each: Refused(words) for each in circle if each in wanted}
        for each, bonds in bound.items():
            missing = [bond for bond in bonds if not (bond.to in added or found[bond.to].is_there)]
            if strangers := [bond for bond in missing if bond.to not in wanted]:
                refused.setdefault(each, Refused(_unknown(store, each, strangers[0])))
            elif missing:
                later.add(each)
    refused |= _crowded(store, wanted.values())
    return Related(refused, later - refused.keys())


def _reached(store: Store, bound: Mapping[str, list[Bond]]) -> dict[str, _Known]:
    """All schedules that can be reached from these, as Redis knows them; what is to be added leads on as it will."""
    found: dict[str, _Known] = {}
    asked = {bond.to for bonds in bound.values() for bond in bonds}
    while asked:
        ids = sorted(asked)
        with store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(store.keys.schedule(each), "rev", "follows", "requires")
            replies: list[Any] = pipe.execute(raise_on_error=False)
        found |= {each: _known(values) for each, values in zip(ids, replies, strict=True)}
        asked = {bond.to for each in ids for bond in bound.get(each, found[each].bonds)} - found.keys()
    return found


def _known(values: Any) -> _Known:
    rev, follows, requires = (
        value.decode(errors="replace") if isinstance(value, bytes) else ""
        for value in (values if isinstance(values, list) else [None] * 3)
    )
    bonds = [Bond("follows", follows)] if follows else []
    for each in requires.split(", ") if requires else ():
        try:
            bonds.append(Bond("requires", Requires.read(each).id))
        except BadOption:  # somebody has garbled it: the definition is not asked
            continue
    return _Known(bool(rev), bonds)


def _circles(
    wanted: Container[str], bound: Mapping[str, list[Bond]], found: Mapping[str, _Known]
) -> list[tuple[str, list[str]]]:
    """Those in which one is that is to be added: in words, and the ids."""
    there = {each: known.bonds for each, known in found.items() if known.bonds and each not in wanted}
    told = [(relations.words(steps), [each for each, _ in steps]) for steps in relations.circles({**bound, **there})]
    return [(words, ids) for words, ids in told if any(each in wanted for each in ids)]


def _unknown(store: Store, schedule_id: str, bond: Bond) -> str:
    begin = f"schedule {schedule_id!r} {bond.word} {bond.to!r}"
    names: Any = store.client.zrange(store.keys.index("all"), 0, _MOST_NAMES)
    hint = did_you_mean(bond.to, (name.decode(errors="replace") for name in names))
    return f"{begin}, and there is no such schedule.{hint or ' Add that one first.'}"


def _crowded(store: Store, wanted: Iterable[Schedule]) -> dict[str, Refused]:
    """Those of whose groups Redis knows nothing, or that do not fit in."""
    grouped = [schedule for schedule in wanted if schedule.group]
    groups = groups_kept.known(store) if grouped else {}
    return {each.id: Refused(words) for each in grouped for words in relations.room(each, groups)}
