"""What machines ask: whether the page answers, whether schedules are looked after, and the metrics.

The first two are open to everybody: they say whether all is well, and name nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from beat.client import liveness
from beat.errors import BeatError
from beat.telemetry.metrics import Asking, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from beat.web.request import Asked
    from beat.web.site import Site

_AGAIN = {"retry-after": "2"}
_PLAIN = {"cache-control": "no-store"}


def routes(site: Site) -> list[Route]:
    """All three."""
    return [
        Route("/healthz", healthy, name="healthz"),
        site.route("/readyz", ready, name="readyz"),
        site.route("/metrics", metrics, name="metrics"),
    ]


async def healthy(_request: Request) -> Response:
    """This process answers."""
    return PlainTextResponse("ok\n", headers=_PLAIN)


def ready(site: Site, _asked: Asked) -> Response:
    """Redis answers, and a beat has passed lately: what `beat health` says, without names."""
    try:
        beats, now = site.client.beats(), site.client.now()
    except BeatError:
        return _not_now("Redis does not answer")
    told = liveness.tell(beats, now, liveness.limit(site.client.settings.interval))
    if not told:
        return _not_now("no scheduler is running")
    if not any(each.fresh for each in told):
        return _not_now("no scheduler checked lately")
    return PlainTextResponse("ok\n", headers=_PLAIN)


def metrics(site: Site, asked: Asked) -> Response:
    """What a beat serves at its own port; a page that only shows writes nothing for it either."""
    try:
        text = Asking.beside(site.client).page(fold=not asked.access.read_only)
    except BeatError as e:
        return _not_now(f"Redis cannot be asked for metrics now: {e}")
    return PlainTextResponse(text.encode(errors="replace"), headers={**_PLAIN, "content-type": page.TYPE})


def _not_now(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", 503, headers={**_PLAIN, **_AGAIN})
