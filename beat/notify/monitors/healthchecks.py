"""Build pings for healthchecks.io and compatible services: the URL of the check with `/start` or `/fail` appended."""

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
    """Return the request for a ping.

    The query parameter `rid` identifies the run, so the service can match starts and ends of overlapping runs. The body
    is text for people.
    """
    parts = urlsplit(url)
    query = "&".join(each for each in (parts.query, f"rid={ping.run_id}") if each)
    whole = urlunsplit(parts._replace(path=parts.path.rstrip("/") + _PATHS[ping.kind], query=query))
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return Request(parts.netloc, whole, headers, _body(ping).encode("utf-8", "replace"), refusal)


def refusal(answer: bytes) -> str:
    """Return why the service ignored a ping although it answered 200, or an empty string if it accepted the ping."""
    return _REFUSALS.get(answer.strip().lower(), "")


def _body(ping: Ping) -> str:
    lines = [f"{ping.schedule.id}: {ping.words}"] if ping.words else []
    took = [f"after {ping.seconds:g} s"] if ping.seconds is not None else []
    return "\n".join([*lines, *took, ping.job_id])
