"""A Redis in this process whose clock is set by hand: fakeredis, which runs the very scripts that a server runs.

Three things differ, and only in here: fakeredis does not know the first line `#!lua`, a script that asks for TIME is
told the manual clock's, and COPY is written out, for what fakeredis copies stays one thing under two names. Keys that
expire still do so by the machine's clock.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from typing import TYPE_CHECKING, Any

from beat.storage.connection import Redis
from beat.timing import clock

try:
    from fakeredis import FakeRedis, FakeServer

    importlib.import_module("lupa")  # without it fakeredis runs no scripts
except ImportError as e:
    raise ImportError(f"ManualBeat runs on fakeredis with Lua: pip install 'rq-beat[testing]' ({e})") from e

if TYPE_CHECKING:
    from beat.testing.manual_clock import ManualClock

_HEAD = re.compile(r"\A#!lua.*\n")
_ASKS = "redis.call('TIME')"
_TOLD = "({told_seconds, told_micros})"
_COPIES = re.compile(r"redis\.p?call\('COPY', ([^,]+), ([^,)]+)(?:, ('REPLACE'))?\)")
_COPY = (
    "local function told_copy(from, to, replaces) "
    "local found = redis.pcall('HGETALL', from) "
    "if found['err'] or #found == 0 or not replaces and redis.call('EXISTS', to) == 1 then return 0 end "
    "redis.call('DEL', to) redis.call('HSET', to, unpack(found)) return 1 end "
)
# The time comes as two more arguments. They are taken off before the script counts its own, in place of the first
# line, so that the numbers of the lines stay right.
_TAKES = "local told_micros, told_seconds = table.remove(ARGV), table.remove(ARGV)\n"

_KEPT = "redis.told"  # scripts may have no global of their own


class Clocked(Redis):
    """A client whose scripts are told the manual clock's time, whatever server runs them."""

    def __init__(self, manual: ManualClock, **options: Any) -> None:
        super().__init__(**options)
        self._manual = manual
        self._told: dict[str, str] = {}
        """By the digest of a script, the digest of what is run in its place."""

    def time(self, **_: Any) -> tuple[int, int]:
        """Seconds and microseconds, by the manual clock."""
        now = self._manual.now
        return clock.floor(now), now.microsecond

    def told(self, script: str) -> str:
        """What is run in the place of a script."""
        return _TAKES + _HEAD.sub("", script).replace(_ASKS, _TOLD)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Runs a script; if it asks for the time, the manual clock tells it."""
        told = self.told(script)
        self._told[_digest(script)] = _digest(told)
        return super().eval(told, numkeys, *keys_and_args, *self.time())

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Runs a script that the server knows."""
        if sha not in self._told:
            return super().evalsha(sha, numkeys, *keys_and_args)
        return super().evalsha(self._told[sha], numkeys, *keys_and_args, *self.time())


class ClockedRedis(Clocked, FakeRedis):
    """A client of a fake server of its own."""

    def __init__(self, manual: ManualClock) -> None:
        super().__init__(manual, server=FakeServer())

    def told(self, script: str) -> str:
        """What is run in the place of a script, whose copies are copies."""
        return _COPY + _COPIES.sub(_copied, super().told(script))

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Runs a script, and keeps it as a function: what fakeredis is given to run, it compiles at each call."""
        sha = _digest(script)
        kept = f"{_KEPT}['{sha}']"
        FakeRedis.eval(self, f"{_KEPT} = {_KEPT} or {{}} {kept} = function() {self.told(script)}\nend", 0)
        self._told[sha] = self.script_load(f"return {kept}()")
        return self.evalsha(sha, numkeys, *keys_and_args)


def _copied(call: re.Match[str]) -> str:
    return f"told_copy({call[1]}, {call[2]}, {'true' if call[3] else 'false'})"


def _digest(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
