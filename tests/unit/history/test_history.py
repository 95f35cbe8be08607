"""One line for each fired tick with what became of it, in whatever order and however often the ledger tells of it."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.history.history import Change, Fired, Line, Passed, Waits, assemble, job_of
from beat.history.ledger import OUTCOMES, Changed, Enqueued, Entry, Error, Outcome, Reopened, Skipped, Waiting
from tests.unit.history.test_ledger import entries as any_entries

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RULE = {"cron": "* * * * *", "tz": "UTC"}


def enqueued(n: int, **other: Any) -> Enqueued:
    tick = NINE + n * MINUTE
    made = Enqueued(tick, f"job_{n}", "scheduler", 4, n + 1, tick + timedelta(milliseconds=4), "web-1")
    return replace(made, **other)


def ended(n: int, kind: str = "succeeded", **other: Any) -> Outcome:
    tick = NINE + n * MINUTE
    made = Outcome(
        type=kind, tick=tick, job=f"job_{n}", started=tick + 2 * SECOND, ended=tick + 5 * SECOND, duration=3.0,
        worker="w1", attempts=1, at=tick + 6 * SECOND, beat="web-2",
    )  # fmt: skip
    return replace(made, **other)


def reopened(n: int, **other: Any) -> Reopened:
    tick = NINE + n * MINUTE
    return replace(Reopened(tick, f"job_{n}", "failed", 1, tick + 20 * SECOND, "web-3"), **other)


def runs(*newest_first: Entry) -> list[Fired]:
    return [line for line in assemble("report", newest_first) if isinstance(line, Fired)]


def test_a_run_is_one_line_where_it_was_enqueued() -> None:
    lines = assemble("report", [ended(0), enqueued(1), ended(2), enqueued(2), enqueued(0)])
    assert [line.job_id for line in lines if isinstance(line, Fired)] == ["job_1", "job_2", "job_0"]


def test_a_run_tells_how_it_was_enqueued_and_how_it_ended() -> None:
    error = Error("KeyError", "'x'", "KeyError: 'x'")
    outcome = ended(
        0, "failed", error=error, reason="why", reported=True, message="said", details={"a": 1}, attempts=2
    )  # fmt: skip
    assert runs(outcome, enqueued(0)) == [
        Fired(
            schedule_id="report", tick=NINE, job_id="job_0", at=NINE + timedelta(milliseconds=4),
            triggered_by="scheduler", enqueued_at=NINE + timedelta(milliseconds=4), late_ms=4, number=1, beat="web-1",
            state="failed", started_at=NINE + 2 * SECOND, ended_at=NINE + 5 * SECOND, duration=3.0, worker="w1",
            attempts=2, error=error, reason="why", reported=True, message="said", details={"a": 1},
            closed_at=NINE + 6 * SECOND,
        )
    ]  # fmt: skip


def test_a_run_without_an_outcome_is_open() -> None:
    (run,) = runs(enqueued(0))
    assert (run.state, run.closed_at, run.started_at, run.attempts, run.wait) == ("open", None, None, 0, None)


@pytest.mark.parametrize("kind", OUTCOMES)
def test_an_outcome_is_the_state(kind: str) -> None:
    (run,) = runs(ended(0, kind), enqueued(0))
    assert run.state == kind


def test_a_run_that_was_started_again_is_open_again() -> None:
    (run,) = runs(reopened(0, attempts=1), ended(0, "failed", error=Error("a", "b", "c")), enqueued(0))
    assert (run.state, run.attempts, run.error, run.ended_at, run.closed_at) == ("open", 1, None, None, None)
    assert run.number == 1


def test_a_run_that_was_started_again_ends_as_it_ended_last() -> None:
    (run,) = runs(ended(0, attempts=2), reopened(0), ended(0, "failed"), enqueued(0))
    assert (run.state, run.attempts) == ("succeeded", 2)


def test_a_run_may_be_started_again_many_times() -> None:
    again = [entry for _ in range(5) for entry in (ended(0, "failed"), reopened(0))]
    (run,) = runs(ended(0, "lost"), *again[1:], ended(0, "failed"), enqueued(0))
    assert run.state == "lost"


def test_an_outcome_whose_verdict_was_trimmed_is_a_run_all_the_same() -> None:
    (run,) = runs(ended(0, attempts=1))
    assert (run.tick, run.state, run.duration, run.beat, run.at) == (NINE, "succeeded", 3.0, "web-2", NINE + 6 * SECOND)
    assert (run.enqueued_at, run.late_ms, run.number, run.triggered_by, run.wait) == (None, None, None, "", None)


def test_a_run_whose_verdict_was_trimmed_stands_where_its_newest_line_does() -> None:
    lines = runs(ended(3), reopened(0), enqueued(3), ended(0, "failed"))
    assert [(run.job_id, run.state) for run in lines] == [("job_0", "open"), ("job_3", "succeeded")]


@pytest.mark.parametrize(
    "newest_first",
    [
        [enqueued(0), enqueued(0)],
        [ended(0), ended(0), enqueued(0)],
        [ended(0), enqueued(0), ended(0), enqueued(0)],
        [enqueued(0), ended(0)],
        [ended(0), ended(0)],
        [reopened(0), reopened(0)],
    ],
    ids=lambda entries: "-".join(type(entry).__name__ for entry in entries),
)
def test_a_job_is_one_line_however_often_it_is_told_of(newest_first: list[Entry]) -> None:
    (run,) = runs(*newest_first)
    assert run.state == next(
        (entry.type for entry in newest_first if isinstance(entry, Outcome)), "open"
    )  # fmt: skip


def test_an_outcome_that_stands_before_its_verdict_counts() -> None:
    (run,) = runs(enqueued(0), ended(0, "failed"))
    assert (run.state, run.number) == ("failed", 1)


def test_skipped_stretches_and_changes_are_lines_of_their_own() -> None:
    at = NINE + 5 * MINUTE
    skipped = Skipped(NINE, NINE + 4 * MINUTE, 5, "misfire", 5, at, "web-1")
    changed = Changed("moved", "a2", RULE, {"every": "1h", "tz": "UTC"}, NINE, NINE + MINUTE, at, "web-1")
    assert assemble("report", [skipped, changed]) == [
        Passed(
            schedule_id="report", first=NINE, last=NINE + 4 * MINUTE, count=5, reason="misfire", at=at, beat="web-1"
        ),
        Change(
            schedule_id="report", type="moved", rev="a2", rule=RULE, was={"every": "1h", "tz": "UTC"}, before=NINE,
            next=NINE + MINUTE, at=at, beat="web-1",
        ),
    ]  # fmt: skip


def waiting(n: int, **other: Any) -> Waiting:
    tick = NINE + n * MINUTE
    return replace(Waiting(tick, f"job_{n}", f"job_{n - 1}", tick + timedelta(milliseconds=4), "web-1"), **other)


def test_a_tick_that_waits_is_a_line_of_its_own() -> None:
    (line,) = assemble("report", [waiting(1)])
    assert line == Waits(
        schedule_id="report", tick=NINE + MINUTE, job_id="job_1", behind="job_0", at=waiting(1).at, beat="web-1"
    )


def test_a_tick_that_had_waited_is_one_line_which_says_so() -> None:
    (run,) = runs(ended(1), enqueued(1, at=NINE + 3 * MINUTE), waiting(1))
    assert run.waited
    assert (run.waited.at, run.waited.behind, run.enqueued_at) == (waiting(1).at, "job_0", NINE + 3 * MINUTE)
    assert len(assemble("report", [enqueued(1), waiting(1)])) == 1


def test_a_tick_that_had_waited_in_vain_is_one_line_which_says_so() -> None:
    tick = NINE + MINUTE
    skipped = Skipped(tick, tick, 1, "replaced", 1, NINE + 2 * MINUTE, "web-1", "job_2")
    (line,) = assemble("report", [skipped, waiting(1)])
    assert isinstance(line, Passed)
    assert line.waited
    assert (line.behind, line.waited.job_id, line.waited.behind) == ("job_2", "job_1", "job_0")


def test_a_tick_that_did_not_wait_says_nothing_of_it() -> None:
    (run,) = runs(enqueued(2), waiting(1))
    assert run.waited is None


def test_the_wait_is_the_time_in_the_queue() -> None:
    (run,) = runs(ended(0), enqueued(0, at=NINE))
    assert run.wait == 2.0


def test_nobody_waits_less_than_no_time() -> None:
    (run,) = runs(ended(0, started=NINE - SECOND), enqueued(0, at=NINE))
    assert run.wait == 0.0, "the clocks of two machines differ"


def test_the_wait_of_a_run_that_was_tried_again_is_not_known() -> None:
    (run,) = runs(ended(0, attempts=2), enqueued(0, at=NINE))
    assert run.wait is None, "RQ keeps only the last start"


def test_a_ledger_of_nothing_is_nothing() -> None:
    assert assemble("report", []) == []


@given(st.lists(any_entries, max_size=12))
def test_any_entries_are_put_together(entries: list[Entry]) -> None:
    lines: list[Line] = assemble("report", entries)
    jobs = [line.job_id for line in lines if isinstance(line, Fired)]
    told = {job_of(entry) for entry in entries if isinstance(entry, Enqueued | Outcome | Reopened)}
    assert sorted(jobs) == sorted(told), "one line for each job"
    others = [entry for entry in entries if isinstance(entry, Skipped | Changed)]
    assert [line.at for line in lines if not isinstance(line, Fired | Waits)] == [entry.at for entry in others]
    decided = {entry.tick for entry in entries if isinstance(entry, Skipped)}
    waiting = {
        entry.tick for entry in entries if isinstance(entry, Waiting) and entry.tick not in decided
        and not any(isinstance(other, Enqueued) and other.job == entry.job for other in entries)
    }  # fmt: skip
    shown = [line.tick for line in lines if isinstance(line, Waits)]
    assert len(shown) == len(set(shown))
    assert set(shown) <= waiting, "what has its verdict waits no longer"


@given(st.permutations([enqueued(n) for n in range(3)] + [ended(n) for n in range(3)]))
def test_the_order_of_lines_changes_nothing_but_the_order(entries: list[Entry]) -> None:
    assert sorted(runs(*entries), key=lambda run: run.at) == [
        *(runs(ended(n), enqueued(n))[0] for n in range(3)),
    ]  # fmt: skip


def seconds_for(number: int) -> float:
    newest_first = [entry for n in reversed(range(number // 2)) for entry in (ended(n), enqueued(n))]
    began = time.process_time()
    assert len(assemble("report", newest_first)) == number // 2
    return time.process_time() - began


def test_a_long_ledger_is_put_together_in_linear_time() -> None:
    few, many = min(seconds_for(2_000) for _ in range(3)), seconds_for(20_000)
    assert many < 10 * few * 5, "ten times as many lines; not a hundred times as long"


# --- ticks that went to all of their queues ---------------------------------------------------------------------------


def part(n: int, shard: int, kind: str = "succeeded", **other: Any) -> Outcome:
    """Begun after 2 s and one more for each part before it, ended 3 s later."""
    later = shard * SECOND
    begun = {"started": NINE + n * MINUTE + 2 * SECOND + later, "ended": NINE + n * MINUTE + 5 * SECOND + later}
    return ended(n, kind, **{"job": f"job_{n}_s{shard}", "of": f"job_{n}", "shard": shard, **begun, **other})


def everywhere(n: int, number: int = 3) -> Enqueued:
    return enqueued(n, shards=number, why="broadcast")


def test_a_tick_that_went_to_all_queues_is_one_line_with_its_parts() -> None:
    (run,) = runs(part(0, 2), part(0, 0), part(0, 1), everywhere(0))
    assert (run.job_id, run.state, run.shards, run.why) == ("job_0", "succeeded", 3, "broadcast")
    assert [(each.job_id, each.shard, each.state) for each in run.parts] == [
        (f"job_0_s{n}", n, "succeeded") for n in range(3)
    ]
    assert (run.started_at, run.ended_at, run.duration) == (NINE + 2 * SECOND, NINE + 7 * SECOND, 5.0)
    assert run.closed_at == NINE + 6 * SECOND


def test_it_is_open_while_one_part_goes_on() -> None:
    (run,) = runs(part(0, 2, "failed"), part(0, 0), everywhere(0))
    assert (run.state, run.ended_at, run.duration, run.closed_at) == ("open", None, None, None)
    assert [each.state for each in run.parts] == ["succeeded", "open", "failed"]


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (["succeeded", "succeeded", "stopped"], "stopped"),
        (["stopped", "lost", "succeeded"], "lost"),
        (["lost", "failed", "stopped"], "failed"),
    ],
)
def test_it_ends_as_its_worst_part_did(states: list[str], whole: str) -> None:
    (run,) = runs(*(part(0, n, kind) for n, kind in enumerate(states)), everywhere(0))
    assert run.state == whole


def test_its_error_is_that_of_the_part_that_failed_first() -> None:
    first, second = Error("KeyError", "first", ""), Error("KeyError", "second", "")
    later = part(0, 0, "failed", error=second, ended=NINE + MINUTE)
    (run,) = runs(later, part(0, 1, "failed", error=first), part(0, 2), everywhere(0))
    assert run.error == first


def test_a_part_that_was_started_again_opens_the_tick_again() -> None:
    again = reopened(0, job="job_0_s1", of="job_0", shard=1)
    (run,) = runs(again, part(0, 0), part(0, 1, "failed"), everywhere(0, 2))
    assert (run.state, [each.state for each in run.parts]) == ("open", ["succeeded", "open"])


def test_parts_whose_verdict_was_trimmed_are_one_line_all_the_same() -> None:
    (run,) = runs(part(0, 1), part(0, 0, "failed"))
    assert (run.job_id, run.state, len(run.parts), run.enqueued_at) == ("job_0", "failed", 2, None)


def test_a_number_of_parts_that_nobody_wrote_does_no_harm() -> None:
    for number in (10**14, -3):
        (run,) = runs(part(0, 0), everywhere(0, number))
        assert len(run.parts) <= 100


def test_a_run_says_where_it_went_and_whom_it_follows() -> None:
    (run,) = runs(enqueued(0, queue="fast", why="shortest: 3 in line", after="beat_extract_1", by="follows"))
    assert (run.queue, run.why, run.after, run.parts) == ("fast", "shortest: 3 in line", "beat_extract_1", ())
    passed = Skipped(NINE, NINE, 1, "dependency", 1, NINE, "web-1", why="a has never succeeded", after="beat_b_1")
    (line,) = assemble("report", [passed])
    assert isinstance(line, Passed)
    assert (line.why, line.after) == ("a has never succeeded", "beat_b_1")


def test_a_tick_that_waits_for_its_group_says_which() -> None:
    (line,) = assemble("report", [waiting(1, group="reports")])
    assert isinstance(line, Waits)
    assert line.group == "reports"
