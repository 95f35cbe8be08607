"""The least rights name every command that beat sends, from its scripts and from Python, and none that would harm."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.doctor import acl
from beat.storage import scripts
from beat.storage.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(scripts.__file__).parents[2]
WHOLE = acl.rule(Keys(), version=(7, 2))
NAMED = {command for grant in WHOLE.grants for command in grant.commands}
ELSEWHERE = (
    "cli",
    "dev/embedded",
    "migrate",
    "testing",
    "web",
)  # where a client is one of beat's, or the Redis is somebody's own
METHODS = {
    "delete": "del", "memory_usage": "memory|usage", "script_exists": "script|exists", "script_load": "script|load",
    "xgroup_destroy": "xgroup|destroy", "xinfo_groups": "xinfo|groups", "xinfo_stream": "xinfo|stream",
}  # fmt: skip
NO_COMMANDS = {"close", "connection_pool", "execute", "get_connection"}
CALL = re.compile(r"redis\.p?call\(")
CHOICE = re.compile(r"redis\.p?call\([^,'()]+ and '([A-Z]+)' or '([A-Z]+)'")


def lua() -> list[Path]:
    return sorted((HOUSE / "storage" / "scripts").rglob("*.lua"))


def called(text: str) -> set[str]:
    """Every command that a Lua text calls, read without any help of beat's."""
    code = re.sub(r"--.*", "", text)
    found = {word.lower() for pair in re.findall(CHOICE, code) for word in pair}
    for command, word in re.findall(r"redis\.p?call\('([A-Z_]+)'(?:, '(\w+)')?", code):
        has_parts = command in {"XINFO", "XGROUP", "PUBSUB", "MEMORY", "SCRIPT", "OBJECT", "CLIENT", "ACL", "CONFIG"}
        found.add(f"{command}|{word}".lower() if has_parts else command.lower())
    return found


@pytest.mark.parametrize("file", lua(), ids=lambda file: file.stem)
def test_every_call_of_a_script_names_its_command_where_it_stands(file: Path) -> None:
    text = re.sub(r"--.*", "", file.read_text(encoding="utf-8"))
    named = len(re.findall(r"redis\.p?call\('[A-Z_]+'", text)) + len(re.findall(CHOICE, text))
    assert len(CALL.findall(text)) == named, "a command that nobody can read"


@pytest.mark.parametrize("file", lua(), ids=lambda file: file.stem)
def test_every_command_of_a_script_is_in_the_rule(file: Path) -> None:
    costly = {"sort_ro"}  # it would need the right to read every key: parts do the same without
    assert called(file.read_text(encoding="utf-8")) - costly <= NAMED


def test_a_command_that_the_rule_does_not_name_is_found() -> None:
    assert called("redis.call('FLUSHALL') redis.pcall('XINFO', 'help', key)") == {"flushall", "xinfo|help"}
    assert called("redis.call(x == y and 'KEYS' or 'SREM', key)") == {"keys", "srem"}
    assert not called("redis.call('FLUSHALL')") <= NAMED


RQS = {
    "job_prefix": "rq:job:beat_x", "results_prefix": "rq:results:beat_x", "executions_prefix": "rq:executions:beat_x",
    "execution_prefix": "rq:execution:beat_x", "worker_prefix": "rq:worker:x", "queues": "rq:queues",
    "worker": "rq:worker:x", "workers": "rq:workers:x",
    "queue": "rq:queue:x", "list": "rq:queue:x", "scheduled": "rq:scheduled:x", "registry": "rq:finished:x",
}  # fmt: skip
"""What the scripts call RQ's keys, and such a key."""


def on_keys_of_rq(text: str) -> set[tuple[str, str]]:
    """The command, and the key of RQ's with which a Lua text calls it, where it stands there by name."""
    calls = re.findall(r"redis\.p?call\('([A-Z_]+)', (?:unpack\()?(\w+)", re.sub(r"--.*", "", text))
    return {(command.lower(), RQS[name]) for command, name in calls if name in RQS}


def is_granted(command: str, key: str) -> bool:
    patterns = [(grant, re.escape(pattern).replace(r"\*", ".*")) for grant in WHOLE.grants for pattern in grant.keys]
    return any(
        command in grant.commands and re.fullmatch(rf".*~{pattern.partition('~')[2]}", f"~{key}")
        for grant, pattern in patterns
    )


@pytest.mark.parametrize("file", lua(), ids=lambda file: file.stem)
def test_what_a_script_does_with_a_key_of_rqs_is_in_the_rule(file: Path) -> None:
    found = on_keys_of_rq(file.read_text(encoding="utf-8"))
    assert {(command, key) for command, key in found if not is_granted(command, key)} == set()


def test_what_a_script_may_not_do_with_a_key_of_rqs_is_found() -> None:
    (found,) = on_keys_of_rq("redis.call('DEL', queue)")
    assert found == ("del", "rq:queue:x")
    assert not is_granted(*found)
    assert is_granted("del", "rq:job:beat_x")
    assert is_granted("rpush", "rq:queue:x")
    assert not is_granted("hgetall", "rq:job:theirs")


def sent(house: Path) -> Iterator[tuple[str, str]]:
    """Where Python calls a method of a client or of a pipeline, and the command that it stands for."""
    for file in sorted(house.rglob("*.py")):
        name = str(file.relative_to(house))
        if name.startswith(ELSEWHERE):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute) or node.attr in NO_COMMANDS:
                continue
            if re.search(r"(^|[._])(client|pipe|anybody)$", ast.unparse(node.value)):
                yield name, METHODS.get(node.attr, node.attr.removesuffix("_iter"))


def test_every_command_that_python_sends_is_in_the_rule() -> None:
    found = set(sent(HOUSE))
    assert len(found) > 40
    commands = NAMED | {"pipeline"}  # which is multi and exec
    assert {(name, command) for name, command in found if command not in commands} == set()


@pytest.mark.parametrize("keys", [Keys(), Keys("app:beat:")], ids=["beat:", "app:beat:"])
def test_of_jobs_only_beats_own_can_be_touched(keys: Keys) -> None:
    patterns = {pattern for grant in acl.rule(keys).grants for pattern in grant.keys if "~rq:job" in pattern}
    own = "beat" if keys.prefix == "beat:" else "app_beat"
    assert patterns == {f"~rq:job:{own}_*", f"%W~rq:job:{own}_*", "~rq:job:"}


def test_no_grant_lets_queues_be_deleted_or_every_key_be_read() -> None:
    for grant in WHOLE.grants:
        if any("rq:queue" in pattern for pattern in grant.keys):
            assert not {"del", "unlink", "expire", "pexpire", "rename", "ltrim", "lpop", "rpop"} & {*grant.commands}
        assert not {"~*", "%R~*", "%W~*", "%RW~*", "allkeys", "&*", "allchannels"} & {*grant.keys}


def test_no_grant_names_a_category_or_what_an_administrator_does() -> None:
    refused = {
        "acl",
        "bgsave",
        "client",
        "config",
        "debug",
        "flushall",
        "flushdb",
        "keys",
        "shutdown",
        "script",
        "monitor",
    }
    assert not NAMED & refused
    assert not [command for command in NAMED if command.startswith("@")]


@pytest.mark.parametrize(
    ("feature", "command"), [(acl.REPLACE, "lrem"), (acl.GROUPS, "xreadgroup"), (acl.DATABASE, "select")]
)
def test_what_is_not_in_use_is_left_out(feature: str, command: str) -> None:
    without = acl.rule(Keys(), [each for each in acl.FEATURES if each != feature])
    assert command not in {each for grant in without.grants for each in grant.commands}
    assert command in {each for grant in acl.rule(Keys(), [feature]).grants for each in grant.commands}


def test_workers_are_told_to_stop_only_for_those_who_replace() -> None:
    assert "&rq:pubsub:*" not in acl.rule(Keys(), []).words()
    assert any("&rq:pubsub:*" in word for word in acl.rule(Keys(), [acl.REPLACE]).words())


@pytest.mark.parametrize(("version", "knows"), [((7, 0), False), ((7, 2), True), ((8, 0), True)])
def test_the_rule_has_no_word_that_the_server_does_not_know(version: tuple[int, int], *, knows: bool) -> None:
    assert ("+client|setinfo" in acl.rule(Keys(), version=version).words()) is knows


def test_the_rule_is_one_line_and_leaves_passwords_alone() -> None:
    command = WHOLE.command("joe")
    assert command.startswith("ACL SETUSER joe on resetkeys resetchannels -@all clearselectors ~beat:* +")
    assert "\n" not in command
    assert not [
        word for word in command.split() if word.startswith((">", "#", "nopass", "resetpass")) or word == "reset"
    ]


def test_every_right_has_a_command_to_try_it_with() -> None:
    tried = list(acl.samples(WHOLE))
    assert len(tried) > len(NAMED)
    assert {each.command[0] for each in tried} == {command.partition("|")[0] for command in NAMED}
