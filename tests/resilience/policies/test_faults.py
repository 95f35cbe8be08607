"""The property tests notice what they are there for: each of these faults, planted in a script or a policy."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import hypothesis
import pytest
from hypothesis import Phase

from beat.policies import decide
from beat.storage import scripts
from tests.resilience.policies.company import Company, Shared
from tests.resilience.policies.histories import groups, histories
from tests.resilience.policies.stage import History, Stage

if TYPE_CHECKING:
    from beat.storage.scripts import Script
    from tests.resilience.policies.clients import Connect


class Fault(NamedTuple):
    """What is wrong, in which script, what stands there, and what stands there instead."""

    name: str
    script: str
    what: str
    instead: str

    def planted(self, name: str) -> Script:
        """Any script, with the fault in the one that has it."""
        found = WRITTEN(name)
        if name == self.script and self.what not in found.text:
            raise ValueError(f"{name}.lua has changed: it no longer holds {self.what!r}")
        return replace(found, text=found.text.replace(self.what, self.instead)) if name == self.script else found


WRITTEN = scripts.script
FAULTS = [
    Fault(
        "one run too many", "fire", "if count >= item.room then return stand", "if count > item.room then return stand"
    ),
    Fault("ended runs take up room", "fire", "if unseen then return", "if false then return"),
    Fault(
        "no verdict on what was replaced", "fire", "if older then skipped(item.id, older,", "if older then tostring("
    ),
    Fault(
        "more runs than max_runs", "fire", "if finishes(id, number_of(total), asked, max_runs) then", "if false then"
    ),
    Fault(
        "who waits comes twice",
        "fire",
        "    leave_line(id, group, member_of(item))\n    local before",
        "    local before",
    ),
    Fault(
        "who waits is forgotten",
        "close",
        "redis.call('ZADD', waiting_slots, 'XX', 0, slot)",
        "redis.call('ZREM', waiting_slots, slot)",
    ),
]
GROUP_FAULTS = [
    Fault(
        "one run too many of a group",
        "fire",
        "if size_of(key) + item.jobs <= most then",
        "if size_of(key) + item.jobs <= most + 1 then",
    ),
    Fault(
        "of those that wait for the group the newest comes first",
        "fire",
        "join(waiting_prefix .. '@' .. group, tick, member_of(item))",
        "join(waiting_prefix .. '@' .. group, '-' .. tick, member_of(item))",
    ),
    Fault(
        "who waits for the group is forgotten",
        "fire",
        "redis.call('ZADD', waiting_slots, 'LT', at_once and since or in_a_while, group and '@' .. group or item.id)",
        "if not group then redis.call('ZADD', waiting_slots, since, item.id) end",
    ),
]


def find_it(connect: Connect, *, in_groups: bool = False) -> None:
    """Looks for a history in which something is not as it should be; raises NoSuchExample if there is none."""

    def goes_wrong(history: History | Shared) -> bool:
        try:
            stage = Company(history, connect) if isinstance(history, Shared) else Stage(history, connect)
            stage.goes_on_to_the_end()
        except AssertionError:
            return True
        return False

    quick = hypothesis.settings(max_examples=500, phases=[Phase.generate], database=None)
    drawn = random.Random(6 if in_groups else 7)  # noqa: S311 (no secret; others take longer)
    hypothesis.find(groups() if in_groups else histories(), goes_wrong, settings=quick, random=drawn)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_in_a_script_is_noticed(connect: Connect, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "script", fault.planted)
    find_it(connect)


@pytest.mark.parametrize("fault", GROUP_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_in_the_room_of_a_group_is_noticed(
    connect: Connect, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "script", fault.planted)
    find_it(connect, in_groups=True)


def test_a_fault_in_a_policy_is_noticed(connect: Connect) -> None:
    with mock.patch.dict(decide._MISSED, all=decide._MISSED["once"]):  # noqa: SLF001 (a fault is planted inside)
        find_it(connect)
