"""The current scripts leave and reply what the previous ones do, and the comparison notices when they do not."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.resilience.script_comparison import CURRENT, PREVIOUS, Comparison

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis

LONG = bool(os.environ.get("LONG_TESTS"))


class Change(NamedTuple):
    """A change of one script that the comparison must notice."""

    name: str
    script: str
    what: str
    instead: str


CHANGES = [
    Change("no compare-and-set", "fire", "if next_run ~= tick then return stale(key) end", ""),
    Change("another reply", "fire", "return 'SKIPPED', 'finished'", "return 'SKIPPED', 'over'"),
    Change("a request is remembered for longer", "fire", "'EX', number)", "'EX', number + 1)"),
    Change("a job expires later", "fire", "redis.call('EXPIRE', key, ttl)", "redis.call('EXPIRE', key, ttl + 1)"),
    Change("no event", "fire", "tell(id, 'enqueued', line)", "if max_runs == '' then tell(id, 'enqueued', line) end"),
    Change(
        "one run more in a group", "fire", "size_of(key) + item.jobs <= most", "size_of(key) + item.jobs <= most + 1"
    ),
    Change("always at the back", "fire", "pushes[queue][at]", "pushes[queue].back"),
    Change(
        "a lock stays",
        "fire",
        "locks[#locks + 1] = lock_prefix .. id",
        "if id ~= 'a' then locks[1] = lock_prefix .. id end",
    ),
    Change("a shorter wait for a retry", "fire", "limit / 4", "limit / 5"),
    Change("a dropped tick stays in line", "fire", "leave_line(item.id, item.group, member_of(item))", ""),
    Change("a pause leaves its reason", "fire", "'pause_reason', 'paused_by'", "'paused_by'"),
    Change("no quarantine in the index", "fire", "enlist(id, 'broken')", ""),
    Change("a failure ends no streak", "close", "streak = streak + 1", "streak = streak"),
    Change("a slot is not left", "close", "leave_slots(id, group, job)\n    if ttl", "if ttl"),
    Change("a result expires later", "close", "redis.call('PEXPIRE', results_prefix .. job, ttl)", ""),
    Change("an option outlives its definition", "register", "'requires', 'monitor')", "'requires')"),
    Change("an older definition wins", "register", "place < mine", "place > mine"),
]


def test_nothing_is_different(server: PrivateRedis) -> None:
    """`make compare` and LONG_TESTS send more items."""
    with Comparison(server) as comparison:
        found = comparison.until(20_000 if LONG else 600)
        assert not found, str(found)
        assert comparison.items >= 300
        assert not LONG or not comparison.missing()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_planted_change_is_noticed(server: PrivateRedis, change: Change) -> None:
    def changed(name: str) -> str:
        text = CURRENT.text(name)
        if name != change.script:
            return text
        assert change.what in text
        return text.replace(change.what, change.instead)

    with Comparison(server, replace(CURRENT, text=changed)) as comparison:
        found = comparison.until(20_000)
    assert found, f"not noticed within {comparison.items} items"
    assert "ERROR" not in str(found)


def test_an_error_of_a_script_is_no_agreement(server: PrivateRedis) -> None:
    def broken(name: str) -> str:
        return f"{PREVIOUS.text(name)}\nthis is no Lua"

    with Comparison(server, replace(PREVIOUS, text=broken), replace(PREVIOUS, text=broken)) as comparison:
        found = comparison.run(0)
    assert found
    assert "ERROR" in str(found)
