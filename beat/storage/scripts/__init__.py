"""Load the atomic steps, one Lua file each: header (purpose, KEYS, ARGV, replies), bindings, guards, writes.

The header is the signature: a call passes exactly the arguments named there, in any order.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beat.storage.scripts import rights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Value = str | bytes | int

_HERE = Path(__file__).parent
_NAMED = re.compile(r"^-- (KEYS|ARGV|ITEM)\[(\d+)\] +(\w+) ", re.MULTILINE)
_CONTAINERS = {"memory", "pubsub", "script", "xgroup", "xinfo"}
"""Commands whose first argument is a subcommand."""
_REPLY = re.compile(r"^-- +([A-Z]{2,})  ", re.MULTILINE)
_CALL = re.compile(r"redis\.p?call\(([^,()]+)(?:, '(\w+)')?")
_INCLUDE = re.compile(r"^-- include (\w+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """A script and the signature in its header."""

    name: str
    text: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    item: tuple[str, ...]
    """The fields of each of the items that follow the arguments."""
    replies: tuple[str, ...]

    @functools.cached_property
    def sha(self) -> str:
        """Return the digest for EVALSHA."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    @functools.cached_property
    def commands(self) -> frozenset[str]:
        """Return every command that the script may call, as Redis' ACL names it: `hset`, `xinfo|stream`."""
        calls = _CALL.findall(self.text)  # both commands of `x and 'SADD' or 'SREM'`
        found = ((name.lower(), word) for names, word in calls for name in re.findall(r"'(\w+)'", names))
        return frozenset(f"{name}|{word.lower()}" if name in _CONTAINERS else name for name, word in found)

    def arrange(self, named: Mapping[str, Any], items: Iterable[Sequence[Value]]) -> tuple[int, list[Value]]:
        """Return the number of keys, then keys and arguments in the header's order; raise TypeError on other names."""
        wanted = {*self.keys, *self.args}
        if wanted != named.keys():
            raise TypeError(f"{self.name}.lua takes {sorted(wanted)}, not {sorted(named)}")
        values = [value for item in items for value in item]
        return len(self.keys), [*(named[name] for name in (*self.keys, *self.args)), *values]


@functools.cache
def script(name: str) -> Script:
    """Return the script of that name."""
    written = (_HERE / f"{name}.lua").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {"KEYS": [], "ARGV": [], "ITEM": []}
    for kind, number, word in _NAMED.findall(written):
        found[kind].append(word)
        if int(number) != len(found[kind]):
            raise ValueError(f"{name}.lua: {kind}[{number}] is out of order")
    text = _INCLUDE.sub(lambda part: (_HERE / "parts" / f"{part[1]}.lua").read_text(encoding="utf-8"), written)
    return Script(
        name=name,
        text=rights.expand(name, text, found),
        keys=tuple(found["KEYS"]),
        args=tuple(found["ARGV"]),
        item=tuple(found["ITEM"]),
        replies=tuple(dict.fromkeys(_REPLY.findall(written))),
    )


def names() -> list[str]:
    """Return the names of all scripts."""
    return sorted(file.stem for file in _HERE.glob("*.lua"))
