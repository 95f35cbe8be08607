"""What became of a tick, in the words that people read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from beat.client.describe import changes, decisions
from beat.client.describe.why import sentence
from beat.client.explain import Explanation
from beat.history.history import Change, Fired, Line, Passed, assemble
from beat.history.ledger import Error
from beat.timing.zones import zone
from tests.support.lines import MINUTE, MS, NINE, SECOND, Ledger

UTC, BERLIN = zone("UTC"), zone("Europe/Berlin")
ERROR = Error("KeyError", "'user'", "Traceback …\nKeyError: 'user'\n")


def line(book: Ledger) -> Line:
    return assemble(book.id, book.newest_first)[0]


def run(kind: str | None = None, **other: Any) -> Fired:
    book = Ledger().fired(NINE)
    made = line(book.ended(NINE, kind) if kind else book)
    assert isinstance(made, Fired)
    return replace(made, **other)


ENQUEUED = "enqueued by web-2 4 ms late"
STARTED = f"{ENQUEUED}, started 2 s later by worker x"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (run("failed", error=ERROR), f"{STARTED}, failed after 3.1 s: KeyError: 'user'"),
        (run("failed", error=Error("KeyError", "", "")), f"{STARTED}, failed after 3.1 s: KeyError"),
        (run("failed"), f"{STARTED}, failed after 3.1 s"),
        (
            run("failed", reported=True, message="3 rows refused"),
            f"{STARTED}, failed by its own report after 3.1 s: 3 rows refused",
        ),
        (run("succeeded"), f"{STARTED}, succeeded after 3.1 s"),
        (run("succeeded", message="42 rows"), f"{STARTED}, succeeded after 3.1 s: 42 rows"),
        (run("succeeded", worker=None), f"{ENQUEUED}, started 2 s later, succeeded after 3.1 s"),
        (
            run("succeeded", attempts=3),
            f"{ENQUEUED}, started 3 times, the last at 2026-11-16 09:00:02 by worker x, succeeded after 3.1 s",
        ),
        (run("stopped", reason="somebody stopped it"), f"{STARTED}, stopped after 3.1 s: somebody stopped it"),
        (
            run("lost", started_at=None, duration=None, reason="RQ has no record of it"),
            f"{ENQUEUED}, lost: RQ has no record of it",
        ),
        (run(), f"{ENQUEUED}, and how it ended is not known yet"),
        (run(state="queued"), f"{ENQUEUED}, and waits in its queue"),
        (run(state="scheduled"), f"{ENQUEUED}, and waits for its next attempt"),
        (
            run(state="started", started_at=NINE + 2 * SECOND + 4 * MS, worker="x"),
            f"{STARTED}, and has been running for 58 s",
        ),
        (run(state="started"), f"{ENQUEUED}, and is running"),
        (run(late_ms=0), "enqueued by web-2 on time, and how it ended is not known yet"),
        (run(triggered_by="catchup"), f"{ENQUEUED} to catch up, and how it ended is not known yet"),
        (
            run(tick=None, triggered_by="manual"),
            "enqueued because web-2 asked for it, and how it ended is not known yet",
        ),
        (
            run("succeeded", enqueued_at=None, late_ms=None),
            "enqueued (by whom and when was trimmed), started by worker x, succeeded after 3.1 s",
        ),
    ],
)  # fmt: skip
def test_a_run_is_told_from_its_tick_to_its_end(made: Fired, told: str) -> None:
    assert decisions.story(made, UTC, NINE + MINUTE) == told


def test_a_skipped_stretch_is_told_with_its_reason() -> None:
    one, many = (line(Ledger().skipped(NINE, NINE + n * MINUTE, n + 1)) for n in (0, 2))
    why = "misfire (no scheduler decided it in time)"
    assert decisions.story(one, UTC, NINE) == f"skipped by web-2: {why}"
    assert decisions.story(many, BERLIN, NINE) == f"skipped by web-2, one of 3 ticks until 2026-11-16 10:02: {why}"


def test_a_reason_that_a_newer_beat_gives_is_told_as_it_is() -> None:
    found = line(Ledger().skipped(NINE, NINE, 1, reason="the run of 02:45 was still going"))
    assert decisions.story(found, UTC, NINE) == "skipped by web-2: the run of 02:45 was still going"


@pytest.mark.parametrize(
    ("rule", "was", "told"),
    [
        ({"cron": "0 9 * * *", "tz": "Europe/Berlin"}, None, "0 9 * * * Europe/Berlin, next 2026-11-16 09:00"),
        ({"every": "15m", "tz": "UTC"}, None, "every 15m, next 2026-11-16 09:00"),
        ({"every": "15m", "tz": "UTC"}, {"every": "1h", "tz": "UTC"}, "every 1h → every 15m"),
        ({"every": "15m", "phase": "1m", "tz": "UTC"}, {"every": "15m", "tz": "UTC"}, "every 15m → every 15m phase 1m"),
        ({"cron": "0 9 * * *", "tz": "UTC"}, {"cron": "0 9 * * *", "tz": "UTC"}, "0 9 * * *"),
        ({}, None, "an unreadable rule, next 2026-11-16 09:00"),
    ],
)
def test_a_change_is_told_by_its_rules(rule: dict[str, Any], was: dict[str, Any] | None, told: str) -> None:
    book = Ledger(rule=was or rule)
    book.next = NINE
    found = line(book.changed(NINE, rule, NINE, "updated") if was else book.registered(NINE, NINE))
    assert isinstance(found, Change)
    assert changes.changed(found, UTC) == told


def test_a_change_after_which_nothing_ticks_says_so() -> None:
    found = line(Ledger().registered(NINE, None))
    assert decisions.story(found, UTC, NINE) == "registered by web-2: * * * * *, no tick to come"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (run("succeeded"), ""),
        (run("succeeded", message="42 rows"), "42 rows"),
        (run("failed", error=ERROR, attempts=3), "KeyError: 'user'; 3 attempts"),
        (run("failed", error=Error("E", "one\ntwo", "")), "E: one …"),
        (run("failed", error=Error("E", "x" * 500, "")), f"E: {'x' * 117} …"),
        (run("lost", reason="gone", triggered_by="catchup"), "gone; catchup"),
    ],
)
def test_a_note_is_one_short_line(made: Fired, told: str) -> None:
    assert decisions.note(made, UTC) == told


def test_a_note_on_skipped_ticks_counts_them() -> None:
    assert decisions.note(line(Ledger().skipped(NINE, NINE + 2 * MINUTE, 3)), UTC) == (
        "misfire, 3 ticks until 2026-11-16 09:02"
    )


def test_every_line_can_be_written_as_json() -> None:
    book = Ledger().registered(NINE - MINUTE, NINE).fired(NINE).ended(NINE, "failed", error=ERROR, details={"a": [1]})
    book.skipped(NINE + MINUTE, NINE + MINUTE, 1)
    told = [decisions.plain(each) for each in assemble(book.id, book.newest_first)]
    assert json.loads(json.dumps(told)) == told
    skipped, fired, change = told
    assert (skipped["type"], skipped["first"], skipped["reason"]) == ("skipped", "2026-11-16T09:01:00Z", "misfire")
    assert (fired["type"], fired["state"], fired["late"], fired["wait"]) == ("run", "failed", 0.004, 2.0)
    assert fired["error"] == {"type": "KeyError", "message": "'user'", "traceback": ERROR.traceback}
    assert (change["type"], change["next"], change["was"]) == ("registered", "2026-11-16T09:00:00Z", None)


# beat why, in a sentence


def explained(answer: Any, **more: Any) -> Explanation:
    facts: dict[str, Any] = {"tz": "UTC", "state": "active", "next_run": NINE + MINUTE, **more}
    return Explanation(schedule_id="report", instant=NINE, answer=answer, **facts)


NO_TICK = "not a tick of this schedule: the nearest is 10:00 UTC"
DUE = "due for 7 s, and not decided yet"
PASSED = line(Ledger().skipped(NINE, NINE, 1, reason="paused"))
MOVED = line(Ledger().changed(NINE - MINUTE, {"every": "1h", "tz": "UTC"}, NINE + 60 * MINUTE))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (explained("enqueued", runs=(run("succeeded"),)), f"{STARTED}, succeeded after 3.1 s"),
        (
            explained("enqueued", runs=(run("succeeded"), run(state="queued"))),
            f"{STARTED}, succeeded after 3.1 s; and again {ENQUEUED}, and waits in its queue",
        ),
        (explained("skipped", passed=PASSED), "skipped by web-2: paused: the schedule was paused"),
        (explained("due", late=7, holder="web-1"), "due for 7 s, and not decided yet: web-1 is at work on it"),
        (explained("due", late=7), "due for 7 s, and not decided yet: no scheduler is running"),
        (explained("due", late=7, beats=1), f"{DUE}: 1 scheduler is running, none is at work on it"),
        (explained("due", late=7, beats=2), f"{DUE}: 2 schedulers are running, none is at work on it"),
        (explained("not_due"), "not due yet: in 1m; the next tick is Mon 2026-11-16 09:01 UTC"),
        (explained("held", state="paused"), "not decided: the schedule is paused"),
        (explained("held", state="odd"), "not decided: the state of the schedule is 'odd'"),
        (
            explained("not_registered", begins=NINE + MINUTE),
            "the schedule was not there yet: it was registered at Mon 2026-11-16 09:01 UTC",
        ),
        (
            explained("trimmed", begins=NINE + MINUTE),
            "not known: the ledger no longer goes back so far; it begins with the tick of Mon 2026-11-16 09:01 UTC",
        ),
        (explained("trimmed"), "not known: the ledger no longer goes back so far; it is empty"),
        (
            explained("missing"),
            "no verdict, though it is a tick and later ones were decided: see `beat verify`",
        ),
        (explained("unreadable"), "not known: the rule that decided then cannot be read"),
        (
            explained("not_a_tick", before=NINE - MINUTE, after=NINE + MINUTE),
            "not a tick of this schedule: the nearest are 08:59 UTC and 09:01 UTC",
        ),
        (explained("not_a_tick", after=NINE + MINUTE), "not a tick of this schedule: the nearest is 09:01 UTC"),
        (explained("not_a_tick"), "not a tick of this schedule: it has none at all"),
        (
            explained("not_a_tick", after=NINE + 60 * MINUTE, change=MOVED),
            f"{NO_TICK}; the definition changed at 2026-11-16 08:59, and went on with Mon 2026-11-16 10:00 UTC",
        ),
    ],
)  # fmt: skip
def test_every_answer_is_a_sentence(told: Explanation, words: str) -> None:
    assert sentence(told, UTC, NINE - MINUTE if told.answer == "not_due" else NINE + MINUTE) == words


def test_the_sentence_of_the_issue() -> None:
    found = explained("enqueued", runs=(run("failed", error=ERROR),), tz="Europe/Berlin")
    assert sentence(found, BERLIN, NINE).startswith(
        "enqueued by web-2 4 ms late, started 2 s later by worker x, failed after 3.1 s: KeyError"
    )
    assert isinstance(PASSED, Passed)
