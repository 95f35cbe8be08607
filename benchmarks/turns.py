"""Let contenders take turns, so that a slow moment of the machine affects all of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.figures import Say

T = TypeVar("T")


def in_turns(
    rounds: int, acts: Mapping[str, Callable[[], Mapping[str, T]]], words: str, say: Say
) -> dict[tuple[str, str], tuple[T | None, ...]]:
    """Return the values by contender and quantity, one for each round; None if the contender failed.

    So the n-th value always belongs to round n. Each round runs every contender. If one fails, its name is shown and
    the others continue.
    """
    taken: list[dict[tuple[str, str], T]] = []
    for turn in range(rounds):
        taken.append({})
        for who, act in acts.items():
            say(f"{who}: {words}, round {turn + 1} of {rounds}")
            try:
                measured = act()
            except Exception as e:  # noqa: BLE001 (whatever it is, the figures of the others are not lost for it)
                say(f"{who} failed: {type(e).__name__}: {e}")
            else:
                taken[-1] |= {(who, name): value for name, value in measured.items()}
    names = dict.fromkeys(itertools.chain.from_iterable(taken))
    return {name: tuple(each.get(name) for each in taken) for name in names}
