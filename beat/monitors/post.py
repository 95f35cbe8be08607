"""One message, posted: what became of it, in words that hold no secret."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple

from beat import posting
from beat._version import __version__

if TYPE_CHECKING:
    from beat.monitors.pings import Request
    from beat.posting import Answer

PATIENCE_S = 5.0
_AGAIN = {408, 425, 429}
_SERVER = 500
_LONGEST, _LONGEST_ANSWER = 200, 100


class Failure(NamedTuple):
    """A message that did not arrive, or was not taken."""

    words: str
    final: bool
    """Whether it would be the same another time."""
    alone: bool = False
    """Whether the service answers: others may fare better."""


def post(request: Request, patience_s: float = PATIENCE_S) -> Failure | None:
    """None when it was taken."""
    headers = {"User-Agent": f"beat/{__version__}", **request.headers}
    try:
        answer = posting.post(request.url, request.body, headers, patience_s, longest=_LONGEST_ANSWER)
        refusal = request.refusal(answer.body) if request.refusal and answer.is_good else ""
    except TimeoutError:
        return Failure(f"no answer within {patience_s:g} s", final=False)
    except (OSError, HTTPException) as e:
        return Failure(_line(e) or type(e).__name__, final=False)
    except Exception as e:  # noqa: BLE001 (a bug is no reason to be silent about all that comes after)
        return Failure(type(e).__name__, final=True)
    if not answer.is_good:
        again = answer.status in _AGAIN or answer.status >= _SERVER
        return Failure(_told(answer), final=not again, alone=True)
    return Failure(refusal, final=True) if refusal else None


def _told(answer: Answer) -> str:
    """In our own words: what a server writes beside the number could be anything."""
    phrase = f" {HTTPStatus(answer.status).phrase}" if answer.status in set(HTTPStatus) else ""
    moved = ", and beat follows nobody elsewhere: write the URL that it leads to"
    return f"it answers {answer.status}{phrase}{moved if answer.leads_elsewhere else ''}"


def _line(error: object) -> str:
    return " ".join(str(error).split())[:_LONGEST]
