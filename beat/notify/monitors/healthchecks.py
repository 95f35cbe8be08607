"""Pings as healthchecks.io takes them, and whoever speaks like it: the URL of the check, and a word after it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from beat.notify.monitors.pings import Request

if TYPE_CHECKING:
    from beat.notify.monitors.pings import Ping

_PATHS = {"start": "/start", "ok": "", "fail": "/fail"}
_REFUSALS = {
    b"ok (not found)": "it knows no such check: is the URL right?",
    b"ok (rate limited)": "it takes no more pings for this check now: there were too many within a minute",
}


def request(ping: Ping, url: str) -> Request:
    """The run is known by its `rid`, by which the service tells runs apart that overlap; the body is for people."""
    parts = urlsplit(url)
    query = "&".join(each for each in (parts.query, f"rid={ping.run_id}") if each)
    whole = urlunsplit(parts._replace(path=parts.path.rstrip("/") + _PATHS[ping.kind], query=query))
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return Request(parts.netloc, whole, headers, _body(ping).encode("utf-8", "replace"), refusal)


def refusal(answer: bytes) -> str:
    """Why a ping was not taken that was answered with 200, as all are that go to the UUID of a check."""
    return _REFUSALS.get(answer.strip().lower(), "")


def _body(ping: Ping) -> str:
    lines = [f"{ping.schedule.id}: {ping.words}"] if ping.words else []
    took = [f"after {ping.seconds:g} s"] if ping.seconds is not None else []
    return "\n".join([*lines, *took, ping.job_id])
