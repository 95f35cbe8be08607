"""Connections to Redis: no command is ever sent twice behind our back, and none waits for ever.

redis-py's own client replays any command after a lost reply, up to ten times; what may be sent again, and when, is for
the engine to say.
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
        line = Line(client)
        line.ask([Call(name, items, named)])
        [reply] = line.answer()
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


class Line:
    """A conversation: the next question may go out before the answer to the last has come. Answers come in order.

    When anything goes wrong the line is dead, with all that was asked, and the next question opens another: so nobody
    ever reads an answer that was meant for somebody else.
    """

    def __init__(self, client: Redis) -> None:
        self.answered_at = -math.inf
        """When the last answer came, by the monotonic clock."""
        self._client = client
        self._connection: Any = None
        self._asked: deque[list[tuple[Script, int, list[Value]]]] = deque()

    def ask(self, calls: Sequence[Call]) -> None:
        """Sends scripts, to be run one after the other."""
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
        """The replies to the oldest question; in the place of one that Redis refused, the error."""
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
        """Waits for no answer any more."""
        if self._connection is not None:
            self._connection.disconnect()
            self._client.connection_pool.release(self._connection)
        self._connection = None
        self._asked.clear()


def forbids(error: BaseException) -> bool:
    """Whether Redis does not let this user in, or not do what it is told, be it inside a script."""
    if isinstance(error, exceptions.NoPermissionError | exceptions.AuthenticationError):
        return True
    return isinstance(error, exceptions.ResponseError) and any(words in str(error) for words in _FORBIDDEN)


_FORBIDDEN = ("ACL failure", "NOPERM", "The user executing the script can't")  # the last one is Redis 7.0's


def slowest_s(client: Redis) -> float:
    """How long one answer may take at most, with a new connection for it."""
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
    """Each word as it goes over the wire. The items of a page have most of theirs in common."""

    def __missing__(self, word: Value) -> bytes:
        if type(word) is str:  # as nearly every one is
            written = word.encode()
        elif isinstance(word, bool) or not isinstance(word, str | bytes | int):
            raise TypeError(f"{word!r:.60} is no word for Redis")
        else:
            written = word if isinstance(word, bytes) else str(word).encode()
        self[word] = packed = b"$%d\r\n%b\r\n" % (len(written), written)
        return packed


def _packed(*words: Value) -> bytes:
    return b"*%d\r\n%b" % (len(words), b"".join(map(_Words().__getitem__, words)))
