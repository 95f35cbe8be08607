"""What was made lately is made once for as long as it is made of the same."""

from __future__ import annotations

from beat.client.cache import Lately


def test_of_the_same_it_is_made_once_and_of_another_anew() -> None:
    lately, made = Lately[list[int], int](5), list[list[int]]()

    def total(given: list[int]) -> int:
        made.append(given)
        return sum(given)

    assert [lately.made("a", given, total) for given in ([1, 2], [1, 2], [1, 2, 3], [1, 2])] == [3, 3, 6, 3]
    assert made == [[1, 2], [1, 2, 3], [1, 2]]
    assert lately.made("b", [1, 2], total) == 3
    assert len(made) == 4


def test_there_is_room_for_so_many_and_who_was_asked_for_longest_ago_goes() -> None:
    lately, made = Lately[str, str](2), list[str]()

    def ask(name: str) -> None:
        lately.made(name, name, lambda given: made.append(given) or given)  # type: ignore[func-returns-value]

    for name in "abacab":
        ask(name)
    assert made == ["a", "b", "c", "b"]
