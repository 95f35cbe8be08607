"""What is read off a run afterwards: percentiles, and which scripts kept Redis for how long."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import Redis

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.stage import Stage

SHOWN = 32
"""How many arguments of a command the slow log keeps; the last of them counts the others."""
_LEFT_OUT = re.compile(rb"\.\.\. \((\d+) more arguments\)$")


def percentile(values: Sequence[float], percent: float) -> float:
    """The lowest of the values that at least so many in a hundred do not exceed."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class Ran(NamedTuple):
    """One run of a script, as the slow log has it."""

    sha: str
    """Nothing when its whole text was sent."""
    ms: float
    arguments: int
    """How many words the whole command had."""


def ran(entries: Iterable[Mapping[str, Any]]) -> list[Ran]:
    """The scripts among the entries of a slow log."""
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
    """How long Redis was kept by one of them; 0 when none was slow enough to be noted."""
    return max((script.ms for script in scripts), default=0.0)


class SlowLog:
    """Redis' own note of what took long: counted by the server, so that no waiting client is in it."""

    def __init__(self, stage: Stage, *, slower_than_us: int = 200) -> None:
        self._redis: Any = Redis.from_url(stage.url)  # arguments may be no text
        self._redis.config_set("slowlog-log-slower-than", slower_than_us)
        self._redis.config_set("slowlog-max-len", 100_000)
        self.forget()

    def forget(self) -> None:
        """From now on."""
        self._redis.slowlog_reset()

    def scripts(self) -> list[Ran]:
        """All that ran since, if it took long enough."""
        return ran(self._redis.slowlog_get(-1))

    def close(self) -> None:
        """The server goes on noting."""
        self._redis.close()
