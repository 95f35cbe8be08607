"""What the nemesis of the ledger believes, row by row: what is certain, and what RQ leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from tests.resilience.ledger_truth import Attempt, Harm, allowed, attempts_of, faults, is_counted
from tests.support.rq_worker import Step

OPENED = "was opened when it was open"
HORSE, WORKER, OTHER = 11, 10, 12
JOB, MAY_AGAIN, SLOW, SILENT = (f"beat_{kind}_1" for kind in ("naps", "naps-and-may-again", "too-slow", "slips-away"))


def attempt(word: str, start: float = 1, until: float = 2, pid: int = HORSE) -> Attempt:
    return Attempt(pid, WORKER, start, word, until)


@pytest.mark.parametrize(
    ("job", "attempts", "killed", "deeds", "expected"),
    [
        (JOB, [attempt("end")], set(), set(), {"succeeded"}),
        (JOB, [attempt("raise")], set(), set(), {"failed"}),
        (JOB, [attempt("told")], set(), set(), {"failed"}),
        (JOB, [attempt("end")], {WORKER}, set(), {"succeeded"}),  # the work-horse goes on
        (JOB, [attempt("end")], {HORSE}, set(), {"succeeded", "failed", "lost"}),
        (JOB, [attempt("")], {HORSE}, set(), {"failed", "lost"}),
        (JOB, [attempt("")], {WORKER, HORSE}, set(), {"failed", "lost"}),
        (JOB, [attempt("")], set(), {"stopped"}, {"stopped"}),
        (JOB, [attempt("")], set(), set(), set()),  # nothing can explain it
        (SLOW, [attempt("")], set(), set(), {"failed"}),
        (SILENT, [attempt("")], set(), set(), {"failed", "lost"}),
        (JOB, [], set(), {"popped"}, {"lost"}),
        (JOB, [], set(), {"cancelled"}, {"stopped", "failed", "lost"}),
        (JOB, [], set(), set(), {"failed", "lost"}),
        (MAY_AGAIN, [attempt("raise"), attempt("end", 3, 4, OTHER)], set(), set(), {"succeeded"}),
        (MAY_AGAIN, [attempt(""), attempt("end", 3, 4, OTHER)], {HORSE}, set(), {"succeeded"}),
        (JOB, [attempt("raise"), attempt("raise", 3, 4, OTHER)], set(), {"requeued"}, {"failed", "lost"}),
        (MAY_AGAIN, [attempt("raise", 1, 5), attempt("end", 3, 4, OTHER)], set(), set(), {"succeeded", "failed"}),
    ],
)
def test_what_a_run_may_be(
    job: str, attempts: list[Attempt], killed: set[int], deeds: set[str], expected: set[str]
) -> None:
    harm = Harm(killed)
    harm.deeds[job] |= deeds
    assert allowed(job, attempts, harm) == expected


def test_a_worker_that_went_on_to_another_job_had_told_rq() -> None:
    once = [attempt("end", start=1)]
    assert allowed(JOB, once, Harm({HORSE}, last={HORSE: 1})) == {"succeeded", "failed", "lost"}
    assert allowed(JOB, once, Harm({HORSE}, last={HORSE: 5})) == {"succeeded"}


def test_the_words_of_two_attempts_at_once_are_kept_apart() -> None:
    log = [
        Step(JOB, "start", HORSE, WORKER, 1),
        Step(JOB, "start", OTHER, WORKER, 2),
        Step(JOB, "end", HORSE, WORKER, 3),
    ]
    assert attempts_of(log) == [attempt("end", 1, 3), attempt("", 2, 2, OTHER)]


def line(kind: str, **changes: Any) -> dict[str, Any]:
    return {"type": kind, "started": "1", "ended": "2", "attempts": 1, **changes}


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([line("succeeded")], []),
        ([line("failed"), line("reopened"), line("succeeded", attempts=2)], []),
        ([line("failed"), line("succeeded", started="3")], []),
        ([], ["may be ['succeeded'], and is []"]),
        ([line("failed")], ["may be ['succeeded'], and is ['failed']"]),
        ([line("failed"), line("reopened")], ["may be ['succeeded'], and is ['reopened']"]),
        ([line("reopened"), line("succeeded")], [OPENED]),
        ([line("lost"), line("reopened"), line("reopened", attempts=2), line("succeeded")], [OPENED]),
        ([line("succeeded"), line("succeeded")], ["was closed twice"]),
    ],
)
def test_what_is_wrong_with_lines(lines: list[dict[str, Any]], wrong: list[str]) -> None:
    assert list(faults(lines, {"succeeded"})) == wrong


def test_attempts_are_counted_unless_somebody_may_have_taken_one_to_the_grave() -> None:
    once = [attempt("end")]
    assert is_counted(JOB, 1, once, Harm())
    assert not is_counted(JOB, 2, once, Harm())
    assert is_counted(MAY_AGAIN, 2, once, Harm())
    assert not is_counted(MAY_AGAIN, 0, once, Harm())
    assert is_counted(JOB, 2, once, Harm({WORKER}))
