"""Asks Redis what this user may do, without doing any of it; nobody needs a right for that but to run scripts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import connection, jobs, server
from beat.doctor.facts import Rights, Unseen
from beat.doctor.reading import tried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beat.doctor.rights import Grant, Rule
    from beat.store import Store

_FOREIGN = "a-key-of-somebody-else"
_OF_NO_KEY = {
    "client|setinfo": ["lib-name", "x"],
    "exec": [],
    "info": [],
    "multi": [],
    "ping": [],
    "pubsub|numsub": ["x"],
    "scan": ["0"],
    "script|exists": ["x"],
    "script|load": ["x"],
    "select": ["0"],
    "time": [],
}
_ONLY_TO_ASK = {
    "client|setinfo", "hgetall", "info", "lindex", "memory|usage", "scan", "script|exists", "script|load",
    "select", "srandmember", "xinfo|groups", "xinfo|stream", "xlen", "xread",
}  # fmt: skip
_ONLY_ASKED = {f"%R~{jobs.SUSPENDED_KEY}", f"%R~{jobs.workers_key('*')}"}


def excess() -> dict[str, list[str]]:
    """What nobody needs for beat: in words, and as a command."""
    return {
        "read any key": ["get", _FOREIGN],
        "change any key": ["set", _FOREIGN, "x"],
        "delete queues": ["del", jobs.queue_key("x")],
        "read jobs of others": ["hgetall", jobs.job_key(_FOREIGN)],
        "KEYS": ["keys", "*"],
        "FLUSHALL": ["flushall"],
        "CONFIG": ["config", "set", "x", "x"],
        "ACL": ["acl", "setuser", "x"],
        "SHUTDOWN": ["shutdown"],
    }


def look(store: Store, rule: Rule) -> Rights:
    """What the user lacks of the rule, and what it may beyond."""
    user, needed, probes = server.user(store.client), list(samples(rule)), excess()
    said = tried(lambda: may(store, [*(each.command for each in needed), *probes.values()]))
    if isinstance(said, Unseen):
        return Rights(user, said)
    lacking = [each for each, allowed in zip(needed, said, strict=False) if not allowed]
    return Rights(
        user,
        lacks=tuple(each.right for each in lacking if not each.is_only_asked),
        lacks_asking=tuple(each.right for each in lacking if each.is_only_asked),
        excess=tuple(words for words, allowed in zip(probes, said[len(needed) :], strict=True) if allowed),
        probed=tuple(probes),
    )


def may(store: Store, commands: Sequence[Sequence[str]]) -> list[bool]:
    """Whether this user may do each of these commands."""
    found: list[Any] = connection.run(store.client, "may", [[json.dumps(words)] for words in commands])
    return [each == 1 for each in found]


class Sample(NamedTuple):
    """A command that a rule allows."""

    command: list[str]
    right: str
    """In words: `+hset on ~beat:*`."""
    is_only_asked: bool
    """Whether a beat does without: only who asks needs it."""


def samples(rule: Rule) -> Iterator[Sample]:
    """One for each command and each pattern of the rule."""
    for grant in rule.grants:
        for name in grant.commands:
            for command, patterns in _commands(grant, name):
                asked = name in _ONLY_TO_ASK or patterns in _ONLY_ASKED
                yield Sample(command, f"+{name} on {patterns}" if patterns else f"+{name}", asked)


def _commands(grant: Grant, name: str) -> Iterator[tuple[list[str], str]]:
    """With the patterns that each is about."""
    words, keys = name.split("|"), [_key(pattern) for pattern in grant.keys]
    if name in _OF_NO_KEY:
        yield [*words, *_OF_NO_KEY[name]], ""
    elif name in {"eval", "evalsha"}:
        yield [name, "x", str(len(keys)), *keys], " ".join(grant.keys)
    elif name == "copy":
        yield [name, keys[0], keys[-1]], " ".join(grant.keys)
    else:
        before = {"xread": ["streams"], "xreadgroup": ["group", "x", "x", "streams"]}.get(name, [])
        after = ["0"] if before else ["x"] if name == "publish" else []
        for key, pattern in zip(keys, grant.keys, strict=True):
            yield [*words, *before, key, *after], pattern


def _key(pattern: str) -> str:
    """A key, or a channel, of that pattern."""
    return re.sub(r"^(%\w+)?[~&]", "", pattern).replace("*", "x")
