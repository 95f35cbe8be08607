"""Connections to Redis: no command is ever sent twice behind our back, and none waits for ever.

redis-py's own client replays any command after a lost reply, up to ten times; what may be sent again, and when, is for
the engine to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis import Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat import scripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beat.scripts import Value

__all__ = ["Errors", "Redis", "Refused", "connect", "forbids", "run"]

Errors = (exceptions.RedisError, OSError)
"""What a Redis that is away, full, loading or cut off makes us see."""

Refused = exceptions.ResponseError
"""What a Redis that answers, but does not do as it is told, makes us see."""

_TIMEOUT_S = 5
_THEIRS = ("retry_on_timeout", "maint_notifications")  # what belongs to the other client's own pool


def connect(source: str | Redis) -> Redis:
    """A client of our own, for a URL or for the Redis of somebody else's client."""
    if isinstance(source, str):
        return Redis.from_url(source, **_ours({}))
    pool: Any = source.connection_pool
    kwargs = {name: value for name, value in pool.connection_kwargs.items() if not name.startswith(_THEIRS)}
    sentinel = {name: getattr(pool, name) for name in ("service_name", "sentinel_manager") if hasattr(pool, name)}
    own = type(pool)(connection_class=pool.connection_class, **sentinel, **kwargs | _ours(kwargs))
    return Redis(connection_pool=own)


def run(client: Redis, name: str, items: Iterable[Sequence[Value]] = (), /, **named: Any) -> Any:
    """Runs a script by the names of its header; EVALSHA alone, and the whole text if the server does not know it."""
    script = scripts.script(name)
    numkeys, values = script.arrange(named, items)
    try:
        return client.evalsha(script.sha, numkeys, *values)
    except exceptions.NoScriptError:
        return client.eval(script.text, numkeys, *values)


def forbids(error: BaseException) -> bool:
    """Whether Redis does not let this user in, or not do what it is told, be it inside a script."""
    if isinstance(error, exceptions.NoPermissionError | exceptions.AuthenticationError):
        return True
    return isinstance(error, exceptions.ResponseError) and any(word in str(error) for word in ("ACL failure", "NOPERM"))


def _ours(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "socket_timeout": given.get("socket_timeout") or _TIMEOUT_S,
        "socket_connect_timeout": given.get("socket_connect_timeout") or _TIMEOUT_S,
        "decode_responses": False,
        "protocol": 2,
        "health_check_interval": 0,
    }
