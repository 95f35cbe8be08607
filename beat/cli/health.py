"""`beat health`: tell container probes whether a scheduler is alive and completes cycles.

A probe runs every few seconds and spends most of its time on imports. So this module imports only what it needs.
"""

from __future__ import annotations

import contextlib
import functools
import re
import socket
from typing import TYPE_CHECKING, Any

import click

from beat.cli import output
from beat.client import liveness
from beat.config import redis_url, sources
from beat.dev import embedded
from beat.errors import BadDuration, ConfigError, NoRedis
from beat.storage import bare_client, clock_setback, heartbeat
from beat.storage.keys import Keys
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from beat.config.sources import Raw
    from beat.storage.clock_setback import Setback
    from beat.storage.heartbeat import Instance

    Ask = Callable[[Sequence[Sequence[str]]], list[Any]]

_BAD = 1
_PATIENCE_S = 2.0
_SPEAKS: dict[str, Any] = {"protocol": 2, "socket_connect_timeout": _PATIENCE_S, "socket_timeout": _PATIENCE_S}
_OURS = re.compile(rf"(?<=[?&])(?:{'|'.join(_SPEAKS)})=[^&]*&?")  # a URL may not override these options


@click.command("health")
@click.option("--local", is_flag=True, help="Require schedulers on this machine, all of them healthy.")
@click.option(
    "--max-age", metavar="PERIOD", help="Accept cycles up to this age.  [default: 30s, or twice the interval]"
)
@click.option(
    "--redis-url", "url", metavar="URL", help="Use this Redis.  [default: the setting, or that of beat dev here]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; durations are in seconds.")
def command(*, local: bool, max_age: str | None, url: str | None, as_json: bool) -> int:
    """Say whether a scheduler is alive and at work: exit with 0 if so, and with 1 if not.

    \b
    beat health                  a scheduler of this Redis has ended a cycle within 30 seconds
    beat health --local          all schedulers of this machine have: for the probe of a container
    beat health --max-age 2m     within two minutes
    beat health --json | jq '.beats[] | select(.fresh | not)'

    A scheduler is not healthy before its first cycle has ended. Ends with 1 when no scheduler is alive or the last
    cycle is too old, and with 69 when there is no Redis to ask. If Redis' clock went back, a second line says until
    when nothing fires. The exit code stays the same, because a restart would not help.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    found = sources.find({"redis_url": url}).values
    limit = _limit(max_age, found)
    now, beats, back = _read(_where(found), Keys(_text(found, "prefix", Keys().prefix)))
    here = socket.gethostname() if local else None
    told = liveness.tell((beat for beat in beats if here in (None, beat.host)), now, limit)
    healthy = bool(told) and (all if local else any)(each.fresh for each in told)
    if as_json:
        output.document(
            healthy=healthy,
            host=here,
            max_age=limit.total_seconds(),
            now=clock.text(now),
            setback=back.plain() if back else None,
            beats=[liveness.plain(each) for each in told],
        )
    else:
        output.echo(output.printable(liveness.words(told, limit, here, elsewhere=len(beats) - len(told))))
        if back:
            output.echo(output.printable(back.words))
    return 0 if healthy else _BAD


def _limit(given: str | None, found: Mapping[str, Raw]) -> timedelta:
    if given is not None:
        limit = durations.parse(given, "--max-age")
        if not limit:
            raise BadDuration("--max-age 0 would let no pass count: write 30s")
        return limit
    with contextlib.suppress(BadDuration):  # `beat run` and `beat config` report an invalid setting
        interval = durations.parse(found["interval"].value if "interval" in found else 0)
        return liveness.limit(interval)
    return liveness.limit()


def _where(found: Mapping[str, Raw]) -> str:
    """Return the URL that is given or set, or else that of `beat dev` in this directory, or else the default."""
    if "redis_url" not in found:
        return embedded.running() or redis_url.DEFAULT
    url = _text(found, "redis_url", "")
    if wrong := redis_url.problem(url):
        raise ConfigError(f"{found['redis_url']} {wrong}")
    return url


def _text(found: Mapping[str, Raw], name: str, default: str) -> str:
    value = found[name].value if name in found else default
    if not isinstance(value, str):
        raise ConfigError(f"{found[name]} must be text")
    return value


def _read(url: str, keys: Keys) -> tuple[datetime, list[Instance], Setback | None]:
    """Return Redis' time, the live schedulers in the order of their names, and the setback if that clock went back."""
    where = redis_url.masked(url)
    try:
        with _line(url) as ask:
            *times, time, scores = ask([*_times(keys), ("TIME",), ("ZRANGE", keys.instances, "0", "-1", "WITHSCORES")])
            time, scores = _good([time, scores])
            now = clock.from_ms(int(time[0]) * 1000 + int(time[1]) // 1000)
            lapses = zip(scores[::2], scores[1::2], strict=True)
            names = sorted(heartbeat.text(name) for name, at in lapses if float(at) > clock.to_ms(now))
            told = _good(ask([("HGETALL", keys.instance(name)) for name in names]))
    except bare_client.Refused as e:
        raise NoRedis(f"Redis at {where} refuses: {e}") from e
    except OSError as e:
        raise NoRedis(f"no Redis answers at {where}: {e}; start one, or set BEAT_REDIS_URL") from e
    hashes = (dict(zip(each[::2], each[1::2], strict=True)) for each in told)
    beats = [heartbeat.read(name, each) for name, each in zip(names, hashes, strict=True) if each]
    return now, beats, _setback(now, times)


def _times(keys: Keys) -> list[tuple[str, ...]]:
    """Return the commands whose replies `_setback` reads. If Redis rejects them, no setback is reported."""
    return [("HGETALL", keys.meta), ("ZRANGE", keys.due, "0", "0", "WITHSCORES")]


def _setback(now: datetime, times: list[Any]) -> Setback | None:
    meta, first = ([] if isinstance(each, Exception) else each for each in times)
    seen = dict(zip(meta[::2], meta[1::2], strict=True)).get(b"time", b"")
    return clock_setback.read(now, heartbeat.text(seen), float(first[1]) if first else None)


def _good(replies: list[Any]) -> list[Any]:
    """Replace each WRONGTYPE error by an empty list, and raise any other error."""
    for reply in replies:
        if isinstance(reply, Exception) and not str(reply).startswith("WRONGTYPE"):
            raise reply
    return [[] if isinstance(reply, Exception) else reply for reply in replies]


@contextlib.contextmanager
def _line(url: str) -> Iterator[Ask]:
    """Yield a function that sends commands and returns the raw replies.

    Use redis-py only for URLs that the bare client does not support.
    """
    if plain := bare_client.place(url):
        with bare_client.line(plain, _PATIENCE_S) as line:
            yield line.ask
        return
    from redis import ConnectionPool, exceptions  # noqa: PLC0415 (the import takes half of a probe's time)
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    try:
        pool: Any = ConnectionPool.from_url(_OURS.sub("", url), retry=Retry(NoBackoff(), 0), **_SPEAKS)
        connection = pool.make_connection()
    except (ValueError, TypeError) as e:
        raise ConfigError(f"the Redis URL {redis_url.masked(url)} cannot be used: {e}") from e
    try:
        connection.connect()
        yield functools.partial(_replies, connection, exceptions.ResponseError)
    except (exceptions.ResponseError, exceptions.AuthenticationError) as e:
        raise bare_client.Refused(str(e)) from e
    except exceptions.RedisError as e:
        raise ConnectionError(str(e).rstrip(".")) from e
    finally:
        connection.disconnect()


def _replies(connection: Any, error: type[Exception], commands: Sequence[Sequence[str]]) -> list[Any]:
    """Return the replies of a bare redis-py connection, with an error in place of each rejected command."""
    connection.send_packed_command(connection.pack_commands(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(connection.read_response())
        except error as e:
            replies.append(bare_client.Refused(str(e)))
    return replies
