"""Complete the ids of schedules in a shell, silently and within about half a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat.config import settings
from beat.dev import embedded
from beat.storage.keys import Keys

if TYPE_CHECKING:
    import click

_TIMEOUT_S = 0.5
_MOST = 200


def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids that begin with `incomplete`, or none after an error, because a shell has no place for errors."""
    try:
        return _ids(context.params.get("url"), incomplete)
    except Exception:  # noqa: BLE001 (a wrong setting, a Redis that is away or does not let this user in)
        return []


def _ids(given_url: str | None, start: str) -> list[str]:
    loaded = settings.load({"redis_url": given_url})
    url = loaded.settings.redis_url
    if loaded.origins["redis_url"] == "default":
        url = embedded.running() or url
    low, high = (f"[{start}", f"({start}\x7f") if start else ("-", "+")
    with Redis.from_url(
        url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, retry=Retry(NoBackoff(), 0), protocol=2
    ) as redis:
        found = redis.zrangebylex(Keys(loaded.settings.prefix).index("all"), low, high, start=0, num=_MOST)
    ids = (schedule_id.decode() for schedule_id in found)
    return [schedule_id for schedule_id in ids if schedule_id.isprintable()]
