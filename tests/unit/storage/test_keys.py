"""The names of the keys, as docs and operators know them."""

from __future__ import annotations

import inspect

import pytest

from beat.storage.keys import Keys

NAMES = {
    "schedules": "beat:schedules",
    "due": "beat:due",
    "meta": "beat:meta",
    "events": "beat:events",
    "open": "beat:open",
    "closed": "beat:closed",
    "records": "beat:records",
    "watching": "beat:watching",
    "searched": "beat:searched",
    "waiting_slots": "beat:waiting",
    "fanout": "beat:fanout",
    "rest": "beat:fanout:x",
    "groups": "beat:groups",
    "unread": "beat:unread",
    "monitoring": "beat:monitoring",
    "instances": "beat:instances",
    "announcements": "beat:announcements",
    "functions": "beat:functions",
    "metrics": "beat:metrics",
    "repairing": "beat:repairing",
    "repaired": "beat:repaired",
    "schedule": "beat:schedule:x",
    "template": "beat:template:x",
    "runs": "beat:runs:x",
    "running": "beat:running:x",
    "waiting": "beat:waiting:x",
    "followers": "beat:followers:x",
    "slow": "beat:slow:x",
    "shards": "beat:shards:x",
    "told": "beat:told:x",
    "index": "beat:in:x",
    "app": "beat:app:x",
    "signatures": "beat:signatures:x",
    "request": "beat:request:x",
    "lock": "beat:lock:x",
    "alerting": "beat:alerting:x",
    "incidents": "beat:incidents:x",
    "deliveries": "beat:deliveries:x",
    "messages": "beat:messages:x",
    "instance": "beat:instance:x",
    "tally": "beat:tally:x",
    "announced": "beat:announced:x",
}


def named(keys: Keys) -> dict[str, str]:
    found = {}
    for name in (each for each in dir(Keys) if not each.startswith("_") and each not in {"prefix", "job", "asked"}):
        value = getattr(keys, name)
        found[name] = value("x") if inspect.ismethod(value) else value
    return found


def test_every_key_has_its_name() -> None:
    assert named(Keys()) == NAMES


@pytest.mark.parametrize("prefix", ["beat:", "app:", "a:b:"])
def test_every_key_begins_with_the_prefix_and_no_two_are_the_same(prefix: str) -> None:
    found = list(named(Keys(prefix)).values())
    assert all(key.startswith(prefix) for key in found)
    assert len(set(found)) == len(found)


def test_no_schedule_can_take_another_kind_of_keys_name() -> None:
    families = [value.removesuffix("x") for value in named(Keys()).values() if value.endswith(":x")]
    assert len(families) == 22
    single = [value for name, value in named(Keys()).items() if not value.endswith(":x")]
    assert not [
        (one, other) for one in families for other in [*families, *single] if other != one and other.startswith(one)
    ]
