"""Those who came with a wrong token or password: an operator hears of them, a line a second however many they are."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

_log = logging.getLogger("beat.web")
_EVERY_S = 1.0


class Strangers:
    """Of one page. What they gave is not told: it may be a slip of somebody whose next try is right."""

    def __init__(self) -> None:
        self._untold, self._next = 0, 0.0

    def note(self, request: Request) -> None:
        """One more; who gave nothing at all has only come to be asked."""
        if not request.headers.get("authorization"):
            return
        self._untold += 1
        now = time.monotonic()
        if now < self._next:
            return
        host = request.client.host if request.client else "an unknown address"
        more = f", {self._untold} times since this was last said" if self._untold > 1 else ""
        _log.warning("a wrong token or password was given to the page by %s%s", ascii(host)[1:61].rstrip("'"), more)
        self._untold, self._next = 0, now + _EVERY_S
