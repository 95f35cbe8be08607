"""Compute percentiles, and read from the slow log how long scripts blocked Redis."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import Redis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.stage import Stage

SHOWN = 32
"""How many arguments of a command the slow log keeps; the last one counts those it left out."""
_LEFT_OUT = re.compile(rb"\.\.\. \((\d+) more arguments\)$")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the lowest value that at least `percent` of the values do not exceed."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class Ran(NamedTuple):
    """One call of a script, as the slow log records it."""

    sha: str
    """Empty if the client sent the whole text of the script."""
    ms: float
    arguments: int
    """The number of arguments of the whole command."""


def ran(entries: Iterable[Mapping[str, Any]]) -> list[Ran]:
    """Return the script calls among the entries of a slow log."""
    found = []
    for entry in entries:
        words: list[bytes] = entry["command"].split(b" ")
        if words[0].upper() in {b"EVALSHA", b"EVAL"}:
            more = _LEFT_OUT.search(entry["command"])
            number = SHOWN - 1 + int(more[1]) if more else len(words)
            sha = words[1].decode() if words[0].upper() == b"EVALSHA" else ""
            found.append(Ran(sha, entry["duration"] / 1000, number))
    return found


def longest_ms(scripts: Iterable[Ran]) -> float:
    """Return the longest time that one script blocked Redis, in ms; 0 if none was slow enough for the log."""
    return max((script.ms for script in scripts), default=0.0)


class SlowLog:
    """Redis' slow log: times measured by the server, so that no client's wait is included."""

    def __init__(self, stage: Stage, *, slower_than_us: int = 200) -> None:
        self._redis: Any = Redis.from_url(stage.url)  # arguments may be no text
        self._redis.config_set("slowlog-log-slower-than", slower_than_us)
        self._redis.config_set("slowlog-max-len", 100_000)
        self.forget()

    def forget(self) -> None:
        """Forget all entries so far."""
        self._redis.slowlog_reset()

    def scripts(self) -> list[Ran]:
        """Return the slow script calls since the last `forget`."""
        return ran(self._redis.slowlog_get(-1))

    def close(self) -> None:
        """Close the connection; the server keeps logging."""
        self._redis.close()
