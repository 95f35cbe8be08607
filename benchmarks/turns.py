"""Contenders take turns, so that a slow moment of the machine hits all of them."""

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
    """What each has measured, by who it was and the name of it: one for each round, None where it failed.

    So the n-th is of round n, whoever failed before. Each round has all of them; who fails is named, and the others go
    on.
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
