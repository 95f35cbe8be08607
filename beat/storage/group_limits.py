"""Read and write the capacities of groups in Redis; an operator's change lasts until a scheduler starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.config.groups import Group
from beat.errors import BadOption
from beat.storage.messages import Reply, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.storage.store import Store


def keep(store: Store, groups: Iterable[Group], *, anew: bool) -> Reply:
    """Write the capacities of these groups. Without `anew`, write only groups that Redis does not have."""
    key, lines = store.keys.groups, {group.name: str(group) for group in groups}
    if not lines:
        return Reply("OK")
    kind = decoded(store.client.type(key))
    if kind not in {"hash", "none"}:
        return Reply("BADTYPE", f"{key} is a {kind}, not a hash")
    with store.client.pipeline(transaction=False) as pipe:
        for name, line in lines.items():
            (pipe.hset if anew else pipe.hsetnx)(key, name, line)
        pipe.execute()
    return Reply("OK")


def known(store: Store) -> dict[str, Group]:
    """Return all groups in Redis whose limits are valid, by name."""
    found: Any = store.client.hgetall(store.keys.groups)
    read: dict[str, Group] = {}
    for name, line in found.items():
        try:
            group = Group.read(decoded(name), decoded(line))
        except BadOption:
            continue
        read[group.name] = group
    return read
