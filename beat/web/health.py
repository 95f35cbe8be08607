"""The endpoints for machines: liveness, readiness and metrics.

Liveness and readiness need no authentication. They say whether all is well and name no scheduler.
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
    """Return the three routes."""
    return [
        Route("/healthz", healthy, name="healthz"),
        site.route("/readyz", ready, name="readyz"),
        site.route("/metrics", metrics, name="metrics"),
    ]


async def healthy(_request: Request) -> Response:
    """Answer 200, because this process is alive."""
    return PlainTextResponse("ok\n", headers=_PLAIN)


def ready(site: Site, _asked: Asked) -> Response:
    """Answer 200 if Redis answers and a scheduler has checked lately, else 503; like `beat health`, without names."""
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
    """Answer with the metrics that a scheduler serves at its own port. A read-only web UI writes nothing to Redis."""
    try:
        text = Asking.beside(site.client).page(fold=not asked.access.read_only)
    except BeatError as e:
        return _not_now(f"Redis cannot be asked for metrics now: {e}")
    return PlainTextResponse(text.encode(errors="replace"), headers={**_PLAIN, "content-type": page.TYPE})


def _not_now(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", 503, headers={**_PLAIN, **_AGAIN})
