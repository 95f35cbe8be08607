"""Judge the Redis server: its version and role, latency, persistence, eviction and memory."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from beat.doctor.facts import Unseen
from beat.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding, counted, size, span, unseen
from beat.storage import server_check as redis_server
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.doctor.facts import Server

_SLOW_MS, _HICCUP_MS = 20, 200
_FULL, _ALMOST_FULL = 0.95, 0.80
_MB = 1024 * 1024


def judge(found: Server) -> Iterator[Finding]:
    """Yield all findings about the server."""
    if isinstance(found.info, Unseen):
        what = f"what {found.url} is: version, role, persistence, eviction, memory"
        yield unseen("redis", "version", found.info.right, what)
        yield from latency(found.pings_ms)
        return
    yield from identity(found.info, found.url)
    yield from latency(found.pings_ms)
    yield from persistence(found.info, clock.floor(found.now))
    yield from eviction(found.info)
    yield from memory(found.info)


def identity(info: Mapping[str, Any], url: str) -> Iterator[Finding]:
    """Report version and role; a server that beat rejects is a problem."""
    refused = {remark.about: remark for remark in redis_server.refusals(info)}
    if "version" not in refused:
        yield Finding("redis", "version", OK, f"{redis_server.version(info)} at {url}")
    if "role" not in refused:
        replicas = int(info.get("connected_slaves", 0))
        yield Finding("redis", "role", OK, "master" + (f" of {counted(replicas, 'replica')}" if replicas else ""))
    for remark in refused.values():
        yield Finding("redis", remark.about, PROBLEM, remark.what, remark.remedy)


def latency(pings_ms: tuple[float, ...]) -> Iterator[Finding]:
    """Report the time of a PING; every tick costs two round trips."""
    if not pings_ms:
        return
    median, worst = statistics.median(pings_ms), max(pings_ms)
    what = f"PING takes {median:.1f} ms, at worst {worst:.1f} ms of {len(pings_ms)}"
    if median >= _SLOW_MS:
        remedy = "run schedulers near Redis: every tick is late by two such round trips"
        yield Finding("redis", "latency", WARNING, what, remedy)
    elif worst >= _HICCUP_MS:
        remedy = "SLOWLOG GET 10 names the commands that keep Redis busy"
        yield Finding("redis", "latency", WARNING, what, remedy)
    else:
        yield Finding("redis", "latency", OK, what)


def persistence(info: Mapping[str, Any], now: int) -> Iterator[Finding]:
    """Report what a crash would lose, and writes to disk that failed."""
    remark = next((each for each in redis_server.advice(info) if each.about == "persistence"), None)
    changes = int(info.get("rdb_changes_since_last_save", 0))
    age = span(max(0, now - int(info.get("rdb_last_save_time", now))))
    saved = f"the last snapshot is {age} old, with {counted(changes, 'change')} since"
    if "aof_enabled" not in info:
        yield Finding("redis", "persistence", NOTE, "it does not say whether it keeps what it is told: see appendonly")
    elif remark:
        yield Finding("redis", "persistence", WARNING, f"{remark.what}; {saved}", remark.remedy)
    else:
        yield Finding("redis", "persistence", OK, "appendonly is on: a crash loses about a second")
    failed = {
        "aof_last_write_status": ("the last write to the append-only file failed", PROBLEM),
        "rdb_last_bgsave_status": (f"the last snapshot failed, and Redis may refuse every write; {saved}", PROBLEM),
        "aof_last_bgrewrite_status": ("the last rewrite of the append-only file failed", WARNING),
    }
    for field, (what, level) in failed.items():
        if info.get(field, "ok") != "ok":
            yield Finding("redis", "saving", level, what, "look at the disk and at the log of Redis, then: BGSAVE")


def eviction(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Report whether Redis may evict keys, which it must not."""
    remark = next((each for each in redis_server.advice(info) if each.about == "eviction"), None)
    evicted = int(info.get("evicted_keys", 0))
    if "maxmemory_policy" not in info:
        yield Finding("redis", "eviction", NOTE, "it does not say whether it throws keys away: see maxmemory-policy")
    elif remark is None:
        yield Finding("redis", "eviction", OK, "maxmemory-policy is noeviction")
    elif evicted:
        what = f"{remark.what}; it has thrown away {counted(evicted, 'key')} since it started"
        yield Finding("redis", "eviction", PROBLEM, what, remark.remedy)
    else:
        yield Finding("redis", "eviction", WARNING, remark.what, remark.remedy)


def memory(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Report how much memory is left."""
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    whole = int(info.get("total_system_memory", 0))
    limit, name = (most, "maxmemory") if most else (whole, "the memory of its machine")
    if not limit:
        yield Finding("redis", "memory", NOTE, f"{size(used)} used, and no limit", "CONFIG SET maxmemory 1gb")
        return
    what = f"{size(used)} used of {size(limit)}, {name}"
    if used < limit * _ALMOST_FULL:
        yield Finding("redis", "memory", OK, what)
        return
    full = used >= limit * _FULL
    what += ": a full Redis refuses every write, and nothing fires" if full else ": it is almost full"
    remedy = f"CONFIG SET maxmemory {2 * most // _MB}mb" if most else "give its machine more memory"
    yield Finding("redis", "memory", PROBLEM if full else WARNING, what, remedy)
