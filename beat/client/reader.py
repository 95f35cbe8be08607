"""Read what Redis keeps of the past: ledgers, records, and the jobs that RQ still has. Nothing is written.

The facts for one answer are read in one step, so a tick that is decided meanwhile is seen completely or not at all.
"""

from __future__ import annotations

import itertools
import marshal
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadInstant
from beat.history import ledger
from beat.jobs import job_template
from beat.jobs.observation import Record
from beat.storage.connection import Refused
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.storage.connection import Redis
    from beat.storage.keys import Keys


class Lines:
    """The lines of a ledger, newest first, compressed page by page: 200,000 of them take a few MB.

    They can be iterated any number of times, in both directions.
    """

    def __init__(self, pages: Iterable[Sequence[bytes]]) -> None:
        self._pages = [zlib.compress(marshal.dumps(list(page)), 1) for page in pages if page]

    def __iter__(self) -> Iterator[bytes]:
        for page in self._pages:
            yield from marshal.loads(zlib.decompress(page))  # noqa: S302 (written here)

    def __reversed__(self) -> Iterator[bytes]:
        for page in reversed(self._pages):
            yield from reversed(marshal.loads(zlib.decompress(page)))  # noqa: S302 (written here)

    def __bool__(self) -> bool:
        return bool(self._pages)


class Entries:
    """The lines that beat wrote, as entries, newest first; each line is parsed during iteration."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[ledger.Entry]:
        return filter(None, map(ledger.read, self._lines))

    def __reversed__(self) -> Iterator[ledger.Entry]:
        return filter(None, map(ledger.read, reversed(self._lines)))

    def landmarks(self) -> list[ledger.Changed | ledger.Acted]:
        """Return the changes and actions, oldest first, without parsing the lines about ticks and runs."""
        found = (ledger.read(line) for line in reversed(self._lines) if not _OF_TICKS.match(line))
        return [entry for entry in found if isinstance(entry, ledger.Changed | ledger.Acted)]


_OF_TICKS = re.compile(rb'\{"type":"(?:enqueued|skipped|waiting|reopened|succeeded|failed|stopped|lost)",')


class Snapshot(NamedTuple):
    """One schedule at one moment."""

    state: Mapping[bytes, bytes]
    """Its hash; empty if there is no such schedule."""
    lines: Lines
    """Its ledger, newest first."""
    open_jobs: frozenset[str]
    """The jobs of all schedules whose outcome is not known yet."""
    running: frozenset[str]
    """The jobs that occupy its slots; empty if runs may overlap."""
    in_line: tuple[tuple[datetime, str], ...]
    """The ticks on the waiting list, oldest first, each with the job whose success it follows, or with an empty
    text."""
    holder: str
    """The owner of its lock."""
    now: datetime
    """The time by Redis' clock."""
    problems: tuple[str, ...]
    """The keys of an unexpected type, in words."""

    @property
    def waiting(self) -> tuple[datetime, ...]:
        """Return the ticks on the waiting list, oldest first."""
        return tuple(tick for tick, _ in self.in_line)

    @property
    def entries(self) -> Entries:
        """Return the lines that beat wrote, as entries, newest first."""
        return Entries(self.lines)


class Progress(NamedTuple):
    """The state of an RQ job from its hash; empty if there is no such job."""

    status: str
    started_at: str
    worker: str
    queue: str


def in_line(member: str) -> tuple[datetime, str] | None:
    """Parse a member of the waiting list, `id tick by` and perhaps the job that it follows; None if it is invalid."""
    _, tick, _, after = [*member.split(" "), "", "", "", ""][:4]
    try:
        return clock.read(tick), after
    except BadInstant:
        return None


__all__ = ["Archive", "Progress", "Snapshot", "is_strange"]

_PAGE = 500
_LINES = 5000
_LEDGER_PAGE = 1000
"""How many lines of one ledger are read at once; Redis returns them within a millisecond or two."""


class Archive:
    """A reader of the past of one installation."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client: Any = client
        self._keys = keys

    def snapshot(self, schedule_id: str, *, whole: bool = True, lines: int | None = None) -> Snapshot:
        """Return a schedule's hash, lock, slots, waiting list and ledger as of one moment.

        `lines` limits the ledger. Without `whole`, only its newest line is read, and only the first member of each set.
        The transaction reads only the first page of a whole ledger. Older lines never change, so they are read
        afterwards.
        """
        most = 1 if not whole else _LEDGER_PAGE if lines is None else lines
        keys = self._keys
        sets = dict.fromkeys((keys.open, keys.running(schedule_id), keys.waiting(schedule_id)), "sorted set")
        wanted = {keys.schedule(schedule_id): "hash", keys.runs(schedule_id): "list", **sets}
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(keys.schedule(schedule_id))
            pipe.lrange(keys.runs(schedule_id), 0, most - 1)
            for each in sets:
                pipe.zrange(each, 0, -1 if whole else 0)
            pipe.get(keys.lock(schedule_id))
            pipe.time()
            *found, holder, (seconds, micros) = pipe.execute(raise_on_error=False)
        pairs = zip(wanted.items(), found, strict=True)
        problems = [f"{key} is no {kind}" for (key, kind), reply in pairs if is_strange(reply)]
        state, ledger, going, running, waiting = ([] if isinstance(each, Exception) else each for each in found)
        older = self._older(schedule_id, ledger) if whole and lines is None and len(ledger) == most else ()
        open_jobs = frozenset(map(_text, going))
        return Snapshot(
            state or {},
            Lines(itertools.chain([ledger], older)),
            open_jobs,
            open_jobs.intersection(map(_text, running)),  # a job that is not open occupies no slot
            tuple(sorted(own for member in waiting if (own := in_line(_text(member))))),
            _text(holder),
            clock.from_ms(int(seconds) * 1000 + int(micros) // 1000),
            tuple(problems),
        )

    def pages(self, schedule_id: str) -> Iterator[list[bytes]]:
        """Yield the ledger, newest first, page by page; lines that are added or trimmed meanwhile leave no gap."""
        first = _sane(self._client.lrange, self._keys.runs(schedule_id), 0, _PAGE - 1)
        if first:
            yield first
            yield from self._older(schedule_id, first, _PAGE) if len(first) == _PAGE else ()

    def _older(self, schedule_id: str, newer: Sequence[bytes], size: int = _LEDGER_PAGE) -> Iterator[list[bytes]]:
        """Yield the lines older than these, page by page; lines that are added or trimmed meanwhile leave no gap."""
        key, start, mark = self._keys.runs(schedule_id), len(newer) - 1, newer[-1]
        while page := _sane(self._client.lrange, key, start, start + size - 1):
            # The last line that was read was at `start`; newer lines may have moved it.
            fresh = page[page.index(mark) + 1 :] if mark in page else []
            start += len(page) - 1
            if fresh:
                mark = fresh[-1]
                yield fresh
            if len(page) < size:
                return

    def newest(self, ids: Sequence[str]) -> list[bytes | None]:
        """Return the newest line of each ledger; None if there is none."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.lindex(self._keys.runs(each), 0)
            found = pipe.execute(raise_on_error=False)
        return [line if isinstance(line, bytes) else None for line in found]

    def heads(self, asked: Mapping[str, int]) -> Iterator[tuple[str, list[bytes]]]:
        """Yield the given number of newest lines of each ledger, several ledgers per round trip."""
        waiting = list(asked.items())
        while waiting:
            lines = itertools.accumulate(number for _, number in waiting[:_PAGE])
            page = waiting[: sum(1 for each in lines if each < _LINES) + 1]
            waiting = waiting[len(page) :]
            with self._client.pipeline(transaction=False) as pipe:
                for each, number in page:
                    pipe.lrange(self._keys.runs(each), 0, number - 1)
                found = pipe.execute(raise_on_error=False)
            for (each, _), head in zip(page, found, strict=True):
                yield each, [] if is_strange(head) else head

    def timings(self, ids: Sequence[str]) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield id, state, next tick, jitter and rule of each id that is a schedule, as they are stored."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(self._keys.schedule(each), "state", "next_run", "jitter", "rule", "definition")
            found = pipe.execute(raise_on_error=False)
        for each, values in zip(ids, found, strict=True):
            if not is_strange(values) and any(values):
                state, following, jitter, rule, definition = map(_text, values)
                yield each, state, following, jitter, rule or definition

    def counted(self, ids: Sequence[str], counters: Sequence[str]) -> list[str]:
        """Return the schedules of which at least one of these counters is not 0."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(self._keys.schedule(each), counters)
            found = pipe.execute(raise_on_error=False)
        return [each for each, counts in zip(ids, found, strict=True) if _is_any(counts)]

    def known(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that have a schedule or a ledger; a ledger may outlive its schedule."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.exists(self._keys.schedule(each), self._keys.runs(each))
            return [each for each, there in zip(ids, pipe.execute(), strict=True) if there]

    def record(self, job_id: str) -> Record | None:
        """Return the record of a run that is open, or that RQ could start again."""
        return Record.read(_text(_sane(self._client.hget, self._keys.records, job_id)))

    def records(self) -> Iterator[tuple[str, Record]]:
        """Yield all records with their jobs; some may come twice."""
        if _sane(self._client.hlen, self._keys.records):
            for job_id, written in self._client.hscan_iter(self._keys.records, count=_PAGE):
                if record := Record.read(_text(written)):
                    yield _text(job_id), record

    def progress(self, job_ids: Sequence[str]) -> list[Progress]:
        """Return the progress of each of these jobs, as RQ reports it."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in job_ids:
                pipe.hmget(job_template.job_key(each), "status", "started_at", "worker_name", "origin")
            found = pipe.execute(raise_on_error=False)
        return [Progress(*map(_text, values if isinstance(values, list) else [""] * 4)) for values in found]

    def jobs(self, start: str) -> Iterator[tuple[str, bytes]]:
        """Yield the id and the meta of each RQ job whose id begins with `start`; some may come twice."""
        prefix = job_template.job_key("")
        batch: list[str] = []
        for key in self._client.scan_iter(f"{prefix}{start}*", count=1000, _type="hash"):
            batch.append(_text(key).removeprefix(prefix))
            if len(batch) == _PAGE:
                yield from self._metas(batch)
                batch = []
        yield from self._metas(batch)

    def _metas(self, job_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        with self._client.pipeline(transaction=False) as pipe:
            for each in job_ids:
                pipe.hget(job_template.job_key(each), "meta")
            found = pipe.execute(raise_on_error=False)
        yield from ((each, meta) for each, meta in zip(job_ids, found, strict=True) if isinstance(meta, bytes))

    def beats(self, now: datetime) -> int:
        """Return how many schedulers are running."""
        return int(self._client.zcount(self._keys.instances, clock.to_ms(now), "+inf"))


def _sane(ask: Callable[..., Any], *words: Any) -> Any:
    """Return the reply; None if the key has another type, because then it is not beat's."""
    try:
        return ask(*words)
    except Refused as e:
        if is_strange(e):
            return None
        raise


def is_strange(reply: object) -> bool:
    """Return whether the key has another type; raise any other error."""
    if isinstance(reply, Refused) and str(reply).startswith("WRONGTYPE"):
        return True
    if isinstance(reply, Exception):
        raise reply
    return False


def _is_any(counts: object) -> bool:
    return isinstance(counts, list) and any(count not in {None, b"0"} for count in counts)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
