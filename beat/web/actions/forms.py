"""What all forms have in common: the schedule above them, what was wrong with them, and which version they expect."""

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
"""What is told at the form: the rest has a page of its own."""
_BAD_REQUEST, _CONFLICT = 400, 409
_LONGEST_NUMBER = 15


def schedule(asked: Asked) -> Overview:
    """That of the address, as it stands; of its ledger no more than a form needs."""
    return asked.client.show(header.schedule_id(asked), lines=1)


class Problem(NamedTuple):
    """Why nothing was done."""

    words: str = ""
    field: str = ""
    """That of the form which is wrong; nothing where no single one is."""
    status: int = 200
    is_conflict: bool = False


NONE = Problem()


def problem(error: BeatError, fields: Mapping[Any, str] | None = None) -> Problem:
    """What was wrong, and with which field, by the class of the error."""
    status = _CONFLICT if isinstance(error, Refused) else _BAD_REQUEST
    field = (fields or {}).get(type(error), "")
    return Problem(str(error), field, status, isinstance(error, Conflict))


def shown(asked: Asked, template: str, found: Overview, wrong: Problem = NONE, **context: Any) -> Response:
    """The form, with what was typed, and what was wrong with it."""
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
    """Where nothing may be changed there are no forms."""
    if asked.access.read_only:
        raise Refused("the web UI is read-only: it was started with read_only")


def version(asked: Asked) -> int | None:
    """That of the schedule when the form was made; None where the form does not say."""
    written = asked.form.get("version", "")
    if not written:
        return None
    if not (written.isascii() and written.isdigit() and len(written) <= _LONGEST_NUMBER):
        raise BadOption(f"version {written!r:.30} is no number: load the page again")
    return int(written)


def path(found: Overview, more: str = "") -> str:
    """Of the schedule's page, or of one below it."""
    return f"/schedules/{found.standing.schedule_id}{more}"
