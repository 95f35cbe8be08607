"""Describe the audit log in words, with similar actions in one row."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from beat.client.describe import changes
from beat.history.history import Action, Change, Fired
from beat.history.ledger import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from beat.client.audit_log import Deed
    from beat.timing.zones import Zone

_VERBS = {"manual": "triggered", "backfill": "backfilled", "deferred": "moved a tick of"}


class Done(NamedTuple):
    """An action of an operator or a scheduler, on one schedule or on several at once."""

    at: datetime
    """The time of the newest action."""
    by: str
    verb: str
    ids: tuple[str, ...]
    """Newest first."""
    words: str
    """Further details; for several actions, only those that all of them share."""
    job: str = ""
    """The job of a requested run."""


def told(deeds: Iterable[Deed], where: Zone) -> Iterator[Done]:
    """Yield the actions; combine similar ones that follow each other."""
    for (by, kind, reason), group in itertools.groupby(deeds, _alike):
        several = list(group)
        ids = tuple(dict.fromkeys(each.schedule_id for each in several))
        words = _words(several[0], where) if len(several) == 1 else reason
        line = several[0].line
        job = line.job_id if len(several) == 1 and isinstance(line, Fired) else ""
        yield Done(several[0].at, by, _VERBS.get(kind, kind), ids, words, job)


def _alike(deed: Deed) -> tuple[str, str, str]:
    reason = deed.line.reason if deed.type in ACTIONS and isinstance(deed.line, Action) else ""
    return deed.by, deed.type, reason


def _words(deed: Deed, where: Zone) -> str:
    match deed.line:
        case Action():
            return changes.acted(deed.line, where)
        case Change():
            return changes.changed(deed.line, where)
    return ""
