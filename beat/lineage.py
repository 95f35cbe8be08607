"""Under which id the state of a schedule lies: its own, or one that it has had before or since.

Asked by the beats that register, and by whoever wants to know what they would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.placement import elsewhere
from beat.protocol import Sight

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Sequence

    from beat.protocol import Looked
    from beat.schedule import Schedule
    from beat.state import State
    from beat.store import Store

_LONGEST = 10
"""How many times a schedule can have been renamed since, as the scripts follow it."""


class Kin(NamedTuple):
    """Another id of a schedule, and what Redis knows by it."""

    id: str
    state: State | None


def trace(
    store: Store, page: Sequence[Schedule], looked: Looked, declared: Container[str]
) -> Generator[None, None, dict[int, Kin]]:
    """For the schedules of a page that may have another id: where it leads, by their place. Stops at questions.

    Not to what is declared itself: that is another schedule by now.
    """
    found: dict[int, Kin] = {}
    asked = {n: old for n, seen in looked.others.items() if (old := elsewhere(page[n], seen, declared))}
    for _ in range(_LONGEST):
        if not asked:
            break
        answer = store.looking([Sight(each) for each in asked.values()])
        yield
        states = answer().others.values()
        found |= {n: Kin(old, state) for (n, old), state in zip(asked.items(), states, strict=True)}
        asked = {n: state.renamed_to for n in asked if (state := found[n].state) and state.renamed_to}
    return {n: kin for n, kin in found.items() if kin.id not in declared}
