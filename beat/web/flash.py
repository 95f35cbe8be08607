"""What was done, said once on the page that comes after it: a word in a cookie, never text from an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.web.request import cookie
from beat.web.site import see_other

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.web.request import Asked

_COOKIE = "beat_done"
_SECONDS = 30
_WORDS = {
    "asked": "Asked for. This page follows the run by itself.",
    "asked_instead": "Asked for, instead of the next tick, which passes. This page follows the run by itself.",
    "paused": "Paused: its ticks are held, and pass as one skip when the pause ends.",
    "resumed": "Resumed: what the pause held has passed, and it goes on with its next tick.",
    "caught_up": "Resumed: what the pause held is left to its misfire policy.",
    "rescheduled": "It has another rule now. Deploys keep it until an operator goes back to that of the code.",
    "moved": "The next tick is moved, once; those after it stay as they are.",
    "reset": "Back to the rule of the code.",
}


def back(asked: Asked, path: str, done: str) -> Response:
    """To the page that shows what was done."""
    made = see_other(asked.url(path))
    made.set_cookie(_COOKIE, done, max_age=_SECONDS, httponly=True, **cookie(asked))
    return made


def told(asked: Asked) -> str:
    """The words for what was done just now; nothing where nothing was."""
    return "" if asked.is_live else _WORDS.get(asked.request.cookies.get(_COOKIE, ""), "")


def forgotten(asked: Asked, made: Response) -> Response:
    """The page, after which it is not said again."""
    if told(asked):
        made.delete_cookie(_COOKIE, path=asked.url("/"))
    return made
