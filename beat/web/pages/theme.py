"""Choose the light theme, the dark one, or that of the system. A cookie stores it, so it works without JavaScript."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from beat.web.request import THEME, cookie
from beat.web.site import see_other

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.web.request import Asked
    from beat.web.site import Site

_A_YEAR_S = 31_536_000
_HERE = re.compile(r"/(?![/\\])[!-~]*\Z")
"""A path within this site. Two slashes, or a slash and a backslash, would begin a host name."""


def choose(_site: Site, asked: Asked) -> Response:
    """Store the theme and redirect to the previous page, never to another site."""
    back = asked.query.get("back", "/")
    made = see_other(asked.url(back if _HERE.match(back) else "/"))
    to = asked.query.get("to", "")
    wanted = to if to in {"light", "dark"} else ""
    made.set_cookie(THEME, wanted, max_age=_A_YEAR_S if wanted else 0, **cookie(asked))
    return made
