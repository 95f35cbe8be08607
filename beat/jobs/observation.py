"""A run as it is seen and remembered: what RQ's own records show of it, and what beat keeps until it is closed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from beat.errors import BadInstant
from beat.timing import clock

if TYPE_CHECKING:
    from datetime import datetime

_MOST = 10**15
_FAR_MS = 10**14
"""In the year 5138: no number that RQ writes is as large."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half a character, which cannot be written; also a byte that is no text."""


@dataclass(frozen=True)
class Record:
    """What beat remembers of a run that is open, or that RQ could start again."""

    schedule: str
    tick: str = ""
    by: str = ""
    queue: str = ""
    """The key of the queue."""
    enqueued: str = ""
    n: int = 0
    life: str = ""
    """When its schedule came: one that was removed and came again counts from nought."""
    retries: int = 0
    """How many times RQ may try again, as its job was made."""
    result_ttl: int | None = None
    failure_ttl: int | None = None
    group: str = ""
    of: str = ""
    """Where a tick was broadcast, the job of the tick: this is a part of it."""
    shard: int = 0
    shards: int = 0
    requeued: int = 0
    """How many times it was started again by somebody."""
    missing: int = 0
    """Since when it is in no queue and with no worker, in ms."""
    missing_as: str = ""
    """The status that it had then."""
    replaced_by: str = ""
    """The tick for which beat stopped it or took it out of its queue."""
    outcome: str = ""
    """How it was closed; nothing while it is open."""
    sign: str = ""
    started: str = ""
    ended: str = ""
    attempts: int = 0

    @property
    def part(self) -> str:
        """Which part of a broadcast it is, as `close` takes it."""
        return f"{self.of} {self.shard} {self.shards}" if self.of else ""

    def share(self) -> dict[str, str | int]:
        """Which part of a broadcast it is, as the ledger says it."""
        return {"of": self.of, "shard": self.shard} if self.of else {}

    @classmethod
    def read(cls, text: str) -> Self | None:
        """What a script or `text` wrote; None for anything else."""
        try:
            known = {name: value for name, value in json.loads(text).items() if name in _KINDS}
            made = cls(**known)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return made if all(_fits(value, _KINDS[name]) for name, value in known.items()) else None

    def text(self) -> str:
        """As Redis keeps it."""
        empty = type(self)(self.schedule)
        kept = {name: v for name in self.__dataclass_fields__ if (v := getattr(self, name)) != getattr(empty, name)}
        return json.dumps({"schedule": self.schedule, **kept}, separators=(",", ":"))


_KINDS = {field.name: str(field.type) for field in fields(Record)}


@dataclass(frozen=True)
class Sighting:
    """One run, as Redis showed it: the fields of RQ's hash and of its newest result; empty where there is nothing."""

    job: str
    where: str
    record: str
    status: str
    started_at: str
    ended_at: str
    worker_name: str
    origin: str
    retries_left: str
    number_of_retries: str
    timeout: str
    """The time limit of an attempt in seconds, by RQ; -1 when it has none."""
    success_callback_timeout: str
    failure_callback_timeout: str
    alive: str
    """Of a started run: 1 when its worker has shown life in time, `left` when it is at something else, else 0."""
    placed: str
    """Of a waiting run that was looked for: 1 when it is in its queue, else 0."""
    result_type: str
    result_id: str
    result_worker: str
    result_started: str
    result_ended: str
    value: bytes
    error: bytes

    @property
    def sign(self) -> str:
        """By which a change is noticed."""
        return f"{self.status}|{self.started_at}|{self.ended_at}" if self.status else ""

    @property
    def started(self) -> datetime | None:
        """When the newest attempt began, by its worker's clock."""
        return _instant(self.started_at) or _epoch(self.result_started)

    @property
    def ended(self) -> datetime | None:
        """When an attempt ended, by its worker's clock: perhaps an earlier one than that which began last."""
        return _instant(self.ended_at) or _epoch(self.result_ended)

    @property
    def written(self) -> datetime | None:
        """When the newest result was written, by Redis' clock."""
        milliseconds = number(self.result_id.partition("-")[0], 0)
        return clock.from_ms(milliseconds) if milliseconds else None

    @property
    def worker(self) -> str:
        """Who had it last: after a killed work-horse RQ's hash names an earlier one."""
        name = self.worker_name if self.status == "started" else self.result_worker or self.worker_name
        return name.encode(errors="surrogateescape").decode(errors="replace")


def number(text: str, default: int) -> int:
    """A number that RQ wrote."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(_FAR_MS)) else default


def _instant(text: str) -> datetime | None:
    try:
        return clock.from_ms(clock.to_ms(clock.read(text))) if text else None
    except BadInstant:
        return None


def _epoch(text: str) -> datetime | None:
    try:
        return clock.from_ms(int(float(text) * 1000)) if text else None
    except (ValueError, OverflowError):
        return None


def _fits(value: object, kind: str) -> bool:
    if type(value) is str:
        return kind == "str" and (value.isascii() or not _HALF.search(value))
    if type(value) is int:  # True is one, too, and does not fit
        return kind != "str" and 0 <= value < _MOST
    return value is None and kind == "int | None"
