"""`beat redis`: send one command to Redis and print its reply as redis-cli does, for machines without redis-cli.

On a terminal, characters that are not printable are escaped, so that no value can control it. A pipe gets the bytes.
"""

from __future__ import annotations

import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any, cast

import click
from redis import ConnectionPool, exceptions
from redis._parsers import _RESP2Parser
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat.cli import common_options, output
from beat.config import redis_url
from beat.errors import BeatError, ConfigError, NoRedis

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONNECT_S, _REPLY_S = 5, 30
_ENDLESS = {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC"}
_OF_THE_CONNECTION = {"HELLO", "CLIENT REPLY"}
# Replies of these commands are text for people, which redis-cli prints without quotes, even on a terminal.
_TEXTS = {"INFO", "LOLWUT", "MEMORY DOCTOR", "MEMORY MALLOC-STATS", "CLUSTER INFO", "CLUSTER NODES"}
_TEXTS |= {"CLIENT LIST", "CLIENT INFO", "LATENCY DOCTOR", "LATENCY GRAPH"}
_QUOTED = {c: chr(c) if chr(c).isascii() and chr(c).isprintable() else rf"\x{c:02x}" for c in range(256)}
_QUOTED |= {ord("\\"): r"\\", ord('"'): r"\"", 7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 13: r"\r"}


class Status(bytes):
    """A reply such as OK, which is shown without quotes."""


class _Parser(_RESP2Parser):
    """A RESP2 parser that, unlike redis-py's, tells a status from a string and keeps the code of an error."""

    def _read_response(self, *_: Any, **__: Any) -> Any:
        buffer: Any = self._buffer
        line = buffer.readline()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Status(rest)
        if kind == b"-":
            return self._error(rest.decode("utf-8", errors="backslashreplace"))
        if kind == b":":
            return int(rest)
        if kind not in {b"$", b"*"}:
            raise exceptions.InvalidResponse(f"it does not speak the protocol of Redis: {line[:20]!r}")
        if rest == b"-1":
            return None
        if kind == b"$":
            return buffer.read(int(rest))
        return [self._read_response() for _ in range(int(rest))]

    def _error(self, said: str) -> Exception:
        error: Exception = self.parse_error(said)  # type: ignore[no-untyped-call]
        error.args = (said,)
        if isinstance(error, exceptions.ConnectionError):  # as redis-py does; other errors may be part of a reply
            raise error
        return error


@click.command("redis", context_settings={"allow_interspersed_args": False})  # options after the first word go to Redis
@click.option(
    "--redis-url", "url", metavar="URL", help="Use this Redis.  [default: the setting, or that of beat dev here]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; hashes are objects.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARG]...")
def command(words: tuple[str, ...], *, url: str | None, as_json: bool) -> None:
    """Send one command to Redis and print its reply as redis-cli does.

    \b
    beat redis -- HGETALL beat:schedule:hello
    beat redis -- ZRANGE beat:due 0 -1 WITHSCORES
    beat redis --json -- HGETALL beat:schedule:hello | jq .reply.next_run

    Where no Redis is set, and `beat dev` runs in this directory, its private Redis is asked. A terminal sees replies
    with numbers and quotes, a pipe the bare bytes. In JSON, bytes that are not UTF-8 are written as \\xff.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    _refuse_what_has_no_single_reply(words)
    reply = _ask(common_options.where(url), words, as_json=as_json)
    if as_json:
        output.document(reply=plain(reply))
    elif sys.stdout and sys.stdout.isatty():
        output.echo(text(reply) if _TEXTS.intersection(_names(words)) else shown(reply))
    else:
        output.echo(cast("str", raw(reply)))  # bytes: click writes them as they are


def shown(reply: object, indent: str = "") -> str:
    """Return a reply as redis-cli shows it on a terminal."""
    if reply is None:
        return "(nil)"
    if isinstance(reply, int):
        return f"(integer) {reply}"
    if isinstance(reply, Status):
        return text(reply)
    if isinstance(reply, bytes):
        return f'"{"".join(map(_QUOTED.__getitem__, reply))}"'
    if isinstance(reply, Exception):
        return f"(error) {output.printable(str(reply))}"
    items = cast("list[object]", reply)
    width = len(str(len(items)))
    inner = indent + " " * (width + 2)
    lines = [f"{number:>{width}}) {shown(item, inner)}" for number, item in enumerate(items, 1)]
    return f"\n{indent}".join(lines) or "(empty array)"


def text(reply: object) -> str:
    """Return a reply that is text for people, with characters escaped that are not printable."""
    if not isinstance(reply, bytes):
        return shown(reply)
    return output.printable(reply.decode("utf-8", errors="backslashreplace").replace("\r\n", "\n").rstrip("\n"))


def raw(reply: object) -> bytes:
    """Return a reply as redis-cli writes it to a pipe: only the values, one per line."""
    if isinstance(reply, list):
        return b"\n".join(map(raw, reply))
    if isinstance(reply, bytes):
        return reply
    return b"" if reply is None else str(reply).encode()


def plain(reply: object) -> object:
    """Return a reply as a value for JSON."""
    if isinstance(reply, bytes):
        return reply.decode("utf-8", errors="backslashreplace")
    if isinstance(reply, dict):
        return {str(plain(key)): plain(value) for key, value in reply.items()}
    if isinstance(reply, list | tuple | set):
        return [plain(item) for item in reply]
    if isinstance(reply, Exception):
        return {"error": str(reply)}
    finite = not isinstance(reply, float) or math.isfinite(reply)
    return reply if finite else str(reply)


def _names(words: Sequence[str]) -> set[str]:
    """Return the names of a command with one word and with two: CLIENT and CLIENT LIST for `CLIENT LIST ID 3`."""
    return {" ".join(words[:1]).upper(), " ".join(words[:2]).upper()}


def _refuse_what_has_no_single_reply(words: Sequence[str]) -> None:
    if not words:
        raise click.UsageError("there is no command to send: beat redis -- PING")
    if _ENDLESS.intersection(_names(words)):
        raise click.UsageError(f"{words[0].upper()} never ends, and this shows one reply: use redis-cli for it")
    if found := _OF_THE_CONNECTION.intersection(_names(words)):
        raise click.UsageError(f"{found.pop()} changes the connection, which ends with this command: leave it out")


def _ask(url: str, words: Sequence[str], *, as_json: bool) -> object:
    where = redis_url.masked(url)
    try:
        connection = _connection(url, as_json=as_json)
    except (ValueError, TypeError) as e:
        raise ConfigError(f"the Redis URL {where} cannot be used: {e}") from e
    try:
        connection.connect()
        return _reply(connection, words)
    except exceptions.TimeoutError as e:
        raise NoRedis(f"Redis at {where} does not answer in time") from e
    except (exceptions.AuthenticationError, exceptions.ResponseError) as e:  # a password, a database, a permission
        raise NoRedis(f"Redis at {where} refuses: {e}") from e
    except (exceptions.RedisError, OSError) as e:
        raise NoRedis(f"no Redis answers at {where}: {str(e).rstrip('.')}; start one, or give --redis-url") from e
    finally:
        connection.disconnect()


def _connection(url: str, *, as_json: bool) -> Any:
    """Return a bare connection, because a client would change replies and retry commands."""
    # RESP3 tells hashes from lists. Like redis-cli, use it only for JSON, whatever the URL says.
    speaks: dict[str, Any] = {"protocol": 3} if as_json else {"protocol": 2, "parser_class": _Parser}
    pool = ConnectionPool.from_url(
        re.sub(r"(?<=[?&])protocol=\w*&?", "", url),
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=_CONNECT_S,
        socket_timeout=_REPLY_S,
        **speaks,
    )
    return pool.make_connection()


def _reply(connection: Any, words: Sequence[str]) -> object:
    try:
        connection.send_command(*map(os.fsencode, words))
        return connection.read_response()
    except exceptions.NoPermissionError:
        raise
    except exceptions.ResponseError as e:
        raise BeatError(str(e)) from e
    except exceptions.ConnectionError:
        if words[0].upper() == "SHUTDOWN":  # Redis closes the connection instead of replying
            return Status()
        raise
