"""What the ledger must say of a run, by the log that the jobs wrote and by what was done to them.

RQ leaves some of it open, and only that: whoever kills a job after its last word cannot know whether RQ had written the
result; a run whose worker died is failed if RQ noticed first, and lost if beat did; a worker that is killed with a job
in its hand, before the job has said a word, takes it to its grave. Everything else is certain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.resilience.ledger_tasks import KINDS
from tests.resilience.outcomes.ledgers import schedule_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.resilience.outcomes.ledgers import Ledgers
    from tests.support.rq_worker import Step, Steps

FINAL = {"end": "succeeded", "raise": "failed", "told": "failed"}
"""The last word of an attempt → what the run is then."""
DEEDS = {"stopped": "stopped", "cancelled": "stopped", "deleted": "lost", "popped": "lost"}
"""What an operator may do to a run → what that may make of it."""
BY_ITSELF = {"too-slow": {"failed"}, "leaves": {"failed"}, "slips-away": {"failed", "lost"}}
"""The kinds that end without a word."""


@dataclass
class Harm:
    """What was done: which processes were killed, and what befell which job."""

    killed: set[int] = field(default_factory=set)
    deeds: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    last: dict[int, float] = field(default_factory=dict)
    """When each process, or one that it had started, began with a job for the last time."""


@dataclass(frozen=True)
class Attempt:
    """One start of a job, and its last word; nothing if it had none."""

    pid: int
    parent: int
    start: float
    word: str
    until: float
    """When it said the last that is known of it."""

    def ended_with(self, pid: int, harm: Harm) -> bool:
        """Whether that process was killed, and not long after: before it began with anything else."""
        return pid in harm.killed and harm.last.get(pid, 0) <= self.start


def attempts_of(steps: Iterable[Step]) -> list[Attempt]:
    """The attempts of one job, in the order of their starts: one process is at one attempt at a time."""
    found: list[Attempt] = []
    for step in steps:
        if step.word == "start":
            found.append(Attempt(step.pid, step.parent, step.at, "", step.at))
            continue
        at = max(i for i, each in enumerate(found) if each.pid == step.pid)
        found[at] = replace(found[at], word=step.word, until=step.at)
    return found


def allowed(job: str, attempts: list[Attempt], harm: Harm) -> set[str]:
    """The outcomes that the run may have; one if it is certain."""
    kind, deeds = schedule_of(job), harm.deeds[job]
    by_others = {DEEDS[deed] for deed in deeds if deed in DEEDS}
    if not attempts:  # popped by nobody else; or taken to the grave, perhaps
        return {"lost"} if deeds == {"popped"} else by_others | {"failed", "lost"}
    last = attempts[-1]
    found = _of(kind, last, harm) | by_others
    for each in attempts[:-1]:
        if each.until >= last.start:  # RQ let two attempts go on at once: the later result counts
            found |= _of(kind, each, harm)
        elif each.word == "end" and not each.ended_with(each.pid, harm):
            found.add("succeeded")  # RQ had it in its queue twice
    # The next attempt may have been taken to the grave, before it said a word; of one that was stopped, RQ says failed.
    if "retry" in KINDS[kind][2] or "requeued" in deeds:
        found |= {"lost"} if found == {"failed"} else set()
    if {"requeued", "stopped"} <= deeds and found == {"stopped"}:
        found |= {"failed", "lost"}
    return found


def _of(kind: str, attempt: Attempt, harm: Harm) -> set[str]:
    was_killed, is_orphan = (attempt.ended_with(pid, harm) for pid in (attempt.pid, attempt.parent))
    if attempt.word:
        return {FINAL[attempt.word]} | ({"failed", "lost"} if was_killed else set())
    if was_killed:
        return {"failed", "lost"}
    if kind in BY_ITSELF:
        return BY_ITSELF[kind] | ({"lost"} if is_orphan else set())
    return set()  # it ended without a word, and nobody knows why: only a deed can explain it


def is_counted(job: str, told: int, attempts: list[Attempt], harm: Harm) -> bool:
    """Whether there were so many attempts, as far as can be known of a run to which nothing was done that is known.

    Its worker may have died before it said a word; RQ counts that attempt if it tries again.
    """
    touched = harm.deeds[job] or any(each.ended_with(pid, harm) for each in attempts for pid in (each.pid, each.parent))
    if touched or not attempts:
        return True
    return told >= len(attempts) if "retry" in KINDS[schedule_of(job)][2] else told == len(attempts)


# --- the ledger beside it --------------------------------------------------------------------------------------------


def compare(ledgers: Ledgers, steps: Steps, harm: Harm) -> str:
    """Every run has an outcome that it may have, and is counted as that; fails with all that is not so."""
    said: defaultdict[str, list[Step]] = defaultdict(list)
    for step in steps.all():
        said[step.job].append(step)
        if step.word == "start":
            harm.last |= {step.pid: step.at, step.parent: step.at}
    wrong: list[str] = []
    ends, certain = Counter[str](), 0
    for schedule_id in KINDS:
        book = ledgers.book(schedule_id)
        fired = Counter(line["job"] for line in book if line["type"] == "enqueued")
        wrong += [f"{job} was fired {n} times" for job, n in fired.items() if n > 1]
        newest: Counter[str] = Counter()
        for job in fired:
            lines, attempts = [line for line in book if line.get("job") == job][1:], attempts_of(said[job])
            may = allowed(job, attempts, harm)
            newest[lines[-1]["type"] if lines else "open"] += 1
            certain += len(may) == 1
            wrong += [f"{job} {w}; {attempts}, {harm.deeds[job]}: {lines}" for w in faults(lines, may)]
            if lines and not is_counted(job, lines[-1]["attempts"], attempts, harm):
                wrong.append(f"{job} had {len(attempts)} attempts: {lines}")
        ends += newest
        wrong += miscounted(ledgers, schedule_id, newest)
    assert certain > ends.total() / 2, f"of {ends.total()} runs only {certain} could have but one outcome"
    assert not wrong, f"{len(wrong)} of {ends.total()} runs are not told as they were:\n" + "\n".join(wrong)
    return f"{ends.total()} runs, of which {certain} could have but one outcome: {dict(ends)}, all as the jobs say"


def faults(lines: list[dict[str, Any]], may: set[str]) -> Iterator[str]:
    """What is wrong with the lines about one run."""
    types = [line["type"] for line in lines]
    if not types or types[-1] not in may:
        yield f"may be {sorted(may)}, and is {types[-1:]}"
    if types[:1] == ["reopened"] or any(pair == ("reopened", "reopened") for pair in pairwise(types)):
        yield "was opened when it was open"
    closed = [(line["type"], line.get("started"), line.get("ended"), line["attempts"]) for line in lines]
    if any(one == other for one, other in pairwise(closed)):
        yield "was closed twice"


def miscounted(ledgers: Ledgers, schedule_id: str, newest: Counter[str]) -> Iterator[str]:
    """Which counters do not agree with the ledger."""
    counts = {
        "run": newest.total(),
        "success": newest["succeeded"],
        "failure": newest["failed"] + newest["lost"],
        "stopped": newest["stopped"],
    }
    for name, n in counts.items():
        if ledgers.count(schedule_id, name) != n:
            yield f"{schedule_id}: {name}_count is {ledgers.count(schedule_id, name)}, and the ledger has {n}"
