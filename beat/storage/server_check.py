"""Check whether a Redis server can run beat, and advise about its configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import exceptions

from beat.errors import NoRedis
from beat.storage import connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.storage.connection import Redis

OLDEST = (7, 0)


class Remark(NamedTuple):
    """A problem of a server, and its remedy."""

    about: str
    """`version`, `role`, `eviction` or `persistence`."""
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def inspect(client: Redis) -> tuple[str, list[str]]:
    """Return the server's name and version, and advice about it; raise NoRedis if beat cannot work with it."""
    greet(client)
    try:
        info: Mapping[str, Any] = client.info()
    except exceptions.NoPermissionError:
        return "a Redis", ["Redis does not let us read INFO: whether it keeps what it is told is not known"]
    for remark in refusals(info):
        raise NoRedis(str(remark))
    return version(info), [str(remark) for remark in advice(info)]


def greet(client: Redis) -> None:
    """Raise NoRedis if the server rejects the login or the permissions of this user."""
    try:
        client.ping()
    except exceptions.AuthenticationError as e:
        raise NoRedis(f"Redis refuses user {user(client)!r}: {_first(e)}. Is the password in the URL right?") from None
    except exceptions.NoPermissionError as e:
        raise may_not(client, "work", e) from None
    except exceptions.ResponseError as e:
        if str(e).startswith("WRONGPASS"):
            raise NoRedis(f"Redis refuses user {user(client)!r}: {_first(e)}") from None
        raise


def version(info: Mapping[str, Any]) -> str:
    """Return the server's name and version, such as `Valkey 9.1.0` or `Redis 7.2.4`."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    return f"{name} {info.get('valkey_version') or info.get('redis_version', 'unknown')}"


def number(info: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the Redis version that the server is compatible with, such as `(7, 2)`; `(7, 0)` if it does not say."""
    return tuple(map(int, re.findall(r"\d+", str(info.get("redis_version", "7.0")))[:2]))


def user(client: Redis) -> str:
    """Return the user name of this client, or `***` for a name without a password.

    Such a name is often a password in the wrong place of the URL.
    """
    given = client.connection_pool.connection_kwargs
    name = str(given.get("username") or "default")
    return name if name == "default" or given.get("password") else "***"


def may_not(client: Redis, what: str, error: Exception) -> NoRedis:
    """Return an error such as `Redis does not let user 'beat' work: …`.

    Redis 7.0 says only "this user", and other versions often name no user at all.
    """
    return NoRedis(f"Redis does not let user {user(client)!r} {what}: {_first(error)}")


def refused(client: Redis, where: str, error: Exception) -> NoRedis:
    """Return an error such as `Redis at redis://db refuses: …`, with the user name if a permission is missing."""
    who = f" user {user(client)!r}" if connection.forbids(error) else ""
    return NoRedis(f"Redis at {where} refuses{who}: {_first(error)}")


def refusals(info: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield the reasons why beat cannot work with the server."""
    if number(info) < OLDEST:
        cut = f"this is {version(info)}, and beat needs 7.0, for before that its scripts could be cut off half-way"
        yield Remark("version", cut, "install Redis 7.0 or newer, or Valkey")
    if info.get("cluster_enabled") == 1 or info.get("redis_mode") == "cluster":
        yield Remark("role", "this Redis is a cluster, where RQ cannot work", "give the URL of a single Redis")
    if info.get("role") in {"slave", "replica"}:
        master = f"{info.get('master_host', 'its master')}:{info.get('master_port', '')}"
        yield Remark("role", f"this Redis is a replica of {master}, and takes no writes", "give the master's URL")


def advice(info: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield configuration problems that may lose data."""
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        lost = (
            f"maxmemory-policy is {policy}, so that Redis throws schedules or jobs away in silence when memory is short"
        )
        yield Remark("eviction", lost, "CONFIG SET maxmemory-policy noeviction")
    if info.get("aof_enabled") == 0:
        again = (
            "appendonly is off, so that a Redis that crashes forgets what happened since its last snapshot, and those "
            "ticks are enqueued again"
        )
        yield Remark("persistence", again, "CONFIG SET appendonly yes")


def _first(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(". ")
