"""Redis judges a command by its name and its keys alone, so the lists of the scripts say enough."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from beat.doctor import acl
from beat.storage import scripts
from tests.support.builders import restricted

if TYPE_CHECKING:
    from beat.storage.store import Store

KEY = "beat:any"
LIST = re.compile(r"\{'([a-z ]+)', ([^{}]+)\}")


def asked() -> list[list[str]]:
    """Each command in the lists of all scripts, with keys."""
    texts = "".join(scripts.script(name).text for name in scripts.names() if name not in {"observe", "staff"})
    lists = {found for written in re.findall(r"\bforbidden\((.*)\)", texts) for found in LIST.findall(written)}
    words = {
        (command, *(each.strip("'") if each.startswith("'") else KEY for each in after.split(", ")))
        for commands, after in lists
        for command in commands.split()
    }
    return [[*each] for each in sorted(words)]


def test_all_of_it_is_granted_to_whoever_may_do_all(store: Store) -> None:
    granted = acl.may(store, asked())
    assert [words for words, may in zip(asked(), granted, strict=True) if not may] == []
    assert len(asked()) > 40


@pytest.mark.parametrize("rule", ["resetkeys", "-@all"])
def test_none_of_it_is_granted_without_the_key_or_the_command(rule: str, store: Store) -> None:
    with restricted(store, rule, "+evalsha", "+eval", "+script") as few:
        granted = acl.may(few, asked())
    assert [words for words, may in zip(asked(), granted, strict=True) if may] == []


def test_a_right_to_read_is_not_a_right_to_write(store: Store) -> None:
    with restricted(store, "resetkeys", f"%R~{KEY}") as few:
        granted = dict(zip(map(tuple, asked()), acl.may(few, asked()), strict=True))
    assert granted["hget", KEY]
    assert granted["xinfo", "stream", KEY]
    assert not granted["hset", KEY]
    assert not granted["copy", KEY, KEY]
