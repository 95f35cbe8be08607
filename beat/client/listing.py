"""List schedules with a filter, in an order, from any position on.

An index or a glob proposes candidates, single fields narrow them down, and the hash of each schedule decides. A
schedule that is missing in an index is listed once a scheduler has repaired the index. No more is read than is needed.
"""

from __future__ import annotations

import fnmatch
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client import ordering, schedule_info, upcoming
from beat.client.cache import Lately
from beat.client.ordering import ById
from beat.client.queries import Questions
from beat.client.reader import is_strange
from beat.errors import BadOption, did_you_mean
from beat.history import ledger
from beat.history.history import Fired, Passed, assemble
from beat.schedule import globs
from beat.schedule.routing_options import MOST_QUEUES
from beat.storage.store import glance, pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from beat.client.ordering import Place
    from beat.client.schedule_info import Standing
    from beat.client.upcoming import NextTick
    from beat.storage.connection import Redis
    from beat.storage.store import Store


IDLE = ("paused", "disabled", "finished", "retired", "broken")
STATES = ("active", *IDLE)
FEW = 5000
"""How many ids, at most, are read at once and sorted here instead of walking through a whole order."""
_LARGEST_PAGE = 5000


@dataclass(frozen=True)
class Filter:
    """The schedules to list."""

    state: str | None = None
    failing: bool = False
    overridden: bool = False
    source: str | None = None
    app: str | None = None
    queue: str | None = None
    func: str | None = None
    match: str | None = None
    """A glob over ids, or a part of an id."""

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            hint = did_you_mean(str(self.state), STATES)
            raise BadOption(f"state {self.state!r:.60} must be one of {', '.join(STATES)}.{hint}")
        globs.checked(self.match, "match")

    @property
    def prefix(self) -> str:
        """Return the text with which all matching ids begin; empty if `match` is no glob."""
        literal = "".join(itertools.takewhile(lambda c: c not in "*?[", self.match or ""))
        return literal if literal != self.match else ""

    @property
    def indexes(self) -> list[str]:
        """Return the indexes that contain all wanted schedules."""
        asked = {self.state or "": self.state not in {None, "active"}, "failing": self.failing}
        return [name for name, is_asked in {**asked, "overridden": self.overridden}.items() if is_asked]

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of the hash to compare, each with its glob."""
        named = {name: getattr(self, name) for name in ("source", "app", "queue", "func")}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def glob(self) -> str | None:
        """Return the glob that all wanted ids match; None if `match` is not given."""
        return self.match if self.match is None or set(self.match) & set("*?[") else f"*{self.match}*"

    def matches(self, schedule_id: str) -> bool:
        """Return whether the id matches."""
        return self.glob is None or fnmatch.fnmatchcase(schedule_id, self.glob)

    def takes(self, found: Standing) -> bool:
        """Return whether the schedule is wanted, by its hash."""
        is_so = self.state in {None, found.state} and (not self.failing or found.consecutive_failures > 0)
        return is_so and (not self.overridden or found.override is not None)


class Candidates:
    """The schedules that may be wanted, as far as indexes and single fields tell."""

    def __init__(self, store: Store, wanted: Filter, found: ById) -> None:
        self._store, self._keys, self._wanted, self._order = store, store.keys, wanted, found
        self._client: Any = store.client

    def walk(self, after: Place | None, size: int) -> Iterator[list[Place]]:
        """Yield pages of candidates in order, from after the given position on."""
        few = self._few()
        places = None if few is None else sorted(each for each in self._order.places(few) if not after or each > after)
        for page in self._order.walk(after, size) if places is None else pages(places, size):
            yield self._told(self._indexed([each for each in page if self._wanted.matches(each.id)]))

    def _few(self) -> list[str] | None:
        """Return the ids in an index or under the glob if they are few; None if walking the order is better."""
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
        """Return members of a set, or those that match the glob; stop at twice FEW."""
        found = itertools.islice(self._client.sscan_iter(key, match=glob, count=1000), 2 * FEW)
        return list({each.decode(errors="replace") for each in found})

    def _indexed(self, places: list[Place]) -> list[Place]:
        """Keep schedules that are in all wanted indexes, and in no idle one if active schedules are wanted."""
        idle = IDLE if self._wanted.state == "active" else ()
        for name in (*self._wanted.indexes, *idle):
            ids = [each.id for each in places]
            found = self._client.smismember(self._keys.index(name), ids) if ids else []
            places = [each for each, is_in in zip(places, found, strict=True) if bool(is_in) is (name not in idle)]
        return places

    def _told(self, places: list[Place]) -> list[Place]:
        """Keep schedules whose hashes have the wanted fields."""
        fields = self._wanted.fields
        if not fields:
            return places
        found = glance(self._store, [each.id for each in places], fields=" ".join(fields))
        return [each for each, told in zip(places, found, strict=True) if _fits(told, fields.values())]


def _fits(told: Iterable[str], globs: Iterable[str]) -> bool:
    return all(fnmatch.fnmatchcase(text, glob) for text, glob in zip(told, globs, strict=True))


_SPARE = 6  # ledger lines that are not about runs, besides two for each run
_MOST_RUNS = 100
_REMEMBERED, _SMALL = 250, 65_536  # how many ledger heads are cached, and up to how many bytes


class Listed(NamedTuple):
    """One row of a list."""

    standing: Standing
    runs: tuple[Fired | Passed, ...]
    """Its newest runs and skipped ticks, newest first, as many as were asked for."""
    place: str
    """Its position; pass it as `after` to continue the list."""

    @property
    def last(self) -> Fired | None:
        """Return the newest run in `runs`, if there is one."""
        return next((line for line in self.runs if isinstance(line, Fired)), None)


class Counts(NamedTuple):
    """How many schedules there are, by the indexes."""

    schedules: int
    active: int
    paused: int
    disabled: int
    finished: int
    retired: int
    broken: int
    failing: int
    """How many of all schedules failed when they last ran."""
    overridden: int


class Listing(Questions):
    """A client that lists schedules."""

    def __init__(self, redis: Redis | str | None = None, **options: Any) -> None:
        super().__init__(redis, **options)
        self._lately: Lately[list[bytes], list[Fired | Passed]] = Lately(_REMEMBERED)

    def schedules(
        self,
        *,
        state: str | None = None,
        failing: bool = False,
        overridden: bool = False,
        source: str | None = None,
        app: str | None = None,
        queue: str | None = None,
        func: str | None = None,
        match: str | None = None,
        sort: str = "id",
        after: str | None = None,
        runs: int = 0,
        page: int = 100,
    ) -> Iterator[Listed]:
        """Iterate over schedules in the order of `id`, `next`, `last` or `failures`, reading page by page.

        `match` is a glob over ids, or a part of an id. `source`, `app`, `queue` and `func` may be globs, too. The list
        continues `after` an id, or after the `place` of a row. Each row has the newest `runs` of its ledger.
        """
        wanted = Filter(state, failing, overridden, source, app, queue, func, match)
        for value, name, least, most in ((runs, "runs", 0, _MOST_RUNS), (page, "page", 1, _LARGEST_PAGE)):
            if type(value) is not int or not least <= value <= most:
                raise BadOption(f"{name} {value!r:.60} must be a whole number from {least} to {most:,}")
        found = ordering.order(sort, self._store, wanted.prefix)
        return self._rows(wanted, found, after, runs, page)

    def counts(self) -> Counts:
        """Return how many schedules there are, in all and in each state."""
        names = (*IDLE, "failing", "overridden")
        client: Any = self._store.client
        with self._asking(), client.pipeline(transaction=False) as pipe:
            for key in (self._keys.schedules, *map(self._keys.index, names)):
                pipe.scard(key)
            every, *others = (each if isinstance(each, int) else 0 for each in pipe.execute(raise_on_error=False))
        return Counts(every, max(0, every - sum(others[: len(IDLE)])), *others)

    def next_ticks(self, schedule_id: str, n: int = 5) -> list[NextTick]:
        """Return the next `n` ticks; none if the schedule has finished or is paused without an end."""
        return upcoming.ticks(self.get(schedule_id), n)

    def _rows(self, wanted: Filter, found: ById, after: str | None, runs: int, page: int) -> Iterator[Listed]:
        with self._asking():
            if after is not None and ":" not in after and type(found) is not ordering.ById:
                self.get(after)  # raises UnknownSchedule if it does not exist
            begin = None if after is None else ordering.place(after, found)
            likely = Candidates(self._store, wanted, found)
            for places in pages(itertools.chain.from_iterable(likely.walk(begin, page)), page):
                read = self._read_page(places, runs)
                moved = iter(self._up_to_date(line for _, lines in read for line in lines))
                for place, (known, lines) in zip(places, read, strict=True):
                    told = tuple(itertools.islice(moved, len(lines)))
                    if known and wanted.takes(known):
                        yield Listed(known, told, str(place))

    def _read_page(self, places: Sequence[Place], runs: int) -> list[tuple[Standing | None, list[Fired | Passed]]]:
        """Return each schedule with its newest runs; None for a schedule that no longer exists."""
        ids = [each.id for each in places]
        known = [
            schedule_info.read(each, told) if told else None for each, told in zip(ids, self._hashes(ids), strict=True)
        ]
        asked = {each: (1 + _parts(found)) * runs + _SPARE for each, found in zip(ids, known, strict=True)}
        heads: dict[str, list[bytes]] = dict(self._archive.heads(asked)) if runs else {}
        return [(found, self._newest(each, heads.get(each, []), runs)) for each, found in zip(ids, known, strict=True)]

    def _newest(self, schedule_id: str, head: list[bytes], runs: int) -> list[Fired | Passed]:
        """Return the newest runs in these lines; reuse the last result if the lines are the same."""

        def put_together(lines: list[bytes]) -> list[Fired | Passed]:
            told = assemble(schedule_id, (entry for line in lines if (entry := ledger.read(line))))
            return [line for line in told if isinstance(line, Fired | Passed)][:runs]

        is_small = sum(map(len, head)) <= _SMALL
        return self._lately.made((schedule_id, runs), head, put_together) if is_small else put_together(head)

    def _hashes(self, ids: Sequence[str]) -> Iterator[Mapping[bytes, bytes]]:
        """Yield the hash of each schedule; empty if there is none.

        A key that is not a hash yields a broken schedule whose error says so.
        """
        client: Any = self._store.client
        with client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hgetall(self._keys.schedule(each))
            found = pipe.execute(raise_on_error=False)
        for each, told in zip(ids, found, strict=True):
            said = f"{self._keys.schedule(each)} is no hash".encode()
            yield {b"state": b"broken", b"last_error": said} if is_strange(told) else told


def _parts(known: Standing | None) -> int:
    """Return how many lines report the end of one run: one, or one for each queue of a broadcast."""
    queues = known.definition.get("queues") if known and known.definition.get("route") == "broadcast" else None
    return min(len(queues), MOST_QUEUES) if isinstance(queues, list) else 1
