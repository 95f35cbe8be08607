"""Judge the schedules: which are broken, late or failing, and which an operator has stopped or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.config import shell_quoting
from beat.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding, counted, some, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.doctor.facts import Case, Census, Index

_PROBLEMS = 5
"""The largest number of problems in workers' code that get a finding each."""
STATES = ("active", "paused", "disabled", "finished", "retired", "broken")


class _Kind(NamedTuple):
    level: str
    what: str
    remedy: str
    """The command that helps with the first schedule of this kind."""
    options: str | None = None
    """The options of the command after the schedule's id; None if the command takes no id."""


_KINDS = {
    "broken": _Kind(PROBLEM, "broken, and do not fire", "beat show", ""),
    "failing": _Kind(WARNING, "failing", "beat history", "--failed -n 1 -v"),
    "unannounced": _Kind(
        NOTE, "held, for no running scheduler declares them; they are about to be retired", "beat run app.tasks"
    ),
    "overridden": _Kind(NOTE, "overridden by an operator", "beat reschedule", "--reset"),
    "paused": _Kind(NOTE, "paused", "beat resume", ""),
    "retired": _Kind(NOTE, "retired, for their code is gone", "beat remove --retired"),
    "unknown": _Kind(WARNING, "in a state that this version does not know", "beat show", ""),
}


def judge(found: Census) -> Iterator[Finding]:
    """Yield all findings about the schedules."""
    yield from numbers(found)
    yield from late(found)
    for kind in _KINDS:
        yield from of_a_kind(found, kind)
    yield from unfit(found)


def unfit(found: Census) -> Iterator[Finding]:
    """Report the schedules whose function the workers cannot call, with a finding for each problem."""
    problems: dict[tuple[str, str], list[str]] = {}
    for each in found.unfit:
        problems.setdefault((each.problem, each.remedy), []).append(each.id)
    for (problem, remedy), ids in list(problems.items())[:_PROBLEMS]:
        fail = "schedules fail" if len(ids) > 1 else "schedule fails"
        what = f"{len(ids):,} {fail} before the function begins: {some(ids)}: {problem.rstrip('.')}"
        yield Finding("schedules", "code", PROBLEM, what, remedy)
    if (more := len(problems) - _PROBLEMS) > 0:
        what = f"{counted(more, 'other problem')} of this kind"
        yield Finding("schedules", "code", PROBLEM, what, "beat history --failed")


def numbers(found: Census) -> Iterator[Finding]:
    """Report how many schedules there are in each state."""
    if not found.total:
        yield Finding("schedules", "number", NOTE, "Redis knows no schedule", "beat run app.tasks")
        return
    states = ", ".join(f"{found.states[state]:,} {state}" for state in STATES if found.states.get(state))
    yield Finding("schedules", "number", OK, f"{counted(found.total, 'schedule')}: {states}")


def late(found: Census) -> Iterator[Finding]:
    """Report schedules that are overdue by more than `misfire_after` and that no scheduler has locked."""
    if not found.total:
        return
    if not found.late:
        yield Finding("schedules", "late", OK, "none is late")
        return
    words = [f"{each.id} by {span(each.seconds)}{f' ({each.error})' if each.error else ''}" for each in found.latest]
    what = f"{counted(found.late, 'schedule')} late: {some(words, found.late)}"
    yield Finding("schedules", "late", PROBLEM, what, _remedy(_KINDS["broken"], found.latest[0].id))


def of_a_kind(found: Census, kind: str) -> Iterator[Finding]:
    """Report the schedules of a kind; without any, yield an OK for the kinds that are problems or warnings."""
    number, about = found.kinds.get(kind, 0), _KINDS[kind]
    if not number:
        if about.level in {PROBLEM, WARNING} and kind != "unknown" and found.total:
            yield Finding("schedules", kind, OK, f"none is {kind}")
        return
    cases = found.cases.get(kind, ())
    listed = some([_worded(each) for each in cases], number)
    what = f"{counted(number, 'schedule')} {about.what}: {listed}"
    yield Finding("schedules", kind, about.level, what, _remedy(about, cases[0].id if cases else "ID"))


def index(found: Index) -> Iterator[Finding]:
    """Report where the indexes disagree with the hashes; a live scheduler rebuilds them once a minute."""
    wrong = {
        "without a hash": found.no_hash,
        "not indexed": found.no_entry,
        "indexed and not active": found.not_active,
        "indexed for another time": found.elsewhere,
        "not in the set of their state": found.unlisted,
    }
    if not any(wrong.values()):
        yield Finding("state", "index", OK, f"the index agrees with {counted(found.looked, 'schedule')}")
        return
    words = [f"{len(ids):,} {what} ({some(ids)})" for what, ids in wrong.items() if ids]
    remedy = "a running scheduler corrects it within two minutes: beat run app.tasks"
    yield Finding("state", "index", WARNING, f"the index does not agree: {'; '.join(words)}", remedy)


def _remedy(kind: _Kind, schedule_id: str) -> str:
    if kind.options is None:
        return kind.remedy
    name = shell_quoting.arguments(schedule_id)
    words = (kind.remedy, kind.options, name) if name.startswith("-") else (kind.remedy, name, kind.options)
    return " ".join(filter(None, words))


def _worded(case: Case) -> str:
    return f"{case.id} ({case.words})" if case.words else case.id
