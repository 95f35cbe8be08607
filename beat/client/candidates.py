"""The schedules that somebody may want to see: an index proposes, single fields sort out, the hash of each decides."""

from __future__ import annotations

import fnmatch
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat import globs
from beat.client.orders import ById
from beat.errors import BadOption, did_you_mean
from beat.glance import glance
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beat.client.orders import Place
    from beat.client.standing import Standing
    from beat.store import Store

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

    @property
    def glob(self) -> str | None:
        """What all ids match."""
        return self.match if self.match is None or set(self.match) & set("*?[") else f"*{self.match}*"

    def matches(self, schedule_id: str) -> bool:
        """Whether the id is one of them."""
        return self.glob is None or fnmatch.fnmatchcase(schedule_id, self.glob)

    def takes(self, found: Standing) -> bool:
        """Whether it is one of them, by its hash."""
        is_so = self.state in {None, found.state} and (not self.failing or found.consecutive_failures > 0)
        return is_so and (not self.overridden or found.override is not None)


class Candidates:
    """The schedules that may be wanted, as far as indexes and single fields tell."""

    def __init__(self, store: Store, wanted: Filter, found: ById) -> None:
        self._store, self._keys, self._wanted, self._order = store, store.keys, wanted, found
        self._client: Any = store.client

    def walk(self, after: Place | None, size: int) -> Iterator[list[Place]]:
        """In order, behind that place."""
        few = self._few()
        places = None if few is None else sorted(each for each in self._order.places(few) if not after or each > after)
        for page in self._order.walk(after, size) if places is None else pages(places, size):
            yield self._told(self._indexed([each for each in page if self._wanted.matches(each.id)]))

    def _few(self) -> list[str] | None:
        """All that an index holds of them, or whose ids match; None where those are too many, and soon found."""
        sizes = {name: int(self._client.scard(self._keys.index(name))) for name in self._wanted.indexes}
        fewest = min(sizes, key=sizes.__getitem__, default=None)
        if fewest is not None and sizes[fewest] <= FEW:
            return self._scanned(self._keys.index(fewest))
        glob = self._wanted.glob
        if glob is None or (self._wanted.prefix and type(self._order) is ById):
            return None
        found = self._scanned(self._keys.schedules, glob.replace("[!", "[^"))
        return found if len(found) <= FEW else None

    def _scanned(self, key: str, glob: str | None = None) -> list[str]:
        """The members of a set, or those that match; where there are many, only some more than a few."""
        found = itertools.islice(self._client.sscan_iter(key, match=glob, count=1000), 2 * FEW)
        return list({each.decode(errors="replace") for each in found})

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
        found = glance(self._store, [each.id for each in places], fields=" ".join(fields))
        return [each for each, told in zip(places, found, strict=True) if _fits(told, fields.values())]


def _fits(told: Iterable[str], globs: Iterable[str]) -> bool:
    return all(fnmatch.fnmatchcase(text, glob) for text, glob in zip(told, globs, strict=True))
