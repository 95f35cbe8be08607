"""Read the metrics of each schedule from its hash. Values that cannot be read are left out."""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from beat.storage.store import glance
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from beat.storage.store import Store

STATUSES = ("succeeded", "failed", "stopped", "lost")
OTHER = "other"
"""The label of all schedules without metrics of their own, and of skips without a counted reason."""
_FIELDS = (
    "state due_at last_run last_skip last_success unannounced_at consecutive_failures run_count skip_count ends skips"
)
_PAGE = 250  # so that no script blocks Redis for 25 ms
_LONGEST = 15
_GONE = {"retired", "disabled"}  # these do not run, so their failures do not matter
_COUNTED = re.compile(r"([a-z_]+) ([0-9]{1,15})(?: |$)")


class Row(NamedTuple):
    """The metrics of one schedule, or of all schedules together that have none of their own."""

    id: str
    enqueued: int
    ends: tuple[int, ...]
    """How many runs ended in each of `STATUSES`."""
    skips: Mapping[str, int]
    """How many ticks were skipped, by reason."""
    failures: int | None = None
    last_run: float | None = None
    last_success: float | None = None
    next_run: float | None = None
    """When the next tick is due, if the schedule is active and not on hold."""
    period: float | None = None
    """The seconds from the newest tick, fired or skipped, to the next one; only where `next_run` is known."""


def read(store: Store, globs: Iterable[str]) -> Iterator[Row]:
    """Yield the schedules that match a glob, then the sums of all others."""
    matches, others, namesake = _matching(globs), None, None
    for row in _rows(store):
        if not matches(row.id):
            others = _sum(others, row)
        elif row.id == OTHER:
            namesake = row
        else:
            yield row
    if others:
        yield _sum(others, namesake) if namesake else others  # two rows must not have the same label
    elif namesake:
        yield namesake


def _rows(store: Store) -> Iterator[Row]:
    ids = _ids(store)
    for each, values in zip(ids, glance(store, ids, _PAGE, fields=_FIELDS), strict=True):
        if values[0]:  # otherwise it is gone, or its key is not a hash
            yield _row(each, *values)


def _ids(store: Store) -> list[str]:
    """Return each id once, though a scan may return some twice."""
    found = store.client.sscan_iter(store.keys.schedules, count=1000)
    return sorted({each.decode(errors="replace") for each in found})


def _row(schedule_id: str, state: str, due_at: str, *more: str) -> Row:
    last_run, last_skip, last_success, unannounced_at, failures, enqueued, skipped, ends, skips = more
    by_status, by_reason = _counts(ends), _counts(skips)
    if (rest := _count(skipped) - sum(by_reason.values())) > 0:
        by_reason[OTHER] = rest
    next_run = _seconds(due_at) if state == "active" and not unannounced_at else None
    return Row(
        schedule_id,
        _count(enqueued),
        tuple([by_status.get(status, 0) for status in STATUSES]),
        by_reason,
        None if state in _GONE else _count(failures),
        _seconds(last_run),
        _seconds(last_success),
        next_run,
        _period(next_run, _seconds(last_run), _seconds(last_skip)),
    )


def _period(next_run: float | None, *ticks: float | None) -> float | None:
    newest = max((tick for tick in ticks if tick), default=None)
    return next_run - newest if next_run and newest and next_run > newest else None


def _counts(written: str) -> dict[str, int]:
    return {word: int(number) for word, number in _COUNTED.findall(written)} if written else {}


def _sum(one: Row | None, other: Row) -> Row:
    if one is None:
        return Row(OTHER, other.enqueued, other.ends, other.skips)
    skips = {reason: one.skips.get(reason, 0) + number for reason, number in other.skips.items()}
    ends = tuple(map(sum, zip(one.ends, other.ends, strict=True)))
    return Row(OTHER, one.enqueued + other.enqueued, ends, {**one.skips, **skips})


def _matching(globs: Iterable[str]) -> Callable[[str], object]:
    whole = "|".join(fnmatch.translate(glob) for glob in globs)
    return re.compile(whole or r"(?!)").match


def _count(written: str) -> int:
    return int(written) if written.isascii() and written.isdigit() and len(written) <= _LONGEST else 0


@functools.lru_cache(maxsize=50_000)
def _seconds(written: str) -> float | None:
    found = clock.found(written)
    return found.timestamp() if found else None
