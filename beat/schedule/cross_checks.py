"""Check references between schedules and to groups, which is possible only when all declarations are known.

A schedule that requires or follows another waits for it. In a circle of such references, no schedule would ever run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from beat.config import sentry_dsn
from beat.config.groups import Group
from beat.errors import BadOption, DeclarationError, did_you_mean
from beat.schedule import monitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from beat.schedule.schedule import Schedule


class Declared(Protocol):
    """The part of a registry that the checks use."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """Return the groups by name."""

    def __iter__(self) -> Iterator[Schedule]:
        """Iterate over the schedules."""


class Bond(NamedTuple):
    """A reference to another schedule: `follows` or `requires`, and the other's id."""

    word: str
    to: str


def bonds(schedule: Schedule) -> list[Bond]:
    """Return the references of a schedule to others that it waits for."""
    followed = [Bond("follows", schedule.follows)] if schedule.follows else []
    return followed + [Bond("requires", one.id) for one in schedule.requires]


def check(schedules: Iterable[Schedule], groups: Mapping[str, Group], *, whole: bool = True) -> list[DeclarationError]:
    """Return all errors, each with its source location.

    With `whole=False` more schedules may be declared elsewhere, so unknown ids are not errors.
    """
    known = {schedule.id: schedule for schedule in schedules}
    found: list[DeclarationError] = []
    bound = {each: own for each, schedule in known.items() if (own := bonds(schedule))}
    if whole:
        found += [_at(known[each], words) for each, own in bound.items() for words in _strangers(each, own, known)]
    found += [_at(known[circle[0][0]], words(circle)) for circle in circles(bound)]
    found += [_at(one, words) for one in known.values() if one.group for words in room(one, groups)]
    return found


def agreed(declared: Declared, told: Mapping[str, str], dsn: str | None = sentry_dsn.OFF) -> list[Group]:
    """Return the groups for a scheduler: those that code declares, overridden by those of its settings.

    Raise the first error of `check`, or one for a monitor that needs a Sentry DSN when there is none.
    """
    groups = {**declared.groups, **{name: Group.read(name, line) for name, line in told.items()}}
    for error in (*check(declared, groups), *monitor.without_dsn(declared, dsn)):
        raise error
    return list(groups.values())


def _at(schedule: Schedule, words: str) -> DeclarationError:
    error = BadOption(words)
    error.where = str(schedule.declared) if schedule.declared else None
    return error


def _strangers(schedule_id: str, own: Iterable[Bond], known: Mapping[str, Schedule]) -> Iterator[str]:
    for word, to in own:
        if to not in known:
            hint = did_you_mean(to, known) or " Write the id of one that is declared, too."
            yield f"schedule {schedule_id!r} {word} {to!r}, and there is no such schedule.{hint}"


def room(schedule: Schedule, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield an error if the schedule's group has no limit, or too little capacity for the jobs of one tick."""
    name = str(schedule.group)
    group = groups.get(name)
    if group is None:
        hint = did_you_mean(name, groups)
        told = f"write beat.group({name!r}, max_running=5), or {name} = 5 under [tool.beat.groups]"
        yield f"schedule {schedule.id!r} is of the group {name!r}, which has no limit: {told}.{hint}"
    elif schedule.route == "broadcast" and len(schedule.queues) > group.max_running:
        yield (
            f"schedule {schedule.id!r} sends every tick to {len(schedule.queues)} queues, and its group {name!r} has "
            f"room for {group.max_running}: give it more, or the schedule fewer queues"
        )


def words(circle: Iterable[tuple[str, Bond]]) -> str:
    """Return the error message for a circle."""
    steps = ", ".join(f"{each} {word} {to}" for each, (word, to) in circle)
    return f"{steps}: each waits for the other, and none would ever run: leave one of these out"


def circles(bound: Mapping[str, list[Bond]]) -> Iterator[list[tuple[str, Bond]]]:
    """Yield each circle that a depth-first search finds; no schedule is expanded twice."""
    done: set[str] = set()
    for start in bound:
        path: list[str] = [start] if start not in done else []
        left, taken = {start: iter(bound[start])}, {start: bound[start][0]}
        while path:
            at = path[-1]
            bond = next(left[at], None)
            if bond is None:
                done.add(path.pop())
                del left[at]
                continue
            taken[at] = bond
            if bond.to in left:
                yield [(each, taken[each]) for each in path[path.index(bond.to) :]]
            elif bond.to in bound and bond.to not in done:
                path.append(bond.to)
                left[bond.to] = iter(bound[bond.to])
