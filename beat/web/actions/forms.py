"""Shared parts of all forms: the schedule, the problem, and the version that the form expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadOption, BeatError, Conflict, DeclarationError, Refused
from beat.web import rendering
from beat.web.pages import header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from beat.client.queries import Overview
    from beat.web.request import Asked

WRONG = (DeclarationError, Refused)
"""The errors that are shown at the form; all others get an error page."""
_BAD_REQUEST, _CONFLICT = 400, 409
_LONGEST_NUMBER = 15


def schedule(asked: Asked) -> Overview:
    """Return the schedule in the address, with only one line of its ledger, because a form needs no more."""
    return asked.client.show(header.schedule_id(asked), lines=1)


class Problem(NamedTuple):
    """Why a change was refused."""

    words: str = ""
    field: str = ""
    """The form field that is wrong; empty if no single one is."""
    status: int = 200
    is_conflict: bool = False


NONE = Problem()


def problem(error: BeatError, fields: Mapping[Any, str] | None = None) -> Problem:
    """Return the problem of an error. The class of the error decides the status and, by `fields`, the form field."""
    status = _CONFLICT if isinstance(error, Refused) else _BAD_REQUEST
    field = (fields or {}).get(type(error), "")
    return Problem(str(error), field, status, isinstance(error, Conflict))


def shown(asked: Asked, template: str, found: Overview, wrong: Problem = NONE, **context: Any) -> Response:
    """Return the page of a form, with its problem and `context`. Raise Refused if the web UI is read-only."""
    refuse_to_show(asked)
    return rendering.page(
        asked,
        template,
        wrong.status,
        **header.of(asked, found),
        wrong=wrong,
        **{"expected": found.standing.version, **context},
    )


def refuse_to_show(asked: Asked) -> None:
    """Raise Refused if the web UI is read-only."""
    if asked.access.read_only:
        raise Refused("the web UI is read-only: it was started with read_only")


def version(asked: Asked) -> int | None:
    """Return the version that the schedule had when the form was made; None if the form names none."""
    written = asked.form.get("version", "")
    if not written:
        return None
    if not (written.isascii() and written.isdigit() and len(written) <= _LONGEST_NUMBER):
        raise BadOption(f"version {written!r:.30} is no number: load the page again")
    return int(written)


def path(found: Overview) -> str:
    """Return the address of the schedule's page."""
    return f"/schedules/{found.standing.schedule_id}"
