"""Confirm a change once, on the next page. A cookie holds the key of a fixed text, never text from an address."""

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
    """Return the redirect to the page that shows the change, with the cookie that confirms it."""
    made = see_other(asked.url(path))
    made.set_cookie(_COOKIE, done, max_age=_SECONDS, httponly=True, **cookie(asked))
    return made


def told(asked: Asked) -> str:
    """Return the text that confirms the last change; empty if there is none, or if an open page polls."""
    return "" if asked.is_live else _WORDS.get(asked.request.cookies.get(_COOKIE, ""), "")


def forgotten(asked: Asked, made: Response) -> Response:
    """Return the page with the cookie deleted, so that the confirmation appears once."""
    if told(asked):
        made.delete_cookie(_COOKIE, path=asked.url("/"))
    return made
