"""What a Redis must be for beat to work with it, and what an operator should know about one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from redis import exceptions

from beat.errors import NoRedis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.connection import Redis

OLDEST = (7, 0)


def inspect(client: Redis) -> tuple[str, list[str]]:
    """What server this is, and advice about it; refuses one that cannot work, with the reason."""
    try:
        client.ping()
    except exceptions.AuthenticationError as e:
        raise NoRedis(f"Redis refuses user {_user(client)!r}: {_first(e)}. Is the password in the URL right?") from None
    except exceptions.NoPermissionError as e:
        raise NoRedis(f"Redis does not let user {_user(client)!r} work: {_first(e)}") from None
    except exceptions.ResponseError as e:
        if str(e).startswith("WRONGPASS"):
            raise NoRedis(f"Redis refuses user {_user(client)!r}: {_first(e)}") from None
        raise
    try:
        info: Mapping[str, Any] = client.info()
    except exceptions.NoPermissionError:
        return "a Redis", ["Redis does not let us read INFO: whether it keeps what it is told is not known"]
    _refuse(info)
    return version(info), list(_advice(info))


def version(info: Mapping[str, Any]) -> str:
    """`Valkey 9.1.0` or `Redis 7.2.4`."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    return f"{name} {info.get('valkey_version') or info.get('redis_version', 'unknown')}"


def _refuse(info: Mapping[str, Any]) -> None:
    found = tuple(map(int, re.findall(r"\d+", str(info.get("redis_version", "7.0")))[:2]))
    if found < OLDEST:
        raise NoRedis(f"this is {version(info)}, and beat needs 7.0: its scripts could be cut off half-way before that")
    if info.get("cluster_enabled") == 1 or info.get("redis_mode") == "cluster":
        raise NoRedis("this Redis is a cluster, where RQ cannot work: give the URL of a single Redis")
    if info.get("role") in {"slave", "replica"}:
        master = f"{info.get('master_host', 'its master')}:{info.get('master_port', '')}"
        raise NoRedis(f"this Redis is a replica of {master}, and takes no writes: give the master's URL")


def _advice(info: Mapping[str, Any]) -> Iterator[str]:
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        yield (
            f"maxmemory-policy is {policy}: when memory is short, Redis throws schedules or jobs away in silence. "
            "Set it to noeviction"
        )
    if info.get("aof_enabled") == 0:
        yield (
            "appendonly is off: when Redis crashes it forgets what happened since its last snapshot, and those ticks "
            "are enqueued again. Set appendonly yes"
        )


def _user(client: Redis) -> str:
    return str(client.connection_pool.connection_kwargs.get("username") or "default")


def _first(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(". ")
