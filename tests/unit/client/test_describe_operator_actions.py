"""What operators did, told: in why's sentences, in histories, and to verify, which calls it sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from beat.client.describe import decisions
from beat.client.describe.why import sentence
from beat.history.history import assemble
from beat.history.ledger import Outcome
from beat.history.verify import verify
from beat.timing import clock
from beat.timing.zones import zone
from tests.support.lines import MINUTE, MS, NINE, SECOND, Ledger
from tests.unit.client.test_describe_why import why

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.explain import Explanation

UTC = zone("UTC")
FIVE_PAST = NINE + 5 * MINUTE


def begun() -> Ledger:
    """Registered before nine; 9:00 became a job that succeeded, 9:01 is next."""
    return Ledger().registered(NINE - MINUTE, NINE).fired(NINE).ended(NINE)


def later(n: float) -> datetime:
    return NINE + n * MINUTE


class Case(NamedTuple):
    """A ledger, an instant that is asked about, and what is said."""

    book: Ledger
    instant: datetime
    answer: str
    words: str
    now: datetime = FIVE_PAST
    fields: dict[str, str] = {}  # noqa: RUF012 (nobody writes to it)


def paused(until: datetime | None = None, **other: Any) -> Ledger:
    return begun().acted("paused", later(0.5), until=until, **other)


def over() -> Ledger:
    """A pause from 9:00:30 to 9:04:30."""
    book = paused(later(4.5), reason="the warehouse moves")
    book.skipped(later(1), later(4), 4, reason="paused", at=later(4.5))
    return book.acted("resumed", later(4.5), until=later(4.5), beat="web-2")


def instead() -> Ledger:
    """At 9:00:30 somebody ran it, instead of at 9:01."""
    book = begun().asked(later(0.5), "beat_report_m7")
    return book.skipped(later(1), later(1), 1, reason="instead", behind="beat_report_m7", at=later(0.5), beat="ann@ops")


def moved(to: datetime, at: datetime | None = None) -> Ledger:
    """At 9:00:30 the tick of 9:01 was moved; it fired then, if that has come."""
    book = begun().acted("deferred", later(0.5), until=to)
    return book.fired(later(1), at=at) if at else book


def made_up() -> Ledger:
    """9:01 to 9:03 were missed; 9:02 was made up for at 9:04:30, and so was 9:00 once more."""
    book = begun().skipped(later(1), later(3), 3).fired(later(4))
    for tick, job in ((later(2), "beat_report_b1_2"), (NINE, "beat_report_b1_0")):
        book.asked(later(4.5), job, tick, "backfill")
    return book


def retired() -> Ledger:
    book = begun().skipped(later(1), later(3), 3, reason="retired", at=later(3.5))
    return book.acted("retired", later(3.5), beat="web-2", tick=later(1))


PAUSED = {
    "state": "paused",
    "paused_by": "ann@ops",
    "paused_at": clock.text(later(0.5)),
    "pause_reason": "the warehouse moves",
}
SINCE = "the schedule is paused by ann@ops since Mon 2026-11-16 09:00:30 UTC"
CASES: dict[str, Case] = {
    "a pause without an end": Case(
        paused(), later(2), "held",
        f"not decided: {SINCE}, until an operator resumes it (the warehouse moves); when that ends, the tick passes "
        "without a job",
        fields=PAUSED,
    ),
    "a pause with an end": Case(
        paused(later(8)), later(2), "held",
        f"not decided: {SINCE}, until Mon 2026-11-16 09:08 UTC (the warehouse moves); when that ends, the tick passes "
        "without a job",
        fields={**PAUSED, "pause_until": clock.text(later(8))},
    ),
    "the tick with which a pause ends": Case(
        paused(later(8)), later(8), "not_due",
        f"not due yet: in 3m; the next tick is Mon 2026-11-16 09:01 UTC; {SINCE}, until Mon 2026-11-16 09:08 UTC "
        "(the warehouse moves)",
        fields={**PAUSED, "pause_until": clock.text(later(8))},
    ),
    "what a pause held": Case(
        over(), later(2), "skipped",
        "skipped by web-2, one of 4 ticks until 2026-11-16 09:04: paused: ann@ops had paused the schedule until "
        "09:04:30 UTC (the warehouse moves)",
    ),
    "a pause of which the ledger no longer tells": Case(
        Ledger().skipped(later(1), later(4), 4, reason="paused"), later(2), "skipped",
        "skipped by web-2, one of 4 ticks until 2026-11-16 09:04: paused: the schedule was paused",
    ),
    "a run instead": Case(
        instead(), later(1), "skipped",
        "skipped by ann@ops: instead: ann@ops asked for a run in its place, at 09:00:30 UTC: beat_report_m7",
    ),
    "moved to later": Case(
        moved(later(7)), later(1), "not_due",
        "not due yet: ann@ops has moved it to 09:07 UTC, in 2m",
        fields={"due_at": clock.text(later(7)), "moved": clock.text(later(1)), "moved_by": "ann@ops"},
    ),
    "moved to earlier": Case(
        moved(later(0.75)), later(1), "not_due",
        "not due yet: ann@ops has moved it to 09:00:45 UTC, in 5 s",
        now=later(0.75) - 5 * SECOND,
        fields={"due_at": clock.text(later(0.75)), "moved": clock.text(later(1)), "moved_by": "ann@ops"},
    ),
    "moved, and due": Case(
        moved(later(0.75)), later(1), "due", "due for 10 s, and not decided yet: no scheduler is running",
        now=later(0.75) + 10 * SECOND,
        fields={"due_at": clock.text(later(0.75)), "moved": clock.text(later(1)), "moved_by": "ann@ops"},
    ),
    "moved, where all that is missed is caught up with": Case(
        moved(later(4)), later(1), "due", "due for 1m, and not decided yet: no scheduler is running",
        fields={
            "due_at": clock.text(later(4)), "moved": clock.text(later(1)), "moved_by": "ann@ops",
            "definition": '{"id": "report", "func": "app.x", "cron": "* * * * *", "tz": "UTC", "misfire": "all"}',
        },
    ),
    "moved, and fired": Case(
        moved(later(0.75), later(0.75) + 4 * MS), later(1), "enqueued",
        "enqueued by web-2 4 ms late, and how it ended is not known yet; ann@ops had moved it to 09:00:45 UTC",
    ),
    "made up for": Case(
        made_up(), later(2), "enqueued",
        "skipped by web-2, one of 3 ticks until 2026-11-16 09:03: misfire: no scheduler decided it in time, the first "
        "to do so came 2m later; made up for later: enqueued by ann@ops in a backfill, and how it ended is not "
        "known yet",
    ),
    "made up for once more": Case(
        made_up(), NINE, "enqueued",
        "enqueued by web-2 4 ms late, started 2 s later by worker x, succeeded after 3.1 s; and once more: "
        "enqueued by ann@ops in a backfill, and how it ended is not known yet",
    ),
    "retired": Case(
        retired(), later(2), "skipped",
        "skipped by web-2, one of 3 ticks until 2026-11-16 09:03: retired: no running scheduler declared the "
        "schedule any more, and web-2 retired it",
        fields={"state": "retired"},
    ),
    "after it was retired": Case(
        retired(), later(4), "held", "not decided: the schedule is retired: no running scheduler declares it",
        fields={"state": "retired"},
    ),
    "nobody declares it": Case(
        begun(), later(1), "held",
        "not decided: no running scheduler declares the schedule since Mon 2026-11-16 09:00:30 UTC; it fires when one "
        "does, and passes when the schedule is retired",
        fields={"unannounced_at": clock.text(later(0.5))},
    ),
    "nobody declares it, and it is not due": Case(
        begun(), later(7), "not_due", "not due yet: in 2m; the next tick is Mon 2026-11-16 09:01 UTC",
        fields={"unannounced_at": clock.text(later(0.5))},
    ),
}  # fmt: skip


def told(case: Case) -> Explanation:
    return why(case.book, case.instant, now=case.now, **case.fields)


@pytest.mark.parametrize("name", CASES)
def test_why_tells_what_an_operator_did(name: str) -> None:
    case = CASES[name]
    found = told(case)
    assert found.answer == case.answer
    assert sentence(found, UTC, case.now) == case.words


def test_a_backfill_of_old_ticks_does_not_make_the_ledger_reach_back() -> None:
    """What is older than its own oldest verdict was trimmed, whatever was made up for."""
    book = made_up()
    book.entries = book.entries[-2:]
    book.fired(later(6))
    found = told(Case(book, later(3), "", ""))
    assert (found.answer, found.begins) == ("trimmed", later(6))


# --- histories -------------------------------------------------------------------------------------------------------

ACTED: dict[str, tuple[Ledger, str, str]] = {
    "paused": (
        paused(later(8), reason="the warehouse moves"),
        "paused by ann@ops: until 2026-11-16 09:08: the warehouse moves",
        "until 2026-11-16 09:08: the warehouse moves; by ann@ops",
    ),
    "paused without an end": (
        paused(),
        "paused by ann@ops: until an operator resumes it",
        "until an operator resumes it; by ann@ops",
    ),
    "resumed": (paused().acted("resumed", later(2)), "resumed by ann@ops", "by ann@ops"),
    "resumed by itself": (
        over(),
        "resumed by web-2: the pause ended at 2026-11-16 09:04:30",
        "the pause ended at 2026-11-16 09:04:30",
    ),
    "moved": (
        moved(later(7)),
        "deferred by ann@ops: the tick of 2026-11-16 09:01 fires at 2026-11-16 09:07",
        "the tick of 2026-11-16 09:01 fires at 2026-11-16 09:07; by ann@ops",
    ),
    "retired": (
        retired(),
        "retired by web-2: no running scheduler declares it any more",
        "no running scheduler declares it any more",
    ),
    "another rule": (
        begun().changed(later(0.5), {"every": "5m", "tz": "UTC"}, later(5), "rescheduled"),
        "rescheduled by web-2: * * * * * → every 5m, next 2026-11-16 09:05",
        "* * * * * → every 5m, next 2026-11-16 09:05; by web-2",
    ),
}


@pytest.mark.parametrize("name", ACTED)
def test_a_history_tells_it_in_a_sentence_and_in_a_table(name: str) -> None:
    book, story, note = ACTED[name]
    line = assemble(book.id, book.newest_first)[0]
    assert decisions.story(line, UTC, FIVE_PAST) == story
    assert decisions.note(line, UTC) == note


# --- verify ----------------------------------------------------------------------------------------------------------


def verified(book: Ledger, now: datetime = FIVE_PAST, **known: Any) -> Any:
    ended = {entry.job for entry in book.entries if isinstance(entry, Outcome)}
    counts = {name: number for name, number in book.counts.items() if name.endswith(("s_count", "e_count", "d_count"))}
    given = {
        "rule": book.rule, "next_run": book.next, "state": "active", "now": now,
        "run_count": book.counts["run_count"], "skip_count": book.counts["skip_count"],
        "open_jobs": {job for entry in book.entries if (job := getattr(entry, "job", "")) and job not in ended},
        "counts": counts,
    }  # fmt: skip
    return verify(book.id, book.newest_first, **{**given, **known})


OVERRIDDEN = begun().changed(later(0.5), {"every": "5m", "tz": "UTC"}, later(5), "rescheduled")
SOUND: dict[str, tuple[Ledger, dict[str, Any], dict[str, int]]] = {
    "paused": (paused(), {"state": "paused", "held": True}, {"expected": 1, "held": 5, "pending": 0}),
    "a pause that is over": (over(), {}, {"expected": 5, "pending": 1}),
    "a run instead": (instead().fired(later(2)), {}, {"expected": 3, "pending": 3}),
    "moved to later": (moved(later(7)), {"due_at": later(7)}, {"expected": 1, "pending": 0}),
    "moved to earlier": (moved(later(0.75), later(0.75) + 4 * MS), {"now": later(0.9)}, {"expected": 2}),
    "moved to earlier, and due": (moved(later(0.75)), {"due_at": later(0.75), "now": later(0.8)}, {"expected": 1}),
    "made up for": (made_up(), {}, {"expected": 5, "pending": 1}),
    "retired": (retired(), {"state": "retired"}, {"expected": 4, "pending": 0}),
    "retired, and back": (
        retired().changed(later(4.5), {"cron": "* * * * *", "tz": "UTC"}, later(5)), {}, {"expected": 4, "pending": 1},
    ),
    "another rule": (OVERRIDDEN, {}, {"expected": 1, "pending": 1}),
    "back to the code's": (
        begun().changed(later(0.5), {"every": "5m", "tz": "UTC"}, later(5), "rescheduled")
        .changed(later(2.5), {"cron": "* * * * *", "tz": "UTC"}, later(3), "reset").fired(later(3)),
        {}, {"expected": 2, "pending": 2},
    ),
    "nobody declares it": (begun(), {"held": True}, {"expected": 1, "held": 5, "pending": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_what_operators_do_is_sound(name: str) -> None:
    book, known, expected = SOUND[name]
    found = verified(book, **known)
    assert (found.problems, found.missing, found.double, found.off) == ((), (), (), ()) or name == "retired, and back"
    assert found.sound
    assert {each: getattr(found, each) for each in expected} == expected


UNSOUND: dict[str, tuple[Ledger, str]] = {
    "before its time, and nobody had moved it": (
        begun().fired(later(1), at=later(0.75)),
        "2026-11-16T09:01:00Z was decided before it was due",
    ),
    "before its time, and another was moved": (
        begun().acted("deferred", later(0.5), until=later(0.75), tick=later(9)).fired(later(1), at=later(0.75)),
        "2026-11-16T09:01:00Z was decided before it was due",
    ),
    "a pause that held nothing, and skips before its end": (
        paused().skipped(later(1), later(4), 4, reason="paused", at=later(2)),
        "2026-11-16T09:04:00Z was decided before it was due",
    ),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_no_operator_did_is_noticed(name: str) -> None:
    book, words = UNSOUND[name]
    assert any(problem.startswith(words) for problem in verified(book).problems)


def test_a_backfill_is_no_second_run_of_its_tick_and_needs_a_line_all_the_same() -> None:
    book = made_up()
    assert verified(book).double == ()
    del book.entries[-1]
    assert any("run_count is 4" in problem for problem in verified(book).problems)
