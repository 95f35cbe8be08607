"""One message, posted: what became of it, in words that hold no secret."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, NamedTuple

from beat._version import __version__

if TYPE_CHECKING:
    from beat.monitors.pings import Request

PATIENCE_S = 5.0
_AGAIN = {408, 425, 429}
_SERVER = 500
_LONGEST = 200


class Failure(NamedTuple):
    """A message that did not arrive, or was not taken."""

    words: str
    final: bool
    """Whether it would be the same another time."""


def post(request: Request, patience_s: float = PATIENCE_S) -> Failure | None:
    """None when it was taken."""
    headers = {"User-Agent": f"beat/{__version__}", **request.headers}
    made = urllib.request.Request(request.url, request.body, headers, method="POST")  # noqa: S310 (http or https: checked when declared)
    try:
        with urllib.request.urlopen(made, timeout=patience_s):  # noqa: S310 (the same)
            return None
    except urllib.error.HTTPError as e:
        with e:
            return Failure(f"it answers {e.code} {_line(e.reason)}", e.code not in _AGAIN and e.code < _SERVER)
    except TimeoutError:
        return _silent(patience_s)
    except urllib.error.URLError as e:
        return _silent(patience_s) if isinstance(e.reason, TimeoutError) else Failure(_line(e.reason), final=False)
    except (OSError, HTTPException) as e:
        return Failure(_line(e) or type(e).__name__, final=False)
    except Exception as e:  # noqa: BLE001 (a bug is no reason to be silent about all that comes after)
        return Failure(type(e).__name__, final=True)


def _silent(patience_s: float) -> Failure:
    return Failure(f"no answer within {patience_s:g} s", final=False)


def _line(error: object) -> str:
    return " ".join(str(error).split())[:_LONGEST]
