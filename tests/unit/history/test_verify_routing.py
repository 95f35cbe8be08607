"""Ledgers of groups, followers and broadcasts, made by hand: what agrees is sound, and what does not is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from beat.history.history import Fired, assemble
from beat.history.ledger import Enqueued, Skipped, Waiting
from beat.history.verify import Bonds, parents_of, verify
from tests.support.lines import MINUTE, MS, NINE, SECOND, Ledger

if TYPE_CHECKING:
    from datetime import datetime

    from beat.history.verify import Verification

FOLLOWS = {"follows": "extract", "tz": "UTC"}


def verified(book: Ledger, now: datetime, **given: Any) -> Verification:
    counts = {name: count for name, count in book.counts.items() if name.endswith("s_count") or "failure" in name}
    return verify(
        book.id, book.newest_first, rule=book.rule, next_run=book.next, run_count=book.counts["run_count"],
        skip_count=book.counts["skip_count"], state="active", now=now, counts=counts, **given,
    )  # fmt: skip


def extract() -> Ledger:
    """Three runs, of which the second failed."""
    book = Ledger("extract").registered(NINE - SECOND, NINE)
    for n, kind in enumerate(("succeeded", "failed", "succeeded")):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE, kind)
    return book


def load(*after: str) -> Ledger:
    """Who follows, and has a verdict after each of these jobs."""
    book = Ledger("load", FOLLOWS).registered(NINE - SECOND, None)
    for n, job in enumerate(after):
        tick = NINE + n * MINUTE + 6 * SECOND
        made = Enqueued(tick, f"load_{n}", "follows", 4, n + 1, tick + 4 * MS, "web-2", after=job)
        book.entries.append(made)
        book.counts["run_count"] += 1
    return book


def bonds(*in_line: str) -> Bonds:
    runs = [line for line in assemble("extract", extract().newest_first) if isinstance(line, Fired)]
    return Bonds({"extract": runs}, in_line)


FIRST, SECOND_JOB, THIRD = (Ledger("extract").job(NINE + n * MINUTE) for n in range(3))
NOON = NINE + 180 * MINUTE


def test_each_success_has_its_verdict() -> None:
    found = verified(load(FIRST, THIRD), NOON, bonds=bonds())
    assert (found.sound, found.expected, found.accounted) == (True, 2, 2)


def test_a_success_may_have_its_tick_in_line() -> None:
    found = verified(load(FIRST), NOON, bonds=bonds(THIRD))
    assert (found.sound, found.expected, found.waiting) == (True, 1, 1)


def test_a_success_without_either_is_missing() -> None:
    found = verified(load(FIRST), NOON, bonds=bonds())
    assert [each.count for each in found.missing] == [1]
    assert (found.expected, found.accounted) == (2, 1)


def test_a_verdict_more_than_there_were_successes_is_double() -> None:
    assert [each.count for each in verified(load(FIRST, THIRD, THIRD), NOON, bonds=bonds()).double] == [1]


def test_a_verdict_after_a_failure_is_named() -> None:
    [problem] = verified(load(FIRST, SECOND_JOB, THIRD), NOON, bonds=bonds()).problems
    assert f"follows job {SECOND_JOB} of extract, which has failed" in problem


def test_what_waits_and_has_its_verdict_is_named() -> None:
    [problem] = verified(load(FIRST, THIRD), NOON, bonds=bonds(THIRD)).problems
    assert f"follows job {THIRD}" in problem


def test_nothing_is_claimed_of_what_the_ledger_no_longer_holds() -> None:
    book = load(FIRST, THIRD)
    book.entries = book.entries[2:]
    found = verified(book, NOON, bonds=bonds())
    assert (found.sound, found.expected) == (True, 1)


def test_of_since_only_what_came_later_is_claimed() -> None:
    found = verified(load(), NOON, bonds=bonds(), since=NINE + MINUTE)
    assert [each.count for each in found.missing] == [1]


def test_whom_it_followed_is_known_by_the_ledger() -> None:
    book = load()
    book.changed(NINE, {"follows": "wide", "tz": "UTC"}, None)
    assert parents_of(book.entries, book.rule) == {"extract", "wide"}


def test_a_tick_that_waits_in_two_lines_one_after_the_other_is_one_tick() -> None:
    book = Ledger().registered(NINE - SECOND, NINE)
    own = Waiting(NINE, book.job(NINE), "another", NINE + 4 * MS, "web-2")
    book.entries += [own, replace(own, at=NINE + SECOND, group="reports")]
    book.next = NINE + MINUTE
    assert verified(book, NINE + 2 * SECOND, waiting=[NINE]).waiting == 1
    book.fired(NINE, at=NINE + 3 * SECOND)
    assert verified(book, NINE + 4 * SECOND, waiting=[]).sound


@pytest.mark.parametrize("reason", ["group", "dependency"])
def test_a_tick_may_be_skipped_for_others(reason: str) -> None:
    book = Ledger().registered(NINE - SECOND, NINE).skipped(NINE, NINE, 1, reason=reason, at=NINE + MS, why="x")
    assert isinstance(book.entries[-1], Skipped)
    assert verified(book, NINE + SECOND).sound


def test_a_broadcast_is_one_verdict_and_counts_once() -> None:
    book = Ledger().registered(NINE - SECOND, NINE).fired(NINE, shards=2)
    job = book.job(NINE)
    book.ended(NINE, job=f"{job}_s0", of=job).ended(NINE, "failed", job=f"{job}_s1", of=job, shard=1)
    book.counts |= {"success_count": 0, "failure_count": 1}
    found = verified(book, NINE + 30 * SECOND, jobs={f"{job}_s0": NINE, f"{job}_s1": NINE}, open_jobs=[])
    assert (found.sound, found.expected) == (True, 1)
    book.counts |= {"success_count": 1}
    assert not verified(book, NINE + 30 * SECOND).sound


def test_a_part_that_is_open_is_waited_for() -> None:
    book = Ledger().registered(NINE - SECOND, NINE).fired(NINE, shards=2)
    job = book.job(NINE)
    assert verified(book, NINE + SECOND, open_jobs=[f"{job}_s0", f"{job}_s1"]).sound
    [problem] = verified(book, NINE + SECOND, open_jobs=[f"{job}_s0"]).problems
    assert problem == f"job {job}_s1 has no outcome, and nobody waits for one"
