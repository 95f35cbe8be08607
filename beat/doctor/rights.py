"""The least rights: what a user of Redis must be allowed, so that a beat and the command line work, and no more.

On its own keys beat may do what its scripts do: their texts say which commands those are. On RQ's keys each command is
named with the keys that it needs: queues can be filled and not deleted, and of jobs only beat's own can be touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat import jobs, scripts
from beat.client.auditing import jobs_begin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beat.keys import Keys

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
    ours, job, result = f"~{keys.prefix}*", jobs.job_key(""), jobs.RESULTS_PREFIX
    begin = jobs_begin(keys)
    yield Grant((ours, f"~{jobs.QUEUES_KEY}"), ("eval", "evalsha"))
    yield Grant((f"~{jobs.QUEUES_KEY}",), ("sadd", "type"))
    pushed = ("llen", "lpos", "lpush", "lrange", *(["lrem"] if replaces else []), "rpush", "type")
    yield Grant((f"~{jobs.queue_key('*')}",), pushed)
    touched = (f"{job}{begin}*", f"{job}{_ASKED}", job, f"{result}{begin}*", f"{result}{_ASKED}")  # a skip has no job
    yield Grant(
        tuple(f"~{each}" for each in touched),
        ("del", "exists", "expire", "hget", "hmget", "hset", "pexpire", "type", "xrevrange"),
    )
    yield Grant((f"%R~{keys.template('*')}", f"%W~{job}{begin}*"), ("copy",))
    looked_at = (
        *(f"{family}{begin}*" for family in (jobs.EXECUTIONS_PREFIX, jobs.EXECUTION_PREFIX)),
        *(f"{family}*" for family in (jobs.WORKER_PREFIX, jobs.workers_key(""), jobs.registry_key("scheduled", ""))),
        jobs.SUSPENDED_KEY,
    )
    reading = ("exists", "hget", "hmget", "srandmember", "type", "zrange", "zscore")
    yield Grant(tuple(f"%R~{each}" for each in looked_at), reading)
    registries = ("failed", "finished", *(["scheduled"] if replaces else []))
    yield Grant(tuple(f"%W~{jobs.registry_key(each, '*')}" for each in registries), ("type", "zadd", "zrem"))
    if replaces:
        yield Grant((f"&{jobs.CHANNEL_PREFIX}*",), ("publish",))
