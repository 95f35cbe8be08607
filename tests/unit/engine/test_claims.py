"""What a beat holds: handed out in pages, when it is due, in the order in which it came."""

from __future__ import annotations

import dataclasses

import pytest

from beat.engine.claims import Holding
from beat.engine.fire_items import Chain
from beat.engine.pacing import MOST_CLAIMS
from beat.storage.keys import Keys
from beat.storage.messages import Item
from tests.support.ticker_backend import PACE


def chain(name: str, due: float = 0, jobs: int = 1) -> Chain:
    return Chain((Item("fire", name, "rev"),), due, jobs=jobs)


def holding(*chains: Chain, page_size: int = 2) -> Holding:
    made = Holding(dataclasses.replace(PACE, page_size=page_size), Keys())
    made.hold(chains)
    return made


def names(page: list[Chain]) -> list[str]:
    return [each.id for each in page]


def test_what_is_due_is_handed_out_page_by_page_the_earliest_first_and_the_rest_stays() -> None:
    held = holding(chain("b", 5), chain("later", 11), chain("a", 3), chain("c", 5))
    assert held.next_ms == 3
    assert [names(held.take(10)), names(held.take(10)), names(held.take(10))] == [["a", "b"], ["c"], []]
    assert (len(held), held.ids, held.next_ms) == (1, ["later"], 11)


def test_what_is_to_be_sent_again_comes_before_what_was_there() -> None:
    held = holding(chain("a"), chain("b"), chain("c"))
    first = held.take(0)
    held.hold(first)
    assert [names(held.take(0)), names(held.take(0))] == [["a", "b"], ["c"]]


def test_a_chain_is_never_torn_and_a_page_has_one_at_least() -> None:
    held = holding(chain("small"), chain("large", jobs=7), chain("last"), page_size=3)
    assert [names(held.take(0)), names(held.take(0)), names(held.take(0))] == [["small"], ["large"], ["last"]]


def test_it_is_crowded_while_more_is_due() -> None:
    held = holding(*(chain(str(n)) for n in range(4)), chain("later", 99))
    told = []
    while held.take(0):
        told.append(held.is_crowded)
    assert told == [True, False]


def test_what_is_given_back_is_released_and_nothing_else_is_left() -> None:
    held = holding(chain("a"), chain("later", 99))
    held.give_back(held.ids)
    assert [(each.id, each.items[0].kind) for each in held.take(0)] == [("a", "release"), ("later", "release")]
    assert len(held) == 0


@pytest.mark.parametrize(
    ("lock_ttl", "lookahead", "most"),
    [(10_000, 1_000, MOST_CLAIMS), (600_000, 1_000, MOST_CLAIMS), (3_000, 1_000, 4_000), (1_000, 900, 200)],
)
def test_a_beat_holds_no_more_than_it_can_fire_before_its_locks_run_out(
    lock_ttl: int, lookahead: int, most: int
) -> None:
    made = Holding(dataclasses.replace(PACE, lock_ttl=lock_ttl, lookahead=lookahead), Keys())
    assert made.room == most
    made.hold([chain("a", jobs=3)])
    assert made.room == most - 3
    made.take(0)
    assert made.room == most
