"""Send answers in few bytes: compressed, or as 304 where the client already has them.

Compression beside secrets can leak them (BREACH). Another site makes a browser load pages with guesses in the address,
and an eavesdropper sees from the lengths which guess was right. So beat compresses no answer to a request that another
site started: browsers name that site in `Sec-Fetch-Site`, which no script can change. This protects ids and errors on
a page as well as its CSRF token, so the token needs no mask. A client without the header is a program, or a browser
from before 2023; no other site can start a program.

Pages keep `no-store`, because a form from the browser's cache would repeat its request id and thus the same run. The
script of an open page remembers the entity tag itself.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

_SMALLEST = 1024
"""Bytes; a smaller answer fits into one packet anyway."""
_LEVEL = 6
_OK, _NOT_MODIFIED = 200, 304
_TEXT = ("text/", "application/json", "image/svg+xml")
_OWN_SITE = frozenset(("same-origin", "none"))
_OF_BODY = (b"content-length", b"content-type")
_BY_ITSELF = re.compile(
    rb'(id="live" data-now=")\d+'  # the clock
    rb'|(name="request" value=")[0-9a-f]+'  # new on each page; an open page keeps the one it has
    rb'|(data-at="-?\d+">)[^<]*'  # "in 41 s": an open page counts by itself
)
"""The parts of a page that change although nothing has happened. Text of users is escaped, so it cannot match."""


def gzipped(body: bytes) -> bytes:
    """Compress a body."""
    return gzip.compress(body, _LEVEL, mtime=0)


def lean(request: Request, response: Response, pack: Callable[[bytes], bytes] = gzipped) -> Response:
    """Return a finished text answer with an entity tag and compressed, or a 304 without a body.

    Streamed answers pass unchanged.
    """
    body, kind = getattr(response, "body", None), response.headers.get("content-type", "")
    if not isinstance(body, bytes) or not kind.startswith(_TEXT):
        return response
    response.headers.add_vary_header("accept-encoding")
    if request.method in {"GET", "HEAD"} and response.status_code == _OK:
        tag = _tag(body, kind)
        response.headers["etag"] = tag
        if _has(request, tag):
            return _not_modified(response)
    if len(body) >= _SMALLEST and _may_compress(request):
        response.body = pack(body)
        response.headers["content-length"] = str(len(response.body))
        response.headers["content-encoding"] = "gzip"
    return response


def _tag(body: bytes, kind: str) -> str:
    """Return the weak entity tag of a body. Pages that differ only in the time passed have the same tag."""
    steady = _BY_ITSELF.sub(rb"\1\2\3", body) if kind.startswith("text/html") else body
    return f'W/"{hashlib.sha256(steady).hexdigest()[:32]}"'


def _has(request: Request, tag: str) -> bool:
    """Return whether `If-None-Match` names this tag, by the weak comparison of RFC 9110."""
    named = [each.strip() for line in request.headers.getlist("if-none-match") for each in line.split(",")]
    return "*" in named or tag.removeprefix("W/") in [each.removeprefix("W/") for each in named]


def _not_modified(response: Response) -> Response:
    """Return a 304 with the headers of the answer, except those about its body."""
    unmodified = Response(status_code=_NOT_MODIFIED)
    unmodified.raw_headers = [header for header in response.raw_headers if header[0] not in _OF_BODY]
    return unmodified


def _may_compress(request: Request) -> bool:
    """Return whether the client accepts gzip and no other site started its request."""
    if not _OWN_SITE.issuperset(request.headers.getlist("sec-fetch-site")):
        return False
    qualities = dict[str, float]()
    for line in request.headers.getlist("accept-encoding"):
        for each in line.split(","):
            name, _, parameters = each.partition(";")
            qualities[name.strip().lower()] = _quality(parameters)
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _quality(parameters: str) -> float:
    """Return the weight of a coding: 0.5 for `gzip;q=0.5`, 1 without a weight, 0 for an invalid one."""
    name, _, value = parameters.replace(" ", "").partition("=")
    try:
        return float(value) if name.lower() == "q" else 1.0
    except ValueError:
        return 0.0
