"""Define the smallest Redis ACL rule with which beat works, and compare it with the rights of the current user.

On its own keys beat may use the commands of its scripts, which are read from their texts. On RQ's keys each command is
granted only with the key patterns that it needs: queues can be filled but not deleted, and only beat's own jobs can be
changed. Rights are probed without running the commands, which needs no right but that to run scripts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.verify import jobs_begin
from beat.doctor.collect import tried
from beat.doctor.facts import Rights, Unseen
from beat.jobs import job_template
from beat.storage import connection, scripts, server_check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beat.storage.keys import Keys
    from beat.storage.store import Store


REPLACE, GROUPS, DATABASE = "overlap='replace'", "readers of events in groups", "a database other than 0"
FEATURES = (REPLACE, GROUPS, DATABASE)
"""The features that need more rights."""
_SCRIPTS = {"take": GROUPS, "decide": GROUPS, "withdraw": REPLACE}
_COSTLY = {"sort_ro"}  # needs the right to read every key; without it the script uses more commands
_SETINFO_SINCE = (7, 2)

# Commands that Python sends outside of scripts.
_EVERYWHERE = "exec info multi ping script|exists script|load time"
_ON_OUR_KEYS = (
    "del exists get hget hgetall hlen hmget hscan hset hsetnx lindex llen lrange memory|usage mget pexpire scard "
    "smismember sscan type xinfo|groups xinfo|stream xlen xread zadd zcard zcount zmscore zrange zrangebylex "
    "zrangebyscore zrank zrem zscan"
)
_NAMES = "scan"  # `beat verify` finds jobs by their key names
_IN_GROUPS = {"xack", "xgroup|destroy"}
# Read-only commands: enough for queries and for a read-only web UI.
_READING = frozenset(
    f"{_EVERYWHERE} {_NAMES} client|setinfo eval evalsha exists get hexists hget hgetall hlen hmget hrandfield hscan "
    "hvals lindex llen lpos lrange memory|usage mget pttl scard select sismember smembers smismember srandmember sscan "
    "ttl type xinfo|consumers xinfo|groups xinfo|stream xlen xpending xrange xread xrevrange zcard zcount zmscore "
    "zrange zrangebylex zrangebyscore zrank zrevrange zscan zscore".split()
)


class Grant(NamedTuple):
    """Some commands on some keys or channels: a selector of Redis' ACL."""

    keys: tuple[str, ...]
    """Patterns such as `~beat:*`, `%R~rq:worker:*` (read only) and `&rq:pubsub:*` (a channel)."""
    commands: tuple[str, ...]
    """Names such as `hset` and `xinfo|stream`."""

    def words(self) -> list[str]:
        """Return the grant in the words of ACL SETUSER."""
        return [*self.keys, *(f"+{command}" for command in self.commands)]

    def reading(self) -> Grant:
        """Return the read-only part of the grant.

        A grant whose commands are all read-only keeps its key patterns. So does one for scripts, because a script
        declares its keys for reading and writing; each command inside a script is checked separately.
        """
        commands = tuple(each for each in self.commands if each in _READING)
        if commands == self.commands:
            return self
        keys = (
            each if each.startswith("%R") else f"%R{each}" for each in self.keys if each[0] in "~%" and each[1] != "W"
        )
        return Grant(tuple(keys), commands)


class Rule(NamedTuple):
    """All rights of one user."""

    own: Grant
    """The commands on beat's keys, and those without a key."""
    others: tuple[Grant, ...]
    """The grants on RQ's keys."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Return all grants."""
        return (self.own, *self.others)

    def reading(self) -> Rule:
        """Return the read-only part of the rule; scripts may still be called with beat's keys, and only read them."""
        others = (each.reading() for each in self.others)
        return Rule(self.own.reading(), tuple(each for each in others if each.commands and each.keys))

    def words(self) -> list[str]:
        """Return the rule in the words of ACL SETUSER.

        An existing user keeps its passwords; a new user has none and cannot log in yet.
        """
        cleared = ["on", "resetkeys", "resetchannels", "-@all", "clearselectors"]
        selectors = (f"({' '.join(each.words())})" for each in self.others)
        return [*cleared, *self.own.words(), *selectors]

    def command(self, user: str) -> str:
        """Return the ACL SETUSER command for redis-cli."""
        return " ".join(["ACL", "SETUSER", user, *self.words()])


def rule(keys: Keys, features: Iterable[str] = FEATURES, version: tuple[int, ...] = (7, 0)) -> Rule:
    """Return the rule for these keys and features, with the commands that a server of this version knows."""
    wanted = set(features)
    used = (scripts.script(name) for name in scripts.names() if _SCRIPTS.get(name) in {None, *wanted})
    commands = {command for script in used for command in script.commands} - _COSTLY
    commands.update(f"{_EVERYWHERE} {_ON_OUR_KEYS} {_NAMES}".split())
    commands |= _IN_GROUPS if GROUPS in wanted else set()
    commands |= {"select"} if DATABASE in wanted else set()
    commands |= {"client|setinfo"} if version >= _SETINFO_SINCE else set()
    return Rule(Grant((f"~{keys.prefix}*",), tuple(sorted(commands))), tuple(_theirs(keys, replaces=REPLACE in wanted)))


def _theirs(keys: Keys, *, replaces: bool) -> Iterator[Grant]:
    """Yield the grants on RQ's keys, one for each family of keys."""
    ours, job, result = f"~{keys.prefix}*", job_template.job_key(""), job_template.RESULTS_PREFIX
    begin = jobs_begin(keys)
    yield Grant((ours, f"~{job_template.QUEUES_KEY}"), ("eval", "evalsha"))
    yield Grant((f"~{job_template.QUEUES_KEY}",), ("sadd", "type"))
    pushed = ("llen", "lpos", "lpush", "lrange", *(["lrem"] if replaces else []), "rpush", "type")
    yield Grant((f"~{job_template.queue_key('*')}",), pushed)
    # A skip passes an empty job id, so the bare prefix is needed, too.
    touched = (f"{job}{begin}*", job, f"{result}{begin}*")
    yield Grant(
        tuple(f"~{each}" for each in touched),
        ("del", "exists", "expire", "hget", "hmget", "hset", "pexpire", "type", "xrevrange"),
    )
    yield Grant((f"%R~{keys.template('*')}", f"%W~{job}{begin}*"), ("copy",))
    looked_at = (
        *(f"{family}{begin}*" for family in (job_template.EXECUTIONS_PREFIX, job_template.EXECUTION_PREFIX)),
        *(
            f"{family}*"
            for family in (
                job_template.WORKER_PREFIX,
                job_template.workers_key(""),
                job_template.registry_key("scheduled", ""),
            )
        ),
        job_template.SUSPENDED_KEY,
    )
    reading = ("exists", "hget", "hmget", "srandmember", "type", "zrange", "zscore")
    yield Grant(tuple(f"%R~{each}" for each in looked_at), reading)
    registries = ("failed", "finished", *(["scheduled"] if replaces else []))
    yield Grant(tuple(f"%W~{job_template.registry_key(each, '*')}" for each in registries), ("type", "zadd", "zrem"))
    if replaces:
        yield Grant((f"&{job_template.CHANNEL_PREFIX}*",), ("publish",))


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
_ONLY_ASKED = {f"%R~{job_template.SUSPENDED_KEY}", f"%R~{job_template.workers_key('*')}"}


def excess() -> dict[str, list[str]]:
    """Return rights that beat never needs: a description of each, and a command that probes it."""
    return {
        "read any key": ["get", _FOREIGN],
        "change any key": ["set", _FOREIGN, "x"],
        "delete queues": ["del", job_template.queue_key("x")],
        "read jobs of others": ["hgetall", job_template.job_key(_FOREIGN)],
        "KEYS": ["keys", "*"],
        "FLUSHALL": ["flushall"],
        "CONFIG": ["config", "set", "x", "x"],
        "ACL": ["acl", "setuser", "x"],
        "SHUTDOWN": ["shutdown"],
    }


def look(store: Store, rule: Rule) -> Rights:
    """Probe which rights of the rule the current user lacks, and which unneeded rights it has."""
    user, needed, probes = server_check.user(store.client), list(samples(rule)), excess()
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
    """Return whether the current user may run each of these commands."""
    found: list[Any] = connection.run(store.client, "may", [[json.dumps(words)] for words in commands])
    return [each == 1 for each in found]


class Sample(NamedTuple):
    """A command that a rule allows, for probing."""

    command: list[str]
    right: str
    """The right as text: `+hset on ~beat:*`."""
    is_only_asked: bool
    """Whether only the command line needs it, not a scheduler."""


def samples(rule: Rule) -> Iterator[Sample]:
    """Yield a sample for each command and each key pattern of the rule."""
    for grant in rule.grants:
        for name in grant.commands:
            for command, patterns in _commands(grant, name):
                asked = name in _ONLY_TO_ASK or patterns in _ONLY_ASKED
                yield Sample(command, f"+{name} on {patterns}" if patterns else f"+{name}", asked)


def _commands(grant: Grant, name: str) -> Iterator[tuple[list[str], str]]:
    """Yield commands that a grant allows, each with the key patterns that it needs."""
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
    """Return a key or channel that matches the pattern."""
    return re.sub(r"^(%\w+)?[~&]", "", pattern).replace("*", "x")
