"""The schedules that somebody may want to see: an index proposes, single fields sort out, the hash of each decides."""

from __future__ import annotations

import fnmatch
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat import globs
from beat.errors import BadOption, did_you_mean
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beat.client.orders import ById, Place
    from beat.client.standing import Standing
    from beat.connection import Redis
    from beat.keys import Keys

IDLE = ("paused", "disabled", "finished", "retired", "broken")
STATES = ("active", *IDLE)
FEW = 5000
"""Ids that are read at once and sorted here, rather than looked for among all."""


@dataclass(frozen=True)
class Filter:
    """Which schedules somebody wants to see."""

    state: str | None = None
    failing: bool = False
    overridden: bool = False
    source: str | None = None
    app: str | None = None
    queue: str | None = None
    func: str | None = None
    match: str | None = None
    """A glob over ids, or a part of them."""

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            hint = did_you_mean(str(self.state), STATES)
            raise BadOption(f"state {self.state!r:.60} must be one of {', '.join(STATES)}.{hint}")
        globs.checked(self.match, "match")

    @property
    def prefix(self) -> str:
        """How all ids begin that match."""
        literal = "".join(itertools.takewhile(lambda c: c not in "*?[", self.match or ""))
        return literal if literal != self.match else ""

    @property
    def indexes(self) -> list[str]:
        """Those in which they all stand."""
        asked = {self.state or "": self.state not in {None, "active"}, "failing": self.failing}
        return [name for name, is_asked in {**asked, "overridden": self.overridden}.items() if is_asked]

    @property
    def fields(self) -> dict[str, str]:
        """What their hashes say."""
        named = {name: getattr(self, name) for name in ("source", "app", "queue", "func")}
        return {name: value for name, value in named.items() if value is not None}

    def matches(self, schedule_id: str) -> bool:
        """Whether the id is one of them."""
        if self.match is None:
            return True
        glob = self.match if set(self.match) & set("*?[") else f"*{self.match}*"
        return fnmatch.fnmatchcase(schedule_id, glob)

    def takes(self, found: Standing) -> bool:
        """Whether it is one of them, by its hash."""
        is_so = self.state in {None, found.state} and (not self.failing or found.consecutive_failures > 0)
        return is_so and (not self.overridden or found.override is not None)


class Candidates:
    """The schedules that may be wanted, as far as indexes and single fields tell."""

    def __init__(self, client: Redis, keys: Keys, wanted: Filter, found: ById) -> None:
        self._client: Any = client
        self._keys, self._wanted, self._order = keys, wanted, found

    def walk(self, after: Place | None, size: int) -> Iterator[list[Place]]:
        """In order, behind that place."""
        names = self._wanted.indexes
        sizes = {name: int(self._client.scard(self._keys.index(name))) for name in names}
        fewest = min(names, key=sizes.__getitem__, default="")
        whole = [self._order.walk(after, size)] if not fewest or sizes[fewest] > FEW else []
        for walk in whole or [pages(self._of(fewest, after), size)]:
            for places in walk:
                yield self._told(self._indexed([each for each in places if self._wanted.matches(each.id)]))

    def _of(self, name: str, after: Place | None) -> list[Place]:
        """The few that stand in that index."""
        ids = [each.decode(errors="replace") for each in self._client.sscan_iter(self._keys.index(name), count=1000)]
        return sorted({each for each in self._order.places(ids) if after is None or each > after})

    def _indexed(self, places: list[Place]) -> list[Place]:
        """Those that stand in all of the indexes that are wanted; if they are to be active, in none of the idle."""
        idle = IDLE if self._wanted.state == "active" else ()
        for name in (*self._wanted.indexes, *idle):
            ids = [each.id for each in places]
            found = self._client.smismember(self._keys.index(name), ids) if ids else []
            places = [each for each, is_in in zip(places, found, strict=True) if bool(is_in) is (name not in idle)]
        return places

    def _told(self, places: list[Place]) -> list[Place]:
        """Those whose hashes say what is wanted."""
        fields = self._wanted.fields
        if not fields:
            return places
        with self._client.pipeline(transaction=False) as pipe:
            for each in places:
                pipe.hmget(self._keys.schedule(each.id), list(fields))
            found = pipe.execute(raise_on_error=False)
        return [each for each, told in zip(places, found, strict=True) if _fits(told, fields.values())]


def _fits(told: object, globs: Iterable[str]) -> bool:
    values = told if isinstance(told, list) else []
    texts = [value.decode(errors="replace") if isinstance(value, bytes) else "" for value in values]
    return bool(texts) and all(fnmatch.fnmatchcase(text, glob) for text, glob in zip(texts, globs, strict=True))
