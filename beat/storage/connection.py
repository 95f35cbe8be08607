"""Connect to Redis so that no command is ever sent twice without beat's knowledge, and none waits for ever.

redis-py's default client repeats any command after a lost reply, up to ten times. Here the engine decides what to send
again, and when.
"""

from __future__ import annotations

import inspect
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import ConnectionPool, Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat.storage import scripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beat.storage.scripts import Script, Value

__all__ = ["Call", "Errors", "Line", "Redis", "Refused", "connect", "forbids", "run", "slowest_s"]

Errors = (exceptions.RedisError, OSError)
"""The errors of a Redis that is unreachable, full, loading or disconnected."""

Refused = exceptions.ResponseError
"""The error of a Redis that is reachable and rejects a command."""

_TIMEOUT_S = 5
_asked = inspect.signature(ConnectionPool.get_connection).parameters["command_name"].default is inspect.Parameter.empty
_NAMED = ("EVALSHA",) if _asked else ()  # before redis-py 5.3, a pool required a command name
_THEIRS = ("retry_on_timeout", "maint_notifications")  # options of the other client's own pool


def connect(source: str | Redis) -> Redis:
    """Return beat's own client for a URL, or for the Redis of a client that the user passed."""
    if isinstance(source, str):
        return Redis.from_url(source, **_ours({}))
    pool: Any = source.connection_pool
    kwargs = {name: value for name, value in pool.connection_kwargs.items() if not name.startswith(_THEIRS)}
    sentinel = {name: getattr(pool, name) for name in ("service_name", "sentinel_manager") if hasattr(pool, name)}
    own = type(pool)(connection_class=pool.connection_class, **sentinel, **kwargs | _ours(kwargs))
    return Redis(connection_pool=own)


def run(client: Redis, name: str, items: Iterable[Sequence[Value]] = (), /, **named: Any) -> Any:
    """Run a script with arguments named as in its header; send EVALSHA, and the whole text only after NOSCRIPT."""
    if type(client) is Redis:
        line = Line(client)
        line.ask([Call(name, items, named)])
        [reply] = line.answer()
        if isinstance(reply, Exception):
            raise reply
        return reply
    script = scripts.script(name)  # another kind of client, such as that of `beat.testing`
    numkeys, values = script.arrange(named, items)
    try:
        return client.evalsha(script.sha, numkeys, *values)
    except exceptions.NoScriptError:
        return client.eval(script.text, numkeys, *values)


class Call(NamedTuple):
    """A script to run: its name, its items, and its other arguments by the names of the header."""

    name: str
    items: Iterable[Sequence[Value]]
    named: Mapping[str, Any]


class Line:
    """A pipelined connection: the next request may be sent before the previous reply has come. Replies come in order.

    After any error, the connection is closed and all outstanding requests are dropped. The next request opens a new
    one, so no reply can reach the wrong caller.
    """

    def __init__(self, client: Redis) -> None:
        self.answered_at = -math.inf
        """When the last reply came, by the monotonic clock."""
        self._client = client
        self._connection: Any = None
        self._asked: deque[list[tuple[Script, int, list[Value]]]] = deque()

    def ask(self, calls: Sequence[Call]) -> None:
        """Send scripts, to be run one after the other."""
        found = ((scripts.script(call.name), call) for call in calls)
        arranged = [(script, *script.arrange(call.named, call.items)) for script, call in found]
        message = b"".join(_packed("EVALSHA", script.sha, numkeys, *values) for script, numkeys, values in arranged)
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection(*_NAMED)
        try:
            self._connection.send_packed_command([message], check_health=False)
        except BaseException:
            self.hang_up()
            raise
        self._asked.append(arranged)

    def answer(self) -> list[Any]:
        """Return the replies to the oldest request, an exception in the place of each script that Redis rejected."""
        try:
            replies = [_reply(self._connection) for _ in self._asked[0]]
        except BaseException:
            self.hang_up()
            raise
        arranged, self.answered_at = self._asked.popleft(), time.monotonic()
        if not self._asked:
            self._client.connection_pool.release(self._connection)
            self._connection = None
        for n, (script, numkeys, values) in enumerate(arranged):
            if isinstance(replies[n], exceptions.NoScriptError):
                try:
                    replies[n] = self._client.eval(script.text, numkeys, *values)
                except exceptions.ResponseError as e:
                    replies[n] = e
        return replies

    def hang_up(self) -> None:
        """Close the connection, and drop all outstanding requests."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
        self._connection = None
        self._asked.clear()


def forbids(error: BaseException) -> bool:
    """Return whether Redis rejected the login or a permission, also inside a script."""
    if isinstance(error, exceptions.NoPermissionError | exceptions.AuthenticationError):
        return True
    return isinstance(error, exceptions.ResponseError) and any(words in str(error) for words in _FORBIDDEN)


_FORBIDDEN = ("ACL failure", "NOPERM", "The user executing the script can't")  # the last one comes from Redis 7.0


def slowest_s(client: Redis) -> float:
    """Return how long a reply may take at most, in seconds, including a new connection."""
    given = client.connection_pool.connection_kwargs
    return float(given.get("socket_connect_timeout") or 0) + float(given.get("socket_timeout") or 0)


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
    """A cache of words in wire format, because the items of a page share most of their words."""

    def __missing__(self, word: Value) -> bytes:
        if type(word) is str:  # nearly all are
            written = word.encode()
        elif isinstance(word, bool) or not isinstance(word, str | bytes | int):
            raise TypeError(f"{word!r:.60} is no word for Redis")
        else:
            written = word if isinstance(word, bytes) else str(word).encode()
        self[word] = packed = b"$%d\r\n%b\r\n" % (len(written), written)
        return packed


def _packed(*words: Value) -> bytes:
    return b"*%d\r\n%b" % (len(words), b"".join(map(_Words().__getitem__, words)))
