"""Compare what the current scripts leave in Redis, and what they reply, with the previous ones (`previous/`).

The same random states and messages go to both, each in a database of its own. Everything that depends on the time is
pinned, so every key, value, expiry and stream id must be the same, byte for byte. `make compare` runs thousands of
items and prints which replies each kind of item got.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from redis import Redis
from redis.exceptions import ResponseError

from beat.dev import embedded
from beat.storage import batches, messages, script_keys, scripts, store
from beat.storage.keys import Keys
from tests.resilience import script_scenarios as scenarios
from tests.resilience.previous import batches as previous_batches
from tests.resilience.previous import loader
from tests.resilience.previous import messages as previous_messages
from tests.resilience.script_items import (
    AdmitItem,
    CloseItem,
    DropItem,
    Enqueued,
    FireItem,
    QuarantineItem,
    RegisterItem,
    ReleaseItem,
    ResumeItem,
    SkipItem,
    TriggerItem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.script_items import Item, Message

LIMITS = {
    "history_limit": 6,
    "events_limit": 50,
    "watched_limit": 3,
    "cycle": 1000,
    "misfire_limit": 20_000,
    "early": 1000,
}
# All that a script learns about the time comes from the key `clock`: TIME, how long keys live, the ids of a stream.
PINNED = """
local redis = (function(real)
  local clock = real.call('LRANGE', 'clock', 0, 1)
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local function at(ttl, unit) return string.format('%.0f', now + ttl * unit) end
  local function through(run)
    return function(command, ...)
      local name, words = string.upper(command), {...}
      if name == 'TIME' then return clock end
      if name == 'TTL' or name == 'PTTL' or name == 'SETEX' or name == 'PSETEX' then error(name .. ' is not pinned') end
      if name == 'EXPIRE' or name == 'PEXPIRE' then
        name, words[2] = 'PEXPIREAT', at(words[2], name == 'EXPIRE' and 1000 or 1)
      end
      for n, word in ipairs(words) do
        if name == 'XADD' and n > 1 and word == '*' then words[n] = at(0, 0) .. '-*' break end
        if name == 'SET' and n > 2 and (word == 'EX' or word == 'PX') then
          words[n], words[n + 1] = 'PXAT', at(words[n + 1], word == 'EX' and 1000 or 1)
        end
      end
      return run(name, unpack(words))
    end
  end
  return setmetatable({call = through(real.call), pcall = through(real.pcall)}, {__index = real})
end)(redis)
"""
KEYSPACE = """
local read = {string = {'GET'}, list = {'LRANGE', 0, -1}, set = {'SMEMBERS'}, hash = {'HGETALL'},
  zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, stream = {'XRANGE', '-', '+'}}
local found = {}
for n, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  found[n] = {key, kind, redis.call('PEXPIRETIME', key), redis.call(read[kind][1], key, unpack(read[kind], 2))}
end
return found
"""


class Reply(NamedTuple):
    """The reply to one item."""

    code: str
    words: bytes = b""


@dataclass(frozen=True)
class Positions:
    """The protocol with positions: eight kinds of item in one script, 23 words each."""

    text: Callable[[str], str]
    arguments: Callable[[str], tuple[tuple[str, ...], tuple[str, ...]]]
    fixed: Mapping[str, Any]
    types: Any
    """Has the classes Item, Closing and Registration."""
    counted: Callable[..., Iterator[Any]]
    words_of: Callable[..., Iterator[Any]]

    def script(self, message: Message) -> str:
        """Return the name of the script that takes the message."""
        return message.step if message.step in {"close", "register"} else "fire"

    def words(self, message: Message) -> tuple[list[Any], list[Any]]:
        """Return the keys and the other arguments of the script."""
        keys, args = self.arguments(self.script(message))
        named = {**self.fixed, **LIMITS, "token": message.by, "beat": message.by}
        items = [self._item(item) for item in message.items]
        found = self.words_of(items) if message.step == "register" else iter(items)
        found = self.counted(items) if self.script(message) == "fire" else found
        return [named[key] for key in keys], [
            *(named[name] for name in args),
            *(word for each in found for word in each),
        ]

    def replies(self, message: Message, reply: Any) -> list[Reply]:
        """Return the reply to each item."""
        if message.step == "close":
            return [_reply(each) for each in reply]
        if message.step == "register":
            return [_reply(each) for each in reply[1:]]
        found = [Reply("OK")] * len(message.items)
        for which, *words in reply[2:]:
            found = [_reply(words)] * len(found) if not which else [*found[: which - 1], _reply(words), *found[which:]]
        return found

    def _item(self, item: Item) -> Any:
        if isinstance(item, CloseItem):
            sign, part, ttl = ("|".join(item.sign or ()), " ".join(map(str, item.part or ())), item.ttl)
            return self.types.Closing(
                **_shallow(item) | {"sign": sign, "part": part, "ttl": "" if ttl is None else ttl}
            )
        if isinstance(item, RegisterItem):
            moved = {"next": "keep" if item.next is None else item.next}
            version = {"version": "" if item.version is None else str(item.version)}
            return self.types.Registration(**_shallow(item) | moved | version)
        return self.types.Item(id=item.id, **self._fire(item))

    def _fire(self, item: Item) -> dict[str, Any]:  # by the old names
        match item:
            case ReleaseItem():
                return {"kind": "release", "rev": ""}
            case QuarantineItem():
                return {"kind": "quarantine", "rev": item.rev, "error": item.error}
            case SkipItem():
                named = _of(item, "rev tick due next next_due last reason why error")
                return {"kind": "skip", **named, "number": item.count, "expects": _lines(item.expects)}
            case ResumeItem():
                named = _of(item, "rev tick next next_due last")
                version = "" if item.version is None else item.version
                by = "disabled" if item.is_disabled else ""
                return {
                    "kind": "resume",
                    **named,
                    "number": item.count,
                    "reason": item.until,
                    "max_runs": version,
                    "by": by,
                }
            case TriggerItem():
                named = {
                    **_of(item, "rev tick next next_due data"),
                    "number": item.remembered_s,
                    "last": item.instead_of,
                }
                return {"kind": "manual", **_enqueued(item, "forced" if item.is_forced else "cleared"), **named}
            case DropItem():
                named = {**_of(item, "rev tick due reason"), "last": item.after, "expects": _lines(item.expects)}
                return {"kind": "pass", **_enqueued(item), **named}
            case AdmitItem():
                return {"kind": "admit", **_enqueued(item), **_of(item, "rev tick due"), "last": item.after}
            case FireItem():
                named = {**_of(item, "rev tick due next next_due error"), "expects": _lines(item.expects)}
                return {"kind": "fire", **_enqueued(item, "cleared" if item.is_cleared else ""), **named}
        raise TypeError(item)


def _of(item: Any, names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names.split()}


def _shallow(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _lines(expects: tuple[Any, ...]) -> str:
    return "".join(f"{each.id} {each.field} {each.value}\n" for each in expects)


def _enqueued(item: Enqueued, mark: str = "") -> dict[str, Any]:
    lengths = " ".join(str(len(run)) for run in item.runs).encode() + b"\n" if len(item.queues) > 1 else b""
    slot = " ".join(map(str, item.slot or ()))
    return {
        **_of(item, "job by why uses"),
        "queue": "\n".join(item.queues),
        "run": lengths + b"".join(item.runs),
        "at": "front" if item.at_front else "back",
        "slot": f"{slot} {mark}".strip() if slot and mark != "forced" else slot,
        "group": f"{item.group} {mark}".strip() if item.group else "",
        "max_runs": "" if item.max_runs is None else item.max_runs,
    }


def _reply(words: Any) -> Reply:
    code, *others = words
    return Reply(code.decode(), b" ".join(others))


PREVIOUS = Positions(
    text=loader.text,
    arguments=loader.arguments,
    fixed=loader.FIXED,
    types=previous_messages,
    counted=previous_batches.counted,
    words_of=previous_batches.words_of,
)
CURRENT = Positions(  # until the scripts have another protocol: then this one is theirs
    text=lambda name: scripts.script(name).text,
    arguments=lambda name: (scripts.script(name).keys, scripts.script(name).args),
    fixed=script_keys.fixed(Keys()),
    types=messages,
    counted=batches.counted,
    words_of=store.words_of,
)


class Difference(NamedTuple):
    """What the current scripts do otherwise."""

    seed: int
    message: Message
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((f"seed {self.seed}, {self.message.step} by {self.message.by}:", *self.lines))


class Database:
    """A database of Redis with one set of scripts."""

    def __init__(self, server: PrivateRedis, number: int, protocol: Positions) -> None:
        self.client: Any = Redis(unix_socket_path=str(server.socket), db=number)
        self.protocol = protocol
        self._keyspace = self.client.register_script(KEYSPACE)

    def put(self, commands: list[tuple[Any, ...]]) -> None:
        """Hold exactly what these commands write."""
        self.client.flushdb()
        self.write(commands)

    def write(self, commands: list[tuple[Any, ...]]) -> None:
        """Send these commands."""
        with self.client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            pipe.execute()

    def send(self, message: Message) -> list[Reply]:
        """Run the script, and return the reply to each item."""
        keys, words = self.protocol.words(message)
        pinned = _pinned(self.protocol.text(self.protocol.script(message)))
        try:
            if not self.client.script_exists(pinned.sha)[0]:
                self.client.script_load(pinned.text)
            reply = self.client.evalsha(pinned.sha, len(keys), *keys, *words)
        except ResponseError as error:  # without the place in the script
            return [Reply("ERROR", re.sub(r" script: .*|user_script:\d+", "", str(error)).encode())]
        return self.protocol.replies(message, reply)

    def keyspace(self) -> dict[bytes, Any]:
        """Return every key's type, expiry and value."""
        found = {key: (kind, expires, value) for key, kind, expires, value in self._keyspace()}
        return {key: (kind, expires, _unordered(kind, value)) for key, (kind, expires, value) in found.items()}


class _Pinned(NamedTuple):
    text: str
    sha: str


@functools.cache
def _pinned(text: str) -> _Pinned:
    first, _, rest = text.partition("\n")
    pinned = f"{first}\n{PINNED.replace(chr(10), ' ')}{rest}"
    return _Pinned(pinned, hashlib.sha1(pinned.encode(), usedforsecurity=False).hexdigest())


def _unordered(kind: bytes, value: Any) -> Any:
    if kind == b"hash":
        return dict(zip(value[::2], value[1::2], strict=True))
    return sorted(value) if kind == b"set" else value


class Comparison:
    """Two databases, and what was asked of both so far."""

    def __init__(self, server: PrivateRedis, current: Positions = CURRENT, previous: Positions = PREVIOUS) -> None:
        self._previous, self._current = Database(server, 1, previous), Database(server, 2, current)
        self.items = 0
        self.heard: Counter[tuple[str, str, str]] = Counter()
        """How often: script, kind of item, reply code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._previous, self._current):
            each.client.close()

    def run(self, seed: int) -> Difference | None:
        """Send the messages of one scenario to both, and return the first difference."""
        scenario = scenarios.scenario(seed)
        for each in (self._previous, self._current):
            each.put(scenario.state)
        for n, message in enumerate(scenario.messages):
            for each in (self._previous, self._current) if n else ():
                each.write(scenario.claims)
            was, now = self._previous.send(message), self._current.send(message)
            self._count(message, was)
            lines = [f"{item}\n  replied {a}\n  now     {b}" for item, a, b in _unlike(message, was, now)]
            before, after = self._previous.keyspace(), self._current.keyspace()
            lines += [
                f"{key.decode(errors='replace')}\n  had {before.get(key)}\n  now {after.get(key)}"
                for key in sorted(before.keys() | after.keys())
                if before.get(key) != after.get(key)
            ]
            if lines:
                return Difference(seed, message, tuple(lines))
        return None

    def until(self, items: int, first: int = 0) -> Difference | None:
        """Run scenarios until so many items were sent, or until there is a difference."""
        seed = first
        while self.items < items:
            if found := self.run(seed):
                return found
            seed += 1
        return None

    def missing(self) -> dict[str, list[str]]:
        """Return the reply codes that a script's header promises, and that no item got."""
        heard = {(script, code) for script, _, code in self.heard}
        found = {name: [code for code in loader.replies(name) if (name, code) not in heard] for name in SCRIPTS}
        return {name: codes for name, codes in found.items() if codes}

    def _count(self, message: Message, replies: list[Reply]) -> None:
        self.items += len(message.items)
        for item, reply in zip(message.items, replies, strict=False):
            kind = item.kind if isinstance(item, CloseItem) else type(item).__name__.removesuffix("Item").lower()
            self.heard[PREVIOUS.script(message), kind, reply.code] += 1


SCRIPTS = ("fire", "close", "register")


def _unlike(message: Message, was: list[Reply], now: list[Reply]) -> Iterator[tuple[Any, Any, Any]]:
    for n in range(max(len(was), len(now))):
        one, other = (found[n] if n < len(found) else None for found in (was, now))
        if one != other or (one and one.code == "ERROR"):  # an error of both is no agreement
            yield message.items[n] if n < len(message.items) else None, one, other


def main() -> int:
    """Compare, and print which replies were heard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="run this scenario only")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="beat-")))
        comparison = stack.enter_context(Comparison(stack.enter_context(embedded.start(place / "redis"))))
        found = comparison.until(asked.items) if asked.seed is None else comparison.run(asked.seed)
    lines = [
        f"{script:9} {kind:11} {code:9} {number:6}" for (script, kind, code), number in sorted(comparison.heard.items())
    ]
    lines.append(f"{comparison.items} items; never heard: {comparison.missing() or 'nothing'}")
    sys.stdout.write("\n".join((*lines, str(found or "no difference"), "")))
    return 1 if found or (asked.seed is None and comparison.missing()) else 0


if __name__ == "__main__":
    sys.exit(main())
