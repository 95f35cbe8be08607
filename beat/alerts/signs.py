"""What a notice of the outbox means to the rules: a sign of trouble, or that it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock
from beat.alerts.incidents import Sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.events.notice import Notice


def of(notice: Notice) -> Sign | None:
    """The sign that a notice gives; None if it gives none."""
    match notice.type:
        case "failed" | "lost":
            return _of_run("trouble", notice.type, notice)
        case "succeeded":
            return _of_run("well", "failed", notice)
        case "reopened" if notice.entry.get("was") in {"failed", "lost"}:
            return _of_run("undone", "failed", notice)
        case "removed" | "retired":
            return _of_run("gone", "failed", notice)
        case "no_worker" if queue := _word(notice.entry, "queue"):
            return Sign("trouble", "no_worker", queue, notice.id, notice.at)
        case "worker_back" if queue := _word(notice.entry, "queue"):
            return Sign("well", "no_worker", queue, notice.id, notice.at)
    return None


def _of_run(kind: Any, event: str, notice: Notice) -> Sign | None:
    if not notice.schedule_id:
        return None
    return Sign(
        kind,
        event,
        notice.schedule_id,
        notice.id,
        clock.found(_word(notice.entry, "ended")) or notice.at,
        job=_word(notice.entry, "of") or notice.job_id or "",
        tick="" if notice.tick is None else clock.text(notice.tick),
        error=_error(notice.entry.get("error")),
    )


def _error(found: Any) -> str:
    """`KeyError: no such user`, on one line."""
    if isinstance(found, dict):
        parts = (found.get("type"), found.get("message"))
        found = ": ".join(str(each) for each in parts if each)
    return " ".join(str(found or "").split())


def _word(entry: Mapping[str, Any], name: str) -> str:
    found = entry.get(name)
    return found if isinstance(found, str) else ""
