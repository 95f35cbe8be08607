"""One message, posted: what became of it, in words that hold no secret.

It goes where it is addressed, and nowhere else: who followed a redirection would make a GET of it, and hand the key of
a project at Sentry to whoever is named there.
"""

from __future__ import annotations

import functools
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from beat._version import __version__

if TYPE_CHECKING:
    from beat.monitors.pings import Request

PATIENCE_S = 5.0
_AGAIN = {408, 425, 429}
_ELSEWHERE, _REFUSED, _SERVER = 300, 400, 500
_LONGEST, _LONGEST_ANSWER = 200, 100


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it is an answer like any other that is not 2xx."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    """Made when the first message is posted, for it may read the certificates of all authorities."""
    return urllib.request.build_opener(_Straight)


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
    made = urllib.request.Request(request.url, request.body, headers, method="POST")  # noqa: S310 (http or https: checked when declared)
    try:
        with _opener().open(made, timeout=patience_s) as answer:
            refusal = request.refusal(answer.read(_LONGEST_ANSWER)) if request.refusal else ""
            return Failure(refusal, final=True) if refusal else None
    except urllib.error.HTTPError as e:
        with e:
            return Failure(_answer(e.code), e.code not in _AGAIN and e.code < _SERVER, alone=True)
    except TimeoutError:
        return _silent(patience_s)
    except urllib.error.URLError as e:
        return _silent(patience_s) if isinstance(e.reason, TimeoutError) else Failure(_line(e.reason), final=False)
    except (OSError, HTTPException) as e:
        return Failure(_line(e) or type(e).__name__, final=False)
    except Exception as e:  # noqa: BLE001 (a bug is no reason to be silent about all that comes after)
        return Failure(type(e).__name__, final=True)


def _answer(code: int) -> str:
    """In our own words: what a server writes beside the number could be anything."""
    phrase = f" {HTTPStatus(code).phrase}" if code in set(HTTPStatus) else ""
    moved = ", and beat follows nobody elsewhere: write the URL that it leads to"
    return f"it answers {code}{phrase}{moved if _ELSEWHERE <= code < _REFUSED else ''}"


def _silent(patience_s: float) -> Failure:
    return Failure(f"no answer within {patience_s:g} s", final=False)


def _line(error: object) -> str:
    return " ".join(str(error).split())[:_LONGEST]
