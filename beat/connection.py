"""Connections to Redis: no command is ever sent twice behind our back, and none waits for ever.

redis-py's own client replays any command after a lost reply, up to ten times; what may be sent again, and when, is for
the engine to say.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import ConnectionPool, Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat import scripts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from beat.scripts import Value

__all__ = ["Call", "Errors", "Redis", "Refused", "connect", "exchange", "forbids", "run"]

Errors = (exceptions.RedisError, OSError)
"""What a Redis that is away, full, loading or cut off makes us see."""

Refused = exceptions.ResponseError
"""What a Redis that answers, but does not do as it is told, makes us see."""

_TIMEOUT_S = 5
_asked = inspect.signature(ConnectionPool.get_connection).parameters["command_name"].default is inspect.Parameter.empty
_NAMED = ("EVALSHA",) if _asked else ()  # before redis-py 5.3 a pool wanted to know for which command
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
    if type(client) is Redis:
        [reply] = exchange(client, [Call(name, items, named)])
        if isinstance(reply, Exception):
            raise reply
        return reply
    script = scripts.script(name)  # a client that goes other ways, as that of `beat.testing` does
    numkeys, values = script.arrange(named, items)
    try:
        return client.evalsha(script.sha, numkeys, *values)
    except exceptions.NoScriptError:
        return client.eval(script.text, numkeys, *values)


class Call(NamedTuple):
    """A script to be run: its name, its items, and the rest by the names of its header."""

    name: str
    items: Iterable[Sequence[Value]]
    named: Mapping[str, Any]


def exchange(client: Redis, calls: Sequence[Call], meanwhile: Callable[[], None] = lambda: None) -> list[Any]:
    """Runs scripts one after the other with one message; while Redis works on them, does something else.

    Answers their replies in order; in the place of one that Redis refused, the error.
    """
    arranged = [
        (scripts.script(call.name), *scripts.script(call.name).arrange(call.named, call.items)) for call in calls
    ]
    message = b"".join(_packed("EVALSHA", script.sha, numkeys, *values) for script, numkeys, values in arranged)
    connection: Any = client.connection_pool.get_connection(*_NAMED)
    left = len(calls)
    try:
        connection.send_packed_command([message], check_health=False)
        meanwhile()
        replies: list[Any] = []
        while left:
            replies.append(_reply(connection))
            left -= 1
    finally:
        if left:  # whoever comes next must not read what was meant for us
            connection.disconnect()
        client.connection_pool.release(connection)
    for n, (script, numkeys, values) in enumerate(arranged):
        if isinstance(replies[n], exceptions.NoScriptError):
            replies[n] = client.eval(script.text, numkeys, *values)
    return replies


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


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except exceptions.ResponseError as e:
        return e


class _Words(dict["Value", bytes]):
    """Each word as it goes over the wire. The items of a page have most of theirs in common."""

    def __missing__(self, word: Value) -> bytes:
        written = word if isinstance(word, bytes) else str(word).encode()
        self[word] = packed = b"$%d\r\n%b\r\n" % (len(written), written)
        return packed


def _packed(*words: Value) -> bytes:
    return b"*%d\r\n%b" % (len(words), b"".join(map(_Words().__getitem__, words)))
