"""Render pages from templates. All text is escaped and stripped of passwords; an unknown name raises an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from beat._version import __version__
from beat.client.describe import instants
from beat.config import shell_quoting
from beat.config.masking import without_passwords
from beat.timing import clock
from beat.web.request import csrf_cookie
from beat.web.times import away, checked, moment, of_day

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.web.request import Asked


def page(asked: Asked, template: str, status: int = 200, **context: Any) -> Response:
    """Return a rendered page with the CSRF cookie. Templates also get the request, `url`, `now` and the version."""
    now = context.get("now") or clock.now()
    text = _templates.get_template(template).render(
        **{"now": now, **context}, asked=asked, url=asked.url, read_only=asked.access.read_only, version=__version__
    )
    made = HTMLResponse(text, status, headers={"cache-control": "no-store"})
    made.set_cookie(**csrf_cookie(asked))
    return made


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _shown(value: object) -> object:
    """Return the value of a template expression without passwords; markup passes unchanged."""
    return without_passwords(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_templates = Environment(
    loader=PackageLoader("beat.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
_templates.filters["as_typed"] = escape
"""For text that a form sends back, because a mask in it would become the value."""
_templates.filters["as_arguments"] = shell_quoting.arguments
_templates.globals.update(
    moment=moment,
    away=away,
    checked=checked,
    of_day=of_day,
    place=instants.place,
    span=instants.span,
    plural=_plural,
    to_ms=clock.to_ms,
)
