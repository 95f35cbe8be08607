"""The few lines that are picked from a ledger lead to the same answer as all of them."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat.client import explain, schedule_info
from beat.client.explain import Question
from beat.client.lines_of_tick import Near
from beat.client.relations import Parent
from beat.history import ledger
from beat.history.history import assemble
from beat.timing import clock
from tests.support.lines import MINUTE, NINE, SECOND, Ledger

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.explain import Explanation

INSTANT = timedelta(microseconds=1)
RULES: list[dict[str, Any]] = [
    {"cron": "* * * * *", "tz": "UTC"}, {"every": "2m", "tz": "UTC"}, {"cron": "*/5 * * * *", "tz": "UTC"},
    {"cron": "* * * * *", "tz": "UTC", "max_runs": 9},
]  # fmt: skip


def life(seed: int) -> Ledger:  # noqa: C901, PLR0912 (a case for each kind of line)
    """A ledger of some hundred lines, with nearly all that may happen to a schedule."""
    dice = random.Random(seed)  # noqa: S311 (a test's)
    book = Ledger("report", dice.choice(RULES))
    if dice.random() < 0.7:
        book.registered(NINE - 5 * MINUTE, NINE)
    tick, jobs = NINE, [""]
    for _ in range(dice.randrange(5, 60)):
        match dice.randrange(10):
            case 0:
                last = tick + dice.randrange(1, 5) * MINUTE
                reason = dice.choice(["misfire", "paused", "overlap", "replaced"])
                book.skipped(tick, last, int((last - tick) / MINUTE) + 1, reason=reason, behind=dice.choice(jobs))
                tick = last
            case 1:
                book.changed(tick - SECOND, dice.choice(RULES), tick + dice.randrange(0, 9) * MINUTE)
                tick = book.next or tick
                continue
            case 2:
                book.acted(dice.choice(ledger.ACTIONS), tick - SECOND, until=tick, tick=tick)
                continue
            case 3:
                book.asked(tick + SECOND, f"beat_report_m{dice.randrange(99)}")
                continue
            case 4:
                past = NINE + dice.randrange(0, 20) * MINUTE
                book.asked(tick + SECOND, f"beat_report_b{len(book.entries)}", past, by="backfill")
                continue
            case 5:
                book.entries.append(ledger.Waiting(tick, book.job(tick), dice.choice(jobs), tick + SECOND, "a"))
                if dice.random() < 0.5:
                    book.fired(tick)
            case _:
                book.fired(tick, by=dice.choice(["scheduler", "scheduler", "catchup"]))
                jobs.append(book.job(tick))
                if dice.random() < 0.8:
                    book.ended(tick, dice.choice(ledger.OUTCOMES))
                if dice.random() < 0.1:
                    book.entries.append(ledger.Reopened(tick, book.job(tick), "failed", 2, tick + MINUTE, "a"))
        tick += MINUTE
    book.next = dice.choice([tick, None])
    if dice.random() < 0.3:
        book.entries = book.entries[dice.randrange(len(book.entries)) :]
    return book


def answer(
    book: Ledger, lines: list[bytes], instant: datetime, *, few: bool, parent: Parent | None = None
) -> Explanation:
    written = {"state": "active", "rule": json.dumps(book.rule), "definition": json.dumps({**book.rule, "func": "a.b"})}
    if book.next:
        written["next_run"] = clock.text(book.next)
    known = schedule_info.read("report", {name.encode(): value.encode() for name, value in written.items()})
    waiting = {entry.tick for entry in book.entries if isinstance(entry, ledger.Waiting)}
    waiting -= {entry.tick for entry in book.entries if isinstance(entry, ledger.Enqueued) and entry.tick}
    waiting -= {entry.tick for entry in book.entries if isinstance(entry, ledger.Skipped)}
    entries = [entry for entry in map(ledger.read, lines) if entry]
    if few:
        end = explain.end_of(instant) if parent else instant + INSTANT
        entries = Near(instant, end, waiting).pick(lines)
    return Question(known, assemble("report", entries), instant, NINE + 300 * MINUTE, "", 1, waiting, parent).answer()


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["as scripts write it", "as others do"])
@pytest.mark.parametrize("seed", range(40))
def test_a_few_lines_lead_to_the_same_answer_as_all(seed: int, separators: tuple[str, str]) -> None:
    book = life(seed)
    lines = [json.dumps(ledger.plain(each), separators=separators).encode() for each in book.newest_first]
    for n in range(-3, 140):
        for instant in (NINE + n * MINUTE, NINE + n * MINUTE + 30 * SECOND):
            assert answer(book, lines, instant, few=True) == answer(book, lines, instant, few=False), instant


@pytest.mark.parametrize("seed", range(10))
def test_the_same_holds_for_a_schedule_that_follows_another(seed: int) -> None:
    dice, book, at = random.Random(seed), Ledger("report", {"follows": "extract", "tz": "UTC"}), NINE  # noqa: S311
    book.registered(at - MINUTE, None)
    for n in range(40):
        at += dice.randrange(1, 300) * SECOND + timedelta(milliseconds=dice.choice([0, 123]))
        if dice.random() < 0.7:
            book.fired(at, by="follows", after=f"beat_extract_{n}", job=f"beat_report_{n}")
        else:
            book.skipped(at, at, 1, reason="paused", after=f"beat_extract_{n}")
    book.next = None
    lines = [json.dumps(ledger.plain(each), separators=(",", ":")).encode() for each in book.newest_first]
    parent = Parent("extract", "active", None)
    for n in range(200):
        instant = NINE + n * MINUTE
        few, whole = (answer(book, lines, instant, few=each, parent=parent) for each in (True, False))
        assert few == whole, instant


def test_a_long_ledger_is_not_kept() -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(2000):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE)
    lines = [json.dumps(ledger.plain(each), separators=(",", ":")).encode() for each in book.newest_first]
    tick = NINE + 700 * MINUTE
    picked = Near(tick, tick + INSTANT, ()).pick(lines)
    assert [type(entry).__name__ for entry in picked if getattr(entry, "tick", None) == tick] == ["Outcome", "Enqueued"]
    assert len(picked) < 10
