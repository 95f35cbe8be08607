"""Keep the items of `fire`, `close` and `register` as they were before the scripts got named fields.

A frozen copy, with the scripts beside it: `tests/resilience/script_comparison.py` compares the current scripts with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Item(NamedTuple):
    """One item of `fire`: the decision on a tick, or why there is none."""

    kind: str
    id: str
    rev: str
    tick: str = ""
    due: int = 0
    next: str = ""
    next_due: int = 0
    job: str = ""
    queue: str = ""
    run: bytes = b""
    by: str = ""
    at: str = "back"
    number: int = 0
    error: str = ""
    last: str = ""
    reason: str = ""
    slot: str = ""
    max_runs: int | str = ""
    data: bytes = b""
    why: str = ""
    group: str = ""
    expects: str = ""
    uses: str = ""


class Closing(NamedTuple):
    """One item of `close`: the end of a run, or another change of its record."""

    kind: str
    job: str
    seen: str
    record: str = ""
    sign: str = ""
    id: str = ""
    tick: str = ""
    outcome: str = ""
    entry: str = ""
    was: str = ""
    was_ended: str = ""
    ended: str = ""
    duration: str = ""
    error: str = ""
    ttl: str = ""
    registry: str = ""
    life: str = ""
    group: str = ""
    part: str = ""


class Registration(NamedTuple):
    """One item of `register`: a definition, and the state of the schedule for which it was prepared."""

    id: str
    rev: str
    seen_rev: str
    seen_next: str
    seen_state: str
    state: str
    next: str
    next_due: int
    rule: str
    origin: str
    declared: str
    app: str
    func: str
    version: str
    follows: str
    fields: Mapping[str, str]
    template: Mapping[str, bytes]
