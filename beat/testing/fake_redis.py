"""Run beat's Lua scripts on fakeredis, in this process and with a clock that is set by hand.

This module changes three things in each script. It removes the first line `#!lua`, which fakeredis does not know. It
replaces TIME by the manual clock. It writes out COPY, because fakeredis stores a copy and its original as one object.
Keys still expire by the machine's clock.
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
# The time arrives as two extra arguments. This line removes them before the script counts its own arguments. It takes
# the place of the first line, so that line numbers in errors stay right.
_TAKES = "local told_micros, told_seconds = table.remove(ARGV), table.remove(ARGV)\n"

_KEPT = "redis.told"  # a field of `redis`, because scripts may not create global variables


class Clocked(Redis):
    """A client whose scripts read the time of a manual clock, on any server."""

    def __init__(self, manual: ManualClock, **options: Any) -> None:
        super().__init__(**options)
        self._manual = manual
        self._told: dict[str, str] = {}
        """Digest of a script → digest of the text that runs in its place."""

    def time(self, **_: Any) -> tuple[int, int]:
        """Return the manual clock's time as seconds and microseconds."""
        now = self._manual.now
        return clock.floor(now), now.microsecond

    def told(self, script: str) -> str:
        """Return the text that runs in place of a script, with the manual clock in place of TIME."""
        return _TAKES + _HEAD.sub("", script).replace(_ASKS, _TOLD)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Run a script with the time of the manual clock."""
        told = self.told(script)
        self._told[_digest(script)] = _digest(told)
        return super().eval(told, numkeys, *keys_and_args, *self.time())

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Run a script that the server knows, with the time of the manual clock if `eval` has run it before."""
        if sha not in self._told:
            return super().evalsha(sha, numkeys, *keys_and_args)
        return super().evalsha(self._told[sha], numkeys, *keys_and_args, *self.time())


class ClockedRedis(Clocked, FakeRedis):
    """A client with a fake server of its own."""

    def __init__(self, manual: ManualClock) -> None:
        super().__init__(manual, server=FakeServer())

    def told(self, script: str) -> str:
        """Return the text that runs in place of a script, with COPY written out as well."""
        return _COPY + _COPIES.sub(_copied, super().told(script))

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Run a script, and keep it as a Lua function, because fakeredis compiles a script again at each call."""
        sha = _digest(script)
        kept = f"{_KEPT}['{sha}']"
        FakeRedis.eval(self, f"{_KEPT} = {_KEPT} or {{}} {kept} = function() {self.told(script)}\nend", 0)
        self._told[sha] = self.script_load(f"return {kept}()")
        return self.evalsha(sha, numkeys, *keys_and_args)


def _copied(call: re.Match[str]) -> str:
    return f"told_copy({call[1]}, {call[2]}, {'true' if call[3] else 'false'})"


def _digest(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
