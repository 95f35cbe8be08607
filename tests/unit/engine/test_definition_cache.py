"""The definitions that a beat knows, and which of them it reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.engine.definition_cache import Book
from beat.schedule import serialize
from beat.schedule.schedule import Schedule
from beat.storage.messages import Claim
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Sequence


def schedule(schedule_id: str = "report", **given: Any) -> Schedule:
    return Schedule(id=schedule_id, func="app.tasks.report", timing=Every("1h"), **given)


def claim(schedule_id: str, rev: str) -> Claim:
    return Claim(schedule_id, rev, "2026-11-16T09:00:00Z", 0, "normal")


class Shelf:
    """Definitions in a dict, and who asked for which."""

    def __init__(self, **kept: tuple[str, str]) -> None:
        self.kept, self.asked = kept, list[list[str]]()

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        self.asked.append(list(ids))
        return [self.kept.get(each, ("", "")) for each in ids]


def test_what_the_code_has_is_not_asked_for() -> None:
    shelf, made = Shelf(), schedule()
    (page,) = Book(shelf, [(made, made.rev)]).find([claim("report", made.rev)])
    assert page.schedule is made
    assert not shelf.asked


def test_what_only_redis_has_is_read_once() -> None:
    made = schedule(queue="other")
    shelf = Shelf(report=("rev1", serialize.write(made)))
    book = Book(shelf)
    for _ in range(3):
        (page,) = book.find([claim("report", "rev1")])
        assert (page.rev, page.schedule and page.schedule.queue) == ("rev1", "other")
    assert shelf.asked == [["report"]]


def test_another_rev_is_read_again_and_replaces_the_codes_own() -> None:
    made = schedule()
    shelf = Shelf(report=("rev2", serialize.write(schedule(queue="newer"))))
    book = Book(shelf, [(made, made.rev)])
    (page,) = book.find([claim("report", "rev2")])
    assert (page.rev, page.schedule and page.schedule.queue) == ("rev2", "newer")
    assert shelf.asked == [["report"]]


def test_the_page_has_the_rev_that_redis_has_by_now() -> None:
    shelf = Shelf(report=("rev3", serialize.write(schedule())))
    (page,) = Book(shelf).find([claim("report", "rev2")])
    assert page.rev == "rev3"


def test_pages_come_in_the_order_of_the_claims() -> None:
    own = schedule("a")
    shelf = Shelf(b=("1", serialize.write(schedule("b"))), c=("2", serialize.write(schedule("c"))))
    pages = Book(shelf, [(own, own.rev)]).find([claim("c", "2"), claim("a", own.rev), claim("b", "1")])
    assert [page.schedule and page.schedule.id for page in pages] == ["c", "a", "b"]
    assert shelf.asked == [["c", "b"]], "one question for all"


def test_what_cannot_be_read_is_a_page_with_a_problem_and_the_others_are_read() -> None:
    shelf = Shelf(bad=("1", "{"), good=("2", serialize.write(schedule("good"))))
    bad, good, gone = Book(shelf).find([claim("bad", "1"), claim("good", "2"), claim("gone", "3")])
    assert bad.schedule is None
    assert bad.problem.startswith("definition "), "by which repair knows that it is not for it to mend"
    assert good.schedule is not None
    assert gone.schedule is None


def test_what_was_unreadable_is_read_again_when_it_has_changed() -> None:
    shelf = Shelf(report=("1", "{"))
    book = Book(shelf)
    assert book.find([claim("report", "1")])[0].schedule is None
    shelf.kept["report"] = ("2", serialize.write(schedule()))
    assert book.find([claim("report", "2")])[0].schedule is not None


def test_a_definition_of_another_schedule_is_not_taken_for_this_one() -> None:
    shelf = Shelf(copy=("1", serialize.write(schedule("original"))))
    (page,) = Book(shelf).find([claim("copy", "1")])
    assert page.schedule is None or page.schedule.id == "copy"
