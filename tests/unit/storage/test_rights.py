"""What a script asks of Redis' ACL is read from its text: each command, on each key to which the call can lead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.storage import scripts
from beat.storage.scripts import rights

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER = {"KEYS": ("due", "events"), "ARGV": ("hash_prefix", "list_prefix", "limit"), "ITEM": ("id", "queue")}
CHECKED = [
    name
    for name in scripts.names()
    if "-- include acl\n" in Path(rights.__file__).with_name(f"{name}.lua").read_text("utf-8")
]


def lists(text: str) -> list[str]:
    """The lists in the place of each COMMANDS, without the code around them."""
    expanded = rights.expand("some", text, HEADER)
    return re.findall(r"forbidden\((.*)\)$", expanded, re.MULTILINE)


def uses(code: str) -> set[str]:
    """What the code does, as `hset hash_prefix`."""
    return {f"{use.command} {' '.join(map(str, use.keys))}" for use in rights.Reader("some", code, HEADER).uses()}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("redis.call('ZADD', due, 0, 'x')", {"zadd due"}),
        ("redis.pcall('ZADD', due, 0, 'x')  -- redis.call('DEL', due)", {"zadd due"}),
        ("redis.call('HSET', hash_prefix .. id, 'a', 'b, c)')", {"hset hash_prefix"}),
        ("redis.call(x == y and 'SADD' or 'SREM', hash_prefix .. id, x)", {"sadd hash_prefix", "srem hash_prefix"}),
        ("redis.call('COPY', hash_prefix .. id, list_prefix .. id)", {"copy hash_prefix list_prefix"}),
        ("redis.call('DEL', due, hash_prefix .. id)", {"del due hash_prefix"}),
        ("redis.call('XINFO', 'stream', events)", {"xinfo|stream events"}),
        ("redis.call('TIME')", set()),
        ("redis.call('HSET', hash_prefix .. redis.call('GET', due), 'x', '')", {"hset hash_prefix", "get due"}),
    ],
    ids=["key", "protected", "prefix", "two commands", "copy", "several keys", "subcommand", "no key", "nested"],
)
def test_command_and_key_are_read_from_a_call(code: str, expected: set[str]) -> None:
    found = uses(code)
    assert found >= expected
    assert {each.split()[0] for each in found} <= {"zadd", "hset", "sadd", "srem", "copy", "del", "xinfo|stream", "get"}
    assert found == expected


@pytest.mark.parametrize(
    "code",
    [
        "local n, key = 1, hash_prefix .. id\nredis.call('GET', key)",
        "local key\nkey = hash_prefix .. id\nredis.call('GET', key)",
        "local key = hash_prefix .. id\nkey = key .. ' more'\nredis.call('GET', key)",
        "local function get(key) return redis.call('GET', key) end  -- it\nget(hash_prefix)\nlocal function f()\nend",
        "local function get(key) return redis.call('GET', key) end\nget(hash_prefix .. id)",
        "local function get(n, key)\n  return redis.call('GET', key)\nend\nlocal key = hash_prefix .. id\nget(1, key)",
        "local function get(k) redis.call('GET', k) end\nlocal function go(x)\n  get(x)\nend\npcall(go, hash_prefix)",
        "local all = {}\nall[#all + 1] = hash_prefix .. id\nredis.call('GET', unpack(all))",
        "for key, wanted in pairs({[hash_prefix .. id] = 'hash'}) do redis.call('GET', key) end",
        "local wanted = {[hash_prefix .. id] = 'hash'}\nfor key, kind in pairs(wanted) do redis.call('GET', key) end",
    ],
    ids=[
        "local",
        "set later",
        "lengthened",
        "with a comment",
        "parameter",
        "second parameter",
        "two functions",
        "table",
        "loop",
        "loop over a local",
    ],
)
def test_key_is_followed_to_a_name_in_the_header(code: str) -> None:
    assert uses(code) == {"get hash_prefix"}


def test_variable_with_several_values_leads_to_each() -> None:
    assert uses("local key = due\nkey = events\nredis.call('GET', key)") == {"get due", "get events"}


def test_loop_over_all_keys_leads_to_each() -> None:
    assert uses("for _, key in ipairs(KEYS) do redis.call('GET', key) end") == {"get due", "get events"}


def test_function_that_nothing_calls_needs_no_right() -> None:
    assert uses("local function drop() redis.call('DEL', due) end\nredis.call('GET', due)") == {"get due"}


@pytest.mark.parametrize("key", ["'beat:due'", "ARGV[3]", "limit", "made(id)", "id", "queue", "unknown .. id"])
def test_key_that_leads_nowhere_is_an_error(key: str) -> None:
    with pytest.raises(ValueError, match=r"some\.lua: the key .* leads to no name in the header"):
        rights.expand("some", f"redis.call('GET', {key})\nforbidden(COMMANDS)", HEADER)


def test_list_names_each_command_once_with_a_key_of_its_kind() -> None:
    text = """
forbidden(COMMANDS)
redis.call('HSET', hash_prefix .. id)
redis.call('HGET', hash_prefix .. id)
redis.call('HGET', hash_prefix .. id)
redis.call('ZADD', due)
redis.call('XINFO', 'stream', events)
"""
    assert lists(text) == ["{{'hget hset', hash_prefix .. 'x'}, {'xinfo', 'stream', events}, {'zadd', due}}"]


def test_commands_on_some_keys_stand_apart() -> None:
    text = """
forbidden(COMMANDS)
local key = hash_prefix .. id
forbidden(COMMANDS_ON(key, queue))
forbidden(COMMANDS_ON(list_prefix))
redis.call('COPY', list_prefix .. id, key)
redis.call('RPOP', list_prefix .. id)
redis.call('GET', due)
redis.call('RPUSH', queue, id)
"""
    assert lists(text) == [
        "{{'get', due}}",
        "{{'copy', list_prefix .. 'x', key}, {'rpush', queue}}",
        "{{'copy', list_prefix .. 'x', hash_prefix .. 'x'}, {'rpop', list_prefix .. 'x'}}",
    ]


def test_command_that_no_list_names_is_an_error() -> None:
    text = "forbidden(COMMANDS_ON(queue))\nredis.call('RPUSH', queue)\nredis.call('GET', due)"
    with pytest.raises(ValueError, match=r"some\.lua: nothing checks .*'get'"):
        rights.expand("some", text, HEADER)


def test_script_that_checks_nothing_stays_as_it_is() -> None:
    assert rights.expand("some", "redis.call('GET', 'x')", HEADER) == "redis.call('GET', 'x')"


def listed(text: str) -> set[str]:
    """Every command in the lists of a whole script."""
    return {command for words in re.findall(r"\{'([a-z ]+)', ", text) for command in words.split()}


@pytest.mark.parametrize("name", CHECKED)
def test_no_place_of_a_list_is_left(name: str) -> None:
    assert "COMMANDS" not in scripts.script(name).text


def calls(code: str) -> Iterable[str]:
    for names in re.findall(r"redis\.p?call\(([^,()]+)", re.sub(r"--.*", "", code)):
        yield from (each.lower() for each in re.findall(r"'(\w+)'", names))


@pytest.mark.parametrize("name", CHECKED)
def test_every_command_in_a_script_itself_is_listed(name: str) -> None:
    own = Path(rights.__file__).with_name(f"{name}.lua").read_text("utf-8")
    assert {*calls(own)} - {"time"} <= listed(scripts.script(name).text)


def test_scripts_that_change_schedules_check_first() -> None:
    assert {"claim", "close", "defer", "fire", "follow", "pause", "register", "remove", "retire"} <= {*CHECKED}
