"""Judge what live schedulers declare: whether two of them contradict each other, and what none of them declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.config import shell_quoting
from beat.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding, counted, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.doctor.facts import Declarations


def judge(found: Declarations) -> Iterator[Finding]:
    """Yield findings about conflicts and undeclared schedules; yield none without a live scheduler."""
    if not found.announcers:
        return
    for each in found.conflicts:
        yield Finding("schedules", "conflict", PROBLEM, each.words, each.remedy)
    for words, remedy in found.unrelated:
        yield Finding("schedules", "unrelated", WARNING, words, remedy)
    if not found.conflicts and not found.unrelated:
        yield Finding("schedules", "conflict", OK, "no two live schedulers contradict each other")
    if found.undeclared:
        cases = [f"{each.id} ({each.words})" if each.words else each.id for each in found.undeclared]
        what = f"{counted(len(cases), 'schedule')} of a running application fire, and no live scheduler declares them"
        quoted = shell_quoting.arguments(found.undeclared[0].id)
        remedy = f"start a scheduler that loads their code, or: beat remove {quoted}"
        yield Finding("schedules", "undeclared", NOTE, f"{what}: {some(cases)}", remedy)
