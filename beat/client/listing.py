"""Schedules listed: some of them, in an order, from a place on, and no more is read than is asked for.

An index proposes, the hash of each schedule decides: what an index does not know is found when a beat repairs it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import ledger
from beat.client import ahead, orders, standing
from beat.client.archive import is_strange
from beat.client.candidates import FEW, IDLE, Candidates, Filter
from beat.client.lately import Lately
from beat.client.questions import Questions
from beat.errors import BadOption
from beat.history import Fired, Passed, assemble
from beat.place_options import MOST_QUEUES
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from beat.client.ahead import NextTick
    from beat.client.orders import ById, Place
    from beat.client.standing import Standing
    from beat.connection import Redis

_SPARE = 6  # lines of a ledger that are no runs, besides two for each run
_MOST_RUNS = 100
_REMEMBERED, _SMALL = 250, 65_536  # ledgers, and bytes of one


class Listed(NamedTuple):
    """One row of a list."""

    standing: Standing
    runs: tuple[Fired | Passed, ...]
    """The newest of its runs, and of the ticks that passed without one, newest first; as many as were asked for."""
    place: str
    """After which the list goes on: for `after`."""

    @property
    def last(self) -> Fired | None:
        """The newest run, if it is among them."""
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
    """Of those, how many failed when they last ran."""
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
        """Schedules in the order of `id`, `next`, `last` or `failures`, read page by page as they are taken.

        `match` is a glob over ids, or a part of them; `source`, `app`, `queue` and `func` may be globs, too. Goes on
        `after` an id, or after the place of a row. With each come the newest `runs` of its ledger.
        """
        wanted = Filter(state, failing, overridden, source, app, queue, func, match)
        for value, name, least, most in ((runs, "runs", 0, _MOST_RUNS), (page, "page", 1, FEW)):
            if type(value) is not int or not least <= value <= most:
                raise BadOption(f"{name} {value!r:.60} must be a whole number from {least} to {most:,}")
        found = orders.order(sort, self._store, wanted.prefix)
        return self._rows(wanted, found, after, runs, page)

    def counts(self) -> Counts:
        """How many schedules there are, in all and in each state."""
        names = (*IDLE, "failing", "overridden")
        client: Any = self._store.client
        with self._asking(), client.pipeline(transaction=False) as pipe:
            for key in (self._keys.schedules, *map(self._keys.index, names)):
                pipe.scard(key)
            every, *others = (each if isinstance(each, int) else 0 for each in pipe.execute(raise_on_error=False))
        return Counts(every, max(0, every - sum(others[: len(IDLE)])), *others)

    def next_ticks(self, schedule_id: str, n: int = 5) -> list[NextTick]:
        """The next `n` ticks, as they are in force: none while it is paused without an end, or has finished."""
        return ahead.ticks(self.get(schedule_id), n)

    def _rows(self, wanted: Filter, found: ById, after: str | None, runs: int, page: int) -> Iterator[Listed]:
        with self._asking():
            if after is not None and ":" not in after and type(found) is not orders.ById:
                self.get(after)  # where does it stand?
            begin = None if after is None else orders.place(after, found)
            likely = Candidates(self._store, wanted, found)
            for places in pages(itertools.chain.from_iterable(likely.walk(begin, page)), page):
                read = self._read_page(places, runs)
                moved = iter(self._up_to_date(line for _, lines in read for line in lines))
                for place, (known, lines) in zip(places, read, strict=True):
                    told = tuple(itertools.islice(moved, len(lines)))
                    if known and wanted.takes(known):
                        yield Listed(known, told, str(place))

    def _read_page(self, places: Sequence[Place], runs: int) -> list[tuple[Standing | None, list[Fired | Passed]]]:
        """Where each stands, and its newest runs; None where it is gone by now."""
        ids = [each.id for each in places]
        known = [standing.read(each, told) if told else None for each, told in zip(ids, self._hashes(ids), strict=True)]
        asked = {each: (1 + _parts(found)) * runs + _SPARE for each, found in zip(ids, known, strict=True)}
        heads: dict[str, list[bytes]] = dict(self._archive.heads(asked)) if runs else {}
        return [(found, self._newest(each, heads.get(each, []), runs)) for each, found in zip(ids, known, strict=True)]

    def _newest(self, schedule_id: str, head: list[bytes], runs: int) -> list[Fired | Passed]:
        """The newest runs that these lines tell of; where the lines are those of the last time, so are the runs."""

        def put_together(lines: list[bytes]) -> list[Fired | Passed]:
            told = assemble(schedule_id, (entry for line in lines if (entry := ledger.read(line))))
            return [line for line in told if isinstance(line, Fired | Passed)][:runs]

        is_small = sum(map(len, head)) <= _SMALL
        return self._lately.made((schedule_id, runs), head, put_together) if is_small else put_together(head)

    def _hashes(self, ids: Sequence[str]) -> Iterator[Mapping[bytes, bytes]]:
        """Of each of these schedules; empty where there is none. What is no hash is a broken one that says so."""
        client: Any = self._store.client
        with client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hgetall(self._keys.schedule(each))
            found = pipe.execute(raise_on_error=False)
        for each, told in zip(ids, found, strict=True):
            said = f"{self._keys.schedule(each)} is no hash".encode()
            yield {b"state": b"broken", b"last_error": said} if is_strange(told) else told


def _parts(known: Standing | None) -> int:
    """How many lines tell of the end of a run: one, or one for each queue to which its ticks go."""
    queues = known.definition.get("queues") if known and known.definition.get("route") == "broadcast" else None
    return min(len(queues), MOST_QUEUES) if isinstance(queues, list) else 1
