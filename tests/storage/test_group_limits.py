"""The groups in Redis: every beat brings its own, and an operator has the last word until the next one starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.config.groups import Group
from beat.engine.registrar import Sync
from beat.storage import group_limits
from tests.support.builders import schedule

if TYPE_CHECKING:
    from beat.engine.events import Event
    from beat.storage.store import Store

REPORTS, EXPORTS = Group("reports", 5), Group("exports", 2, "skip")


def sync(store: Store, *groups: Group) -> tuple[Sync, list[Event]]:
    said: list[Event] = []
    return Sync(store, [schedule()], beat="web-1", emit=said.append, groups=groups), said


def kept(store: Store) -> dict[str, str]:
    found: Any = store.client.hgetall("beat:groups")
    return {name.decode(): line.decode() for name, line in found.items()}


def test_a_beat_brings_its_groups_when_it_starts(store: Store) -> None:
    store.client.hset("beat:groups", mapping={"reports": "wait 1 1000", "other": "wait 3 1000"})
    sync(store, REPORTS, EXPORTS)[0].register()
    assert kept(store) == {"reports": "wait 5 1000", "exports": "skip 2 1000", "other": "wait 3 1000"}


def test_what_is_missing_is_written_again_and_nothing_else(store: Store) -> None:
    beat, _ = sync(store, REPORTS, EXPORTS)
    beat.register()
    store.client.hset("beat:groups", "reports", "wait 8 1000")
    store.client.hdel("beat:groups", "exports")
    beat.register(reseed=True)
    assert kept(store) == {"reports": "wait 8 1000", "exports": "skip 2 1000"}


def test_a_definition_that_comes_back_brings_no_groups(store: Store) -> None:
    beat, _ = sync(store, REPORTS)
    beat.register(["report"])
    assert kept(store) == {}


def test_a_key_of_another_type_is_named_once_and_stops_nothing(store: Store) -> None:
    beat, said = sync(store, REPORTS)
    store.client.set("beat:groups", "x")
    beat.register()
    beat.register(reseed=True)
    errors = [event.fields["error"] for event in said if event.name == "misplaced"]
    assert errors == ["beat:groups is a string, not a hash: rename it, or delete it"]
    assert store.client.exists("beat:schedule:report")
    store.client.delete("beat:groups")


def test_a_key_of_another_type_is_strange(store: Store) -> None:
    store.client.set("beat:groups", "x")
    store.client.set("beat:unread", "x")
    assert store.strange() == ["beat:groups is a string, not a hash", "beat:unread is a string, not a hash"]
    store.client.delete("beat:groups", "beat:unread")


@pytest.mark.parametrize("garbled", ["", "many", "wait 0 5", "5"])
def test_what_can_be_read_is_known(garbled: str, store: Store) -> None:
    store.client.hset("beat:groups", mapping={"reports": "wait 5 1000", "a b": "wait 5 1000", "other": garbled})
    assert group_limits.known(store) == {"reports": REPORTS}
