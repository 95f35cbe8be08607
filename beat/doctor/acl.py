"""Asks Redis what this user may do, without doing any of it; nobody needs a right for that but to run scripts.

The least rights: what a user of Redis must be allowed, so that a beat and the command line work, and no more.

On its own keys beat may do what its scripts do: their texts say which commands those are. On RQ's keys each command is
named with the keys that it needs: queues can be filled and not deleted, and of jobs only beat's own can be touched.
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
"""What not everybody uses, and what needs more rights."""
_SCRIPTS = {"take": GROUPS, "decide": GROUPS, "withdraw": REPLACE}
_COSTLY = {"sort_ro"}  # it would need the right to read every key; without it more commands do the same
_ASKED = "x"  # by what name the scripts ask whether they may touch a job: parts/allowed.lua
_SETINFO_SINCE = (7, 2)

# What is sent from Python, beside the scripts.
_EVERYWHERE = "exec info multi ping script|exists script|load time"
_ON_OUR_KEYS = (
    "del exists get hget hgetall hlen hmget hscan hset hsetnx lindex llen lrange memory|usage mget pexpire scard "
    "smismember sscan type xinfo|groups xinfo|stream xlen xread zadd zcard zcount zmscore zrange zrangebylex "
    "zrangebyscore zrank zrem zscan"
)
_NAMES = "scan"  # `beat verify` looks for jobs by their names
_IN_GROUPS = {"xack", "xgroup|destroy"}
# What changes no key: all that the questions need, and the page where it only shows.
_READING = frozenset(
    f"{_EVERYWHERE} {_NAMES} client|setinfo eval evalsha exists get hexists hget hgetall hlen hmget hrandfield hscan "
    "hvals lindex llen lpos lrange memory|usage mget pttl scard select sismember smembers smismember srandmember sscan "
    "ttl type xinfo|consumers xinfo|groups xinfo|stream xlen xpending xrange xread xrevrange zcard zcount zmscore "
    "zrange zrangebylex zrangebyscore zrank zrevrange zscan zscore".split()
)


class Grant(NamedTuple):
    """Some commands on some keys or channels: a selector of Redis' ACL."""

    keys: tuple[str, ...]
    """Patterns, as `~beat:*`, `%R~rq:worker:*` (only to be read), `&rq:pubsub:*` (a channel)."""
    commands: tuple[str, ...]
    """As `hset`, `xinfo|stream`."""

    def words(self) -> list[str]:
        """As the ACL has it."""
        return [*self.keys, *(f"+{command}" for command in self.commands)]

    def reading(self) -> Grant:
        """What of it changes no key; a script is handed its keys whole, and each of its commands is looked at."""
        commands = tuple(each for each in self.commands if each in _READING)
        if commands == self.commands:
            return self
        keys = (
            each if each.startswith("%R") else f"%R{each}" for each in self.keys if each[0] in "~%" and each[1] != "W"
        )
        return Grant(tuple(keys), commands)


class Rule(NamedTuple):
    """All that one user may do."""

    own: Grant
    """On beat's keys, and on none."""
    others: tuple[Grant, ...]
    """On RQ's."""

    @property
    def grants(self) -> tuple[Grant, ...]:
        """All of them."""
        return (self.own, *self.others)

    def reading(self) -> Rule:
        """What of it changes nothing. A script may be called with any of beat's keys, and can only read them."""
        others = (each.reading() for each in self.others)
        return Rule(self.own.reading(), tuple(each for each in others if each.commands and each.keys))

    def words(self) -> list[str]:
        """The rule, for ACL SETUSER. A user's passwords stay as they are: a new one has none, and cannot log in yet."""
        cleared = ["on", "resetkeys", "resetchannels", "-@all", "clearselectors"]
        selectors = (f"({' '.join(each.words())})" for each in self.others)
        return [*cleared, *self.own.words(), *selectors]

    def command(self, user: str) -> str:
        """To be pasted at the prompt of redis-cli, or piped into it."""
        return " ".join(["ACL", "SETUSER", user, *self.words()])


def rule(keys: Keys, features: Iterable[str] = FEATURES, version: tuple[int, ...] = (7, 0)) -> Rule:
    """The rule for these keys and features, in the words that a server of this version knows."""
    wanted = set(features)
    used = (scripts.script(name) for name in scripts.names() if _SCRIPTS.get(name) in {None, *wanted})
    commands = {command for script in used for command in script.commands} - _COSTLY
    commands.update(f"{_EVERYWHERE} {_ON_OUR_KEYS} {_NAMES}".split())
    commands |= _IN_GROUPS if GROUPS in wanted else set()
    commands |= {"select"} if DATABASE in wanted else set()
    commands |= {"client|setinfo"} if version >= _SETINFO_SINCE else set()
    return Rule(Grant((f"~{keys.prefix}*",), tuple(sorted(commands))), tuple(_theirs(keys, replaces=REPLACE in wanted)))


def _theirs(keys: Keys, *, replaces: bool) -> Iterator[Grant]:
    """RQ's keys, family by family."""
    ours, job, result = f"~{keys.prefix}*", job_template.job_key(""), job_template.RESULTS_PREFIX
    begin = jobs_begin(keys)
    yield Grant((ours, f"~{job_template.QUEUES_KEY}"), ("eval", "evalsha"))
    yield Grant((f"~{job_template.QUEUES_KEY}",), ("sadd", "type"))
    pushed = ("llen", "lpos", "lpush", "lrange", *(["lrem"] if replaces else []), "rpush", "type")
    yield Grant((f"~{job_template.queue_key('*')}",), pushed)
    touched = (f"{job}{begin}*", f"{job}{_ASKED}", job, f"{result}{begin}*", f"{result}{_ASKED}")  # a skip has no job
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
    """What nobody needs for beat: in words, and as a command."""
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
    """What the user lacks of the rule, and what it may beyond."""
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
