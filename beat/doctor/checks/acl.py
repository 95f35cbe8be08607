"""Judge the rights of this Redis user: too few, or more than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.doctor.facts import Unseen
from beat.doctor.findings import NOTE, OK, PROBLEM, RULE, WARNING, Finding, some, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.doctor.facts import Rights

_RULE = f"{RULE} | redis-cli"


def judge(found: Rights) -> Iterator[Finding]:
    """Yield findings about missing rights, then about unneeded ones."""
    if isinstance(found.lacks, Unseen):
        yield unseen("rights", "lacking", found.lacks.right, f"what user {found.user} may do")
        return
    if found.lacks:
        what = f"user {found.user} may not do all that beat needs: {some(found.lacks)}"
        yield Finding("rights", "lacking", PROBLEM, what, _RULE)
    elif found.lacks_asking:
        what = f"user {found.user} may not do all that the command line asks: {some(found.lacks_asking)}"
        yield Finding("rights", "lacking", WARNING, what, _RULE)
    else:
        yield Finding("rights", "lacking", OK, f"user {found.user} may do all that beat needs")
    if found.excess:
        what = f"user {found.user} has more rights than it needs: {', '.join(found.excess)}"
        yield Finding("rights", "excess", NOTE, what, _RULE)
    else:
        yield Finding("rights", "excess", OK, f"user {found.user} may do none of: {', '.join(found.probed)}")
