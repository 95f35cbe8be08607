"""What became of a run, as a table: what RQ's records show, what was known before, and what is to be done about it."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.history import ledger
from beat.jobs import outcomes
from beat.jobs.observation import Record, Sighting
from beat.jobs.outcomes import LISTEN_MS, MISSING_MS, Close, Decision, Forget, Mark, Reopen
from beat.jobs.report import Report
from beat.timing import clock

NOW = 1_794_819_700_000
STARTED, ENDED = "2026-11-16T09:00:00.020000Z", "2026-11-16T09:00:03.120500Z"
BEGAN, END = datetime(2026, 11, 16, 9, 0, 0, 20_000, UTC), datetime(2026, 11, 16, 9, 0, 3, 120_000, UTC)
RECORD = Record("report", "2026-11-16T09:00:00Z", "scheduler", "rq:queue:default", "2026-11-16T09:00:00.004Z", 1)
CLOSED = replace(
    RECORD,
    outcome="failed",
    sign=f"failed|{STARTED}|{ENDED}",
    started=clock.text(BEGAN),
    ended=clock.text(END),
    attempts=1,
)
GOING = ["queued", "scheduled", "deferred", "created", "started"]


def seen(status: str = "finished", record: Record | str = RECORD, **facts: Any) -> Sighting:
    times = {"started_at": STARTED, "ended_at": ENDED, "worker_name": "w1"}
    words: dict[str, Any] = {each.name: "" for each in fields(Sighting)}
    given = times if status in {"finished", "failed", "stopped"} else {}
    kept = record if isinstance(record, str) else record.text()
    whole = {**words, "value": b"", "error": b"", "job": "job", "status": status, "record": kept, **given, **facts}
    return Sighting(**whole)


def judge(sighting: Sighting, now: int, since: int = 0) -> Decision | None:
    """What a scheduler does that has listened for long."""
    return outcomes.judge(sighting, now, since)


def closed(found: object) -> Close:
    assert isinstance(found, Close), found
    return found


def returned(value: object) -> bytes:
    return base64.b64encode(pickle.dumps(value))


def raised(words: str) -> bytes:
    return base64.b64encode(zlib.compress(words.encode()))


TRACEBACK = "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    d[1]\nKeyError: 'x'\n"

# --- an open run has ended -------------------------------------------------------------------------------------------

ENDS: dict[str, tuple[Sighting, dict[str, Any]]] = {
    "finished": (seen(), {"outcome": "succeeded", "watch": False}),
    "finished, with another result": (seen(value=returned({"rows": 3})), {"outcome": "succeeded", "told": None}),
    "failed": (
        seen("failed", error=raised(TRACEBACK)),
        {"outcome": "failed", "error": {"type": "KeyError", "message": "'x'", "traceback": TRACEBACK.strip("\n")}},
    ),
    "failed, and nobody wrote why": (
        seen("failed", ended_at=""),
        {"outcome": "failed", "ended": None, "words": "RQ kept no word about it"},
    ),
    "killed": (
        seen("failed", error=raised("Work-horse terminated unexpectedly; waitpid returned 9; ")),
        {"outcome": "failed", "words": "WorkHorseKilled: Work-horse terminated unexpectedly; waitpid returned 9"},
    ),
    "given up by RQ": (
        seen("failed", error=raised("Moved to FailedJobRegistry, due to AbandonedJobError, at 2026-11-16")),
        {"outcome": "failed", "ended": None, "duration": None},
    ),
    "stuck between two lists": (
        seen("failed", error=raised("Job was stuck in intermediate queue.")), {"outcome": "failed", "ended": None},
    ),
    "asked to be run again too often": (
        seen("failed", result_type="5", number_of_retries="3"),
        {"outcome": "failed", "words": "MaxRetriesExceeded: after 4 attempts", "attempts": 4},
    ),
    "stopped": (seen("stopped"), {"outcome": "stopped", "reason": outcomes.STOPPED, "watch": True, "error": None}),
    "cancelled": (seen("canceled", alive="0"), {"outcome": "stopped", "reason": outcomes.CANCELED, "started": None}),
}  # fmt: skip


@pytest.mark.parametrize(("sighting", "expected"), ENDS.values(), ids=ENDS)
def test_a_run_that_has_ended_is_closed(sighting: Sighting, expected: dict[str, Any]) -> None:
    found = closed(judge(sighting, NOW))
    given: dict[str, Any] = {"attempts": 1, "before": RECORD}
    if sighting.started_at and sighting.ended_at:
        given |= {"started": BEGAN, "ended": END, "worker": "w1", "duration": 3.1}
    wanted = {**given, **({"duration": None} if expected.get("ended", END) is None else {}), **expected}
    assert {name: getattr(found, name) for name in wanted} == wanted


REPLACED = replace(RECORD, replaced_by="2026-11-16T09:05:00Z")


@pytest.mark.parametrize("status", ["stopped", "canceled"])
def test_a_run_that_a_newer_tick_replaced_says_so(status: str) -> None:
    found = closed(judge(seen(status, REPLACED, alive="0" if status == "canceled" else ""), NOW))
    assert (found.outcome, found.words) == ("stopped", "replaced by the tick of 2026-11-16T09:05:00Z")
    kept = Record.read(outcomes.kept(found, seen(status, REPLACED), NOW))
    assert kept is not None
    assert not kept.replaced_by, "an operator may run it again, and stop it"


@pytest.mark.parametrize(("status", "outcome"), [("finished", "succeeded"), ("failed", "failed")])
def test_a_run_that_ended_before_its_worker_heard_of_the_newer_tick_ended_as_it_did(status: str, outcome: str) -> None:
    found = closed(judge(seen(status, REPLACED, error=raised(TRACEBACK)), NOW))
    assert (found.outcome, found.reason) == (outcome, "")


@pytest.mark.parametrize("status", ["failed", "stopped", "canceled"])
def test_what_rq_could_run_again_is_watched(status: str) -> None:
    assert closed(judge(seen(status), NOW)).watch


@pytest.mark.parametrize(
    ("status", "own", "ttl", "watch"),
    [
        ("finished", {}, None, False), ("finished", {"result_ttl": 0}, 0, False),
        ("finished", {"result_ttl": 5}, 5, False), ("finished", {"failure_ttl": 5}, None, False),
        ("failed", {}, None, True), ("failed", {"failure_ttl": 5}, 5, True), ("failed", {"failure_ttl": 0}, 0, False),
        ("failed", {"result_ttl": 0}, None, True),
        ("stopped", {"result_ttl": 0, "failure_ttl": 5}, None, True),
    ],
)  # fmt: skip
def test_the_users_own_times_are_applied_to_what_they_are_for(
    status: str,
    own: dict[str, Any],
    ttl: int | None,
    watch: bool,  # noqa: FBT001 (a case)
) -> None:
    found = closed(judge(seen(status, replace(RECORD, **own)), NOW))
    assert (found.ttl_s, found.watch) == (ttl, watch)


# --- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("serializer", ["pickle", "json"])
@pytest.mark.parametrize(("success", "outcome"), [(True, "succeeded"), (False, "failed")])
def test_a_run_may_say_itself_how_it_went(serializer: str, success: bool, outcome: str) -> None:  # noqa: FBT001 (a case)
    report = Report(success, "3 rows, é", {"rows": [1]})
    value = returned(report) if serializer == "pickle" else base64.b64encode(json.dumps(report).encode())
    found = closed(judge(seen(value=value), NOW))
    assert (found.outcome, found.reported, found.error) == (outcome, not success, None)
    line = outcomes.entry(found, "job")
    assert (line["message"], line["details"]) == ("3 rows, é", {"rows": [1]})
    assert line.get("reported") == (None if success else True)
    assert found.words == ("" if success else "reported: 3 rows, é")
    assert not found.watch, "RQ does not run it again"


@pytest.mark.parametrize("value", [b"garbage", b"e", b"\xff", returned(print), returned({"success": "yes"})], ids=repr)
def test_any_other_result_is_a_success(value: bytes) -> None:
    found = closed(judge(seen(value=value), NOW))
    assert (found.outcome, found.told) == ("succeeded", None)


# --- times -----------------------------------------------------------------------------------------------------------

EPOCH_START, EPOCH_END, RESULT_ID = "1794819600.015", "1794819603.5", "1794819603700-0"
TIMES: dict[str, tuple[dict[str, str], tuple[str, str, float | None]]] = {
    "of the hash": ({}, ("00.020", "03.120", 3.1)),
    "of the hash before those of the result": (
        {"result_started": EPOCH_START, "result_ended": EPOCH_END, "result_id": RESULT_ID}, ("00.020", "03.120", 3.1),
    ),
    "of the result": (
        {"started_at": "", "ended_at": "", "result_started": EPOCH_START, "result_ended": EPOCH_END},
        ("00.015", "03.500", 3.485),
    ),
    "the end of the result alone": ({"ended_at": "", "result_ended": EPOCH_END}, ("00.020", "03.500", 3.48)),
    "when the result was written": ({"ended_at": "", "result_id": RESULT_ID}, ("00.020", "03.700", 3.68)),
    "the end of an earlier attempt, and a result": (
        {"ended_at": "2026-11-16T08:59:00.000000Z", "result_id": RESULT_ID}, ("00.020", "03.700", 3.68),
    ),
    "the end of an earlier attempt": ({"ended_at": "2026-11-16T08:59:00.000000Z"}, ("00.020", "", None)),
    "the result of an earlier attempt": (
        {"ended_at": "", "result_id": "1794819500000-0"}, ("00.020", "", None),
    ),
    "no start": ({"started_at": ""}, ("", "03.120", None)),
    "no end": ({"ended_at": ""}, ("00.020", "", None)),
    "nothing": ({"started_at": "", "ended_at": ""}, ("", "", None)),
    "an instant": ({"ended_at": STARTED}, ("00.020", "00.020", 0.0)),
    "garbage": (
        {"started_at": "garbage", "ended_at": "2026-02-31", "result_started": "x", "result_ended": "nan",
         "result_id": "y"}, ("", "", None),
    ),
    "no time zone": ({"started_at": "2026-11-16T09:00:00", "ended_at": "2026-11-16"}, ("", "", None)),
    "beyond all calendars": (
        {"started_at": "9999-12-31T23:59:59-14:00", "ended_at": "", "result_ended": "1e300",
         "result_id": "18446744073709551615-1"}, ("", "", None),
    ),
    "infinity": ({"started_at": "", "ended_at": "", "result_started": "inf", "result_ended": "-inf"}, ("", "", None)),
}  # fmt: skip


@pytest.mark.parametrize("status", ["finished", "failed"])
@pytest.mark.parametrize(("facts", "expected"), TIMES.values(), ids=TIMES)
def test_a_run_lasted_from_its_start_to_its_end_as_far_as_anybody_knows(
    facts: dict[str, str], expected: tuple[str, str, float | None], status: str
) -> None:
    line = outcomes.entry(closed(judge(seen(status, **facts), NOW)), "job")
    shown = [line[name][17:-1] if line[name] else "" for name in ("started", "ended")]
    assert (*shown, line["duration"]) == expected


# --- attempts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retries", "left", "number", "requeued", "attempts"),
    [
        (0, "", "", 0, 1), (3, "3", "", 0, 1), (3, "1", "", 0, 3), (3, "0", "", 0, 4), (3, "", "", 0, 1),
        (0, "", "2", 0, 3), (3, "2", "2", 0, 4), (0, "", "", 2, 3), (3, "0", "", 1, 5),
        (3, "7", "", 0, 1), (3, "-1", "", 0, 1), (3, "abc", "x", 0, 1), (0, "", "9" * 30, 0, 1), (3, "²", "٣", 0, 1),
    ],
)  # fmt: skip
def test_attempts_are_the_first_rqs_own_and_those_that_somebody_asked_for(
    retries: int, left: str, number: str, requeued: int, attempts: int
) -> None:
    record = replace(RECORD, retries=retries, requeued=requeued)
    found = closed(judge(seen("failed", record, retries_left=left, number_of_retries=number), NOW))
    assert found.attempts == outcomes.entry(found, "job")["attempts"] == attempts


# --- an open run is missing ------------------------------------------------------------------------------------------

MARKED = replace(RECORD, missing=NOW - MISSING_MS, missing_as="queued")
ABSENT = [("queued", "placed"), ("scheduled", "placed"), ("started", "alive"), ("", "")]
"""A status, and the fact that says that such a run is missing; of a job that is gone its absence says so."""


@pytest.mark.parametrize("status", GOING)
def test_a_run_that_goes_on_is_left_alone(status: str) -> None:
    assert judge(seen(status), NOW) is None
    assert judge(seen(status, alive="1", placed="1"), NOW) is None


@pytest.mark.parametrize(("status", "fact"), ABSENT)
def test_a_run_that_is_missing_is_marked_first(status: str, fact: str) -> None:
    facts = {fact: "0"} if fact else {}
    expected = Mark(replace(RECORD, missing=NOW, missing_as=status or "gone"))
    assert judge(seen(status, **facts), NOW) == expected
    assert judge(seen(status, expected.record, **facts), NOW + MISSING_MS - 1) is None


@pytest.mark.parametrize(
    ("status", "fact", "reason", "watch"),
    [
        ("queued", "placed", outcomes.NO_PLACE, True), ("scheduled", "placed", outcomes.NO_PLACE, True),
        ("started", "alive", outcomes.NO_LIFE, True), ("", "", outcomes.NO_RECORD, False),
    ],
)  # fmt: skip
def test_a_run_that_stays_missing_for_a_minute_is_lost(
    status: str,
    fact: str,
    reason: str,
    watch: bool,  # noqa: FBT001 (a case)
) -> None:
    marked = replace(RECORD, missing=NOW - MISSING_MS, missing_as=status or "gone")
    facts = {fact: "0"} if fact else {}
    found = closed(judge(seen(status, marked, started_at=STARTED, worker_name="w1", timeout="5", **facts), NOW))
    assert (found.outcome, found.reason, found.watch) == ("lost", reason, watch)
    assert (found.ended, found.duration, found.words, found.error) == (None, None, reason, None)
    assert found.worker == ("w1" if status == "started" else "")
    assert found.ttl_s is None


BEGAN_MS = clock.to_ms(BEGAN)
SILENT = replace(RECORD, missing=BEGAN_MS + 60_000, missing_as="started")
"""Started by RQ, and found without a sign of life one minute later."""


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        ({"timeout": "5"}, 95),
        ({"timeout": "180"}, 270),
        ({"timeout": "3600"}, 3690),
        ({"timeout": "5", "success_callback_timeout": "60", "failure_callback_timeout": "10"}, 165),
    ],
)
def test_a_silent_run_is_lost_when_rq_would_have_killed_it_and_not_before(facts: dict[str, str], seconds: int) -> None:
    sighting = seen("started", SILENT, started_at=STARTED, alive="0", **facts)
    end = BEGAN_MS + seconds * 1000
    assert judge(sighting, end - 1) is None
    assert closed(judge(sighting, end)).reason == outcomes.NO_LIFE


@pytest.mark.parametrize("timeout", ["-1", "0", "", "soon"])
def test_a_silent_run_without_a_time_limit_is_left_to_rq(timeout: str) -> None:
    sighting = seen("started", SILENT, started_at=STARTED, alive="0", timeout=timeout)
    assert judge(sighting, BEGAN_MS + 366 * 86_400_000) is None


def test_a_silent_run_is_seen_twice_before_it_is_lost() -> None:
    late = BEGAN_MS + 86_400_000
    marked = replace(RECORD, missing=late, missing_as="started")
    facts = {"started_at": STARTED, "alive": "0", "timeout": "5"}
    assert judge(seen("started", **facts), late) == Mark(marked)
    assert judge(seen("started", marked, **facts), late + LISTEN_MS - 1) is None
    assert closed(judge(seen("started", marked, **facts), late + LISTEN_MS)).outcome == "lost"


def test_a_scheduler_that_has_just_begun_to_listen_declares_no_silent_run_lost() -> None:
    sighting = seen("started", SILENT, started_at=STARTED, alive="0", timeout="5")
    since = BEGAN_MS + 86_400_000
    assert judge(sighting, since, since) is None
    assert judge(sighting, since + LISTEN_MS - 1, since) is None
    assert closed(judge(sighting, since + LISTEN_MS, since)).reason == outcomes.NO_LIFE


@pytest.mark.parametrize("timeout", ["3600", "-1"])
def test_a_run_that_its_worker_has_left_without_a_result_is_lost_at_once(timeout: str) -> None:
    found = closed(judge(seen("started", started_at=STARTED, alive="left", timeout=timeout, worker_name="w1"), NOW))
    assert (found.outcome, found.reason, found.worker) == ("lost", outcomes.LEFT_ALONE, "w1")


@pytest.mark.parametrize("started_at", ["2020-01-01T00:00:00.000000Z", "", "garbage"])
def test_a_worker_whose_clock_is_slow_does_not_make_its_run_lost_early(started_at: str) -> None:
    sighting = seen("started", SILENT, started_at=started_at, alive="0", timeout="3600")
    assert judge(sighting, BEGAN_MS + 3_600_000 + 89_000) is None
    assert closed(judge(sighting, SILENT.missing + 3_690_000)).outcome == "lost"


def test_a_worker_whose_clock_is_fast_does_not_keep_its_run_open() -> None:
    sighting = seen("started", SILENT, started_at="2099-01-01T00:00:00.000000Z", alive="0", timeout="5")
    assert judge(sighting, SILENT.missing + 94_999) is None
    assert closed(judge(sighting, SILENT.missing + 95_000)).outcome == "lost"


@pytest.mark.parametrize("status", GOING)
def test_a_run_that_was_missing_and_is_there_is_marked_no_more(status: str) -> None:
    facts = {"alive": "1"} if status == "started" else {"placed": "1"}
    assert judge(seen(status, MARKED, **facts), NOW) == Mark(RECORD)


@pytest.mark.parametrize(("status", "fact"), ABSENT)
def test_a_run_that_is_missing_otherwise_than_before_has_its_minute_again(status: str, fact: str) -> None:
    marked = replace(RECORD, missing=1, missing_as="deferred")
    facts = {fact: "0"} if fact else {}
    assert judge(seen(status, marked, **facts), NOW) == Mark(replace(RECORD, missing=NOW, missing_as=status or "gone"))


@pytest.mark.parametrize("status", ["finished", "failed", "stopped"])
def test_a_run_that_was_missing_and_has_ended_is_closed_as_it_ended(status: str) -> None:
    found = closed(judge(seen(status, MARKED), NOW))
    assert found.outcome != "lost"
    kept = outcomes.kept(found, seen(status, MARKED), NOW)
    assert "missing" not in kept


def test_a_clock_that_went_back_makes_nobody_lost_and_nobody_wait() -> None:
    marked = replace(RECORD, missing=NOW + 10 * MISSING_MS, missing_as="queued")
    again = Mark(replace(marked, missing=NOW))
    assert judge(seen("queued", marked, placed="0"), NOW) == again, "it is missing for a minute from now on"


def test_a_run_that_waits_is_never_lost_for_its_age() -> None:
    old = replace(RECORD, enqueued="1999-01-01T00:00:00Z")
    assert judge(seen("queued", old), NOW) is None
    assert judge(seen("queued", old, placed="1"), NOW) is None


@pytest.mark.parametrize("record", [RECORD, CLOSED], ids=["open", "closed"])
def test_a_state_that_a_later_rq_may_have_is_left_to_a_later_beat(record: Record) -> None:
    assert judge(seen("exploded", record), NOW) is None


# --- a closed run looks otherwise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("was", ["failed", "stopped", "lost"])
@pytest.mark.parametrize("status", GOING)
def test_what_rq_has_started_again_is_open_again(status: str, was: str) -> None:
    before = replace(CLOSED, outcome=was)
    assert judge(seen(status, before), NOW) == Reopen(replace(RECORD, requeued=1), before)


NEVER_BEGUN = replace(CLOSED, outcome="lost", sign="queued||", started="")
"""What it was lost as: in no queue, and no worker had started it."""


@pytest.mark.parametrize("status", sorted({*GOING} - {"queued"}))
def test_what_was_lost_before_it_began_and_begins_after_all_is_its_first_attempt(status: str) -> None:
    assert judge(seen(status, NEVER_BEGUN), NOW) == Reopen(RECORD, NEVER_BEGUN)


@pytest.mark.parametrize(("status", "outcome"), [("finished", "succeeded"), ("failed", "failed")])
def test_what_was_lost_before_it_began_and_has_ended_after_all_had_one_attempt(status: str, outcome: str) -> None:
    found = closed(judge(seen(status, NEVER_BEGUN), NOW))
    assert (found.outcome, found.attempts, found.before) == (outcome, 1, NEVER_BEGUN)


def test_a_retry_that_rq_had_left_is_no_requeue() -> None:
    """RQ gives a job back whose worker died, and counts that."""
    record = replace(CLOSED, retries=2, outcome="lost")
    found = judge(seen("queued", record, retries_left="1"), NOW)
    assert found == Reopen(replace(RECORD, retries=2), record)


def test_a_closed_run_that_looks_as_it_did_is_left_alone() -> None:
    assert judge(seen("failed", CLOSED), NOW) is None


@pytest.mark.parametrize("ended_at", ['a "quoted" end', "é", "\\", "\n"])
def test_however_its_end_is_written(ended_at: str) -> None:
    sighting = seen("failed", ended_at=ended_at)
    again = replace(sighting, record=outcomes.kept(closed(judge(sighting, NOW)), sighting, NOW))
    assert judge(again, NOW) is None


def test_a_worker_that_was_given_up_and_finishes_after_all_has_succeeded() -> None:
    lost = replace(CLOSED, outcome="lost", sign=f"started|{STARTED}|", ended="")
    found = closed(judge(seen("finished", lost), NOW))
    assert (found.outcome, found.attempts, found.before.outcome) == ("succeeded", 1, "lost")


def test_when_rq_notices_a_loss_as_well_nothing_is_new() -> None:
    lost = replace(CLOSED, outcome="lost", sign=f"started|{STARTED}|", ended="")
    abandoned = raised("Moved to FailedJobRegistry, due to AbandonedJobError, at x")
    assert judge(seen("failed", lost, error=abandoned), NOW) == Mark(replace(lost, sign=f"failed|{STARTED}|{ENDED}"))


@pytest.mark.parametrize("was", ["failed", "stopped", "lost"])
def test_to_cancel_what_has_ended_changes_nothing(was: str) -> None:
    before = replace(CLOSED, outcome=was)
    sighting = seen("canceled", before, started_at=STARTED, ended_at=ENDED, alive="")
    assert judge(sighting, NOW) == Mark(replace(before, sign=sighting.sign))


def test_to_cancel_what_was_requeued_is_a_stop() -> None:
    later = {"started_at": "2026-11-16T09:05:00.000000Z", "ended_at": ""}
    found = closed(judge(seen("canceled", CLOSED, **later), NOW))
    assert (found.outcome, found.attempts) == ("stopped", 2)


@pytest.mark.parametrize("words", ["Job was stuck in intermediate queue.", ""])
def test_when_rq_gives_up_a_loss_nothing_is_new(words: str) -> None:
    lost = replace(CLOSED, outcome="lost", sign=f"started|{STARTED}|", ended="")
    sighting = seen("failed", lost, error=raised(words) if words else b"")
    assert judge(sighting, NOW) == Mark(replace(lost, sign=sighting.sign))


def test_a_loss_that_is_a_failure_after_all_is_a_failure() -> None:
    lost = replace(CLOSED, outcome="lost", sign=f"started|{STARTED}|", ended="")
    found = closed(judge(seen("failed", lost, error=raised(TRACEBACK)), NOW))
    assert (found.outcome, found.before.outcome, found.attempts) == ("failed", "lost", 1)


@pytest.mark.parametrize(
    ("status", "outcome"), [("finished", "succeeded"), ("failed", "failed"), ("stopped", "stopped")]
)
def test_a_requeue_that_ended_before_anybody_looked_is_another_attempt(status: str, outcome: str) -> None:
    later = {"started_at": "2026-11-16T09:05:00.000000Z", "ended_at": "2026-11-16T09:05:01.000000Z"}
    found = closed(judge(seen(status, CLOSED, **later), NOW))
    assert (found.outcome, found.attempts, found.before.requeued) == (outcome, 2, 1)
    assert (found.before.outcome, found.before.ended) == ("failed", CLOSED.ended), "which it replaces"


def test_a_retry_that_ended_before_anybody_looked_is_rqs_own() -> None:
    later = {"started_at": "2026-11-16T09:05:00.000000Z", "ended_at": "2026-11-16T09:05:01.000000Z"}
    found = closed(judge(seen("finished", replace(CLOSED, retries=2), retries_left="1", **later), NOW))
    assert (found.attempts, found.before.requeued) == (2, 0)


def test_what_is_watched_is_remembered_as_it_was_closed() -> None:
    sighting = seen("failed", replace(RECORD, retries=2, requeued=1), retries_left="0")
    kept = Record.read(outcomes.kept(closed(judge(sighting, NOW)), sighting, NOW))
    assert kept == replace(CLOSED, retries=2, requeued=1, attempts=4)


def test_an_end_that_nobody_knows_is_remembered_as_when_it_was_closed() -> None:
    """So that it can be told whether a success came after it."""
    marked = replace(RECORD, missing=1, missing_as="started")
    sighting = seen("started", marked, alive="0", timeout="5")
    kept = Record.read(outcomes.kept(closed(judge(sighting, NOW)), sighting, NOW))
    assert kept is not None
    assert (kept.outcome, kept.ended) == ("lost", clock.text(clock.from_ms(NOW)))


def test_what_is_not_watched_is_not_remembered() -> None:
    assert outcomes.kept(closed(judge(seen(), NOW)), seen(), NOW) == ""


# --- the line --------------------------------------------------------------------------------------------------------


def test_the_line_of_a_success_says_no_more_than_there_is() -> None:
    assert outcomes.entry(closed(judge(seen(), NOW)), "job") == {
        "type": "succeeded", "tick": "2026-11-16T09:00:00Z", "job": "job", "started": "2026-11-16T09:00:00.020Z",
        "ended": "2026-11-16T09:00:03.120Z", "duration": 3.1, "worker": "w1", "attempts": 1,
        "waited": 0.016,
    }  # fmt: skip


def test_how_long_it_was_in_its_queue_is_told_of_a_first_try_alone() -> None:
    closing = closed(judge(seen(), NOW))
    assert replace(closing, attempts=2).waited is None
    assert replace(closing, started=None).waited is None
    assert replace(closing, before=replace(RECORD, enqueued="garbage")).waited is None
    assert replace(closing, before=replace(RECORD, enqueued="2026-11-16T09:00:09Z")).waited == 0  # two clocks


def test_a_run_that_somebody_asked_for_has_no_tick() -> None:
    found = closed(judge(seen("failed", replace(RECORD, tick="")), NOW))
    assert outcomes.entry(found, "job")["tick"] is None


@pytest.mark.parametrize("sighting", [case[0] for case in ENDS.values()], ids=list(ENDS))
def test_every_line_is_read_by_the_reader(sighting: Sighting) -> None:
    found = closed(judge(sighting, NOW))
    line = {**outcomes.entry(found, "jöb"), "at": "2026-11-16T09:00:04Z", "beat": "b"}
    entry = ledger.read(json.dumps(line).encode())
    assert isinstance(entry, ledger.Outcome)
    assert (entry.type, entry.job, entry.started, entry.ended) == (found.outcome, "jöb", found.started, found.ended)
    assert (entry.duration, entry.attempts, entry.reason) == (found.duration, found.attempts, found.reason)


def test_what_went_wrong_is_one_line_of_no_more_than_five_hundred_characters() -> None:
    found = closed(judge(seen("failed", error=raised("ValueError: a\n b\t" + "c" * 900)), NOW))
    assert found.words.startswith("ValueError: a b ccc")
    assert len(found.words) == 500


@pytest.mark.parametrize(
    ("error", "words"),
    [({"type": "E", "message": "m"}, "E: m"), ({"type": "E", "message": ""}, "E"), ({"type": "", "message": "m"}, "m")],
)
def test_an_error_in_words(error: dict[str, str], words: str) -> None:
    assert Close("failed", 1, RECORD, error={**error, "traceback": ""}).words == words


# --- hostile ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("garbage", ["", "garbage", "{}", "[1]", '{"schedule":3}', '{"schedule":"a","retries":"x"}'])
@pytest.mark.parametrize("status", ["finished", "failed", "queued", "started", ""])
def test_a_record_that_makes_no_sense_is_forgotten(garbage: str, status: str) -> None:
    assert judge(seen(status, garbage), NOW) == Forget()


texts = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["0", "1", "-1", "nan", "inf", STARTED, ENDED, "9" * 30, "5", "1794819603700-0"]
)
statuses = st.sampled_from([*GOING, "finished", "failed", "stopped", "canceled", "", "exploded"]) | texts
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts, lambda inner: st.lists(inner, max_size=2)
)
remembered = st.dictionaries(st.sampled_from([each.name for each in fields(Record)]), anything).map(
    lambda found: json.dumps({"schedule": "report", **found})
)
blobs = st.binary(max_size=60) | st.sampled_from([returned(Report(success=False)), raised(TRACEBACK)])
plausible = st.sampled_from([RECORD, CLOSED, MARKED, replace(CLOSED, outcome="lost", retries=3)]).map(Record.text)


@given(
    statuses,
    remembered | plausible,
    st.dictionaries(st.sampled_from([each.name for each in fields(Sighting)][4:-2]), texts),
    blobs,
    st.integers(0, 10**14),
)
def test_nothing_that_stands_in_redis_makes_it_raise(
    status: str, record: str, facts: dict[str, Any], blob: bytes, now: int
) -> None:
    sighting = replace(seen(status, record), **facts, value=blob, error=blob)
    found = judge(sighting, now)
    if isinstance(found, Close):
        line = {**outcomes.entry(found, "job"), "at": "2026-11-16T09:00:04Z", "beat": "b"}
        assert ledger.read(json.dumps(line).encode()) is not None
        kept = outcomes.kept(found, sighting, now)
        assert bool(kept) == found.watch
        if kept and not any("\ud800" <= c <= "\udfff" for c in sighting.sign):  # what is no text is not remembered
            assert Record.read(kept) is not None
        assert found.words is not None
    elif isinstance(found, Mark | Reopen):
        assert Record.read(found.record.text()) == found.record
