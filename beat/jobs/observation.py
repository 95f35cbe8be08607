"""Represent a run twice: as RQ's own records show it, and as beat remembers it until it is closed."""

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
"""An upper bound for RQ's numbers: a time in ms in the year 5138."""
_HALF = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which UTF-8 cannot encode; it also stands for an undecodable byte."""


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
    """When its schedule was created; a schedule that was removed and created again starts new counters."""
    retries: int = 0
    """How many retries RQ allowed when the job was created."""
    result_ttl: int | None = None
    failure_ttl: int | None = None
    group: str = ""
    of: str = ""
    """For a part of a broadcast, the job id of the tick."""
    shard: int = 0
    shards: int = 0
    requeued: int = 0
    """How many times a person started the run again."""
    missing: int = 0
    """Since when the run is in no queue and with no worker, in ms; 0 if it is not missing."""
    missing_as: str = ""
    """The status of the job at that time."""
    replaced_by: str = ""
    """The newer tick for which beat stopped the run or took it out of its queue."""
    outcome: str = ""
    """The recorded outcome; empty while the run is open."""
    sign: str = ""
    started: str = ""
    ended: str = ""
    attempts: int = 0

    @property
    def part(self) -> str:
        """Return the part of a broadcast, as the script `close` takes it; empty for any other run."""
        return f"{self.of} {self.shard} {self.shards}" if self.of else ""

    def share(self) -> dict[str, str | int]:
        """Return the ledger fields that name the part of a broadcast; empty for any other run."""
        return {"of": self.of, "shard": self.shard} if self.of else {}

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the record that `text` or a script wrote; None for any other text."""
        try:
            known = {name: value for name, value in json.loads(text).items() if name in _KINDS}
            made = cls(**known)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return made if all(_fits(value, _KINDS[name]) for name, value in known.items()) else None

    def text(self) -> str:
        """Return the record as Redis keeps it."""
        empty = type(self)(self.schedule)
        kept = {name: v for name in self.__dataclass_fields__ if (v := getattr(self, name)) != getattr(empty, name)}
        return json.dumps({"schedule": self.schedule, **kept}, separators=(",", ":"))


_KINDS = {field.name: str(field.type) for field in fields(Record)}


@dataclass(frozen=True)
class Sighting:
    """An observation of one run: the fields of RQ's hash and of its newest result; missing fields are empty."""

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
    """RQ's time limit of an attempt in seconds; -1 for none."""
    success_callback_timeout: str
    failure_callback_timeout: str
    alive: str
    """For a started run: 1 if its worker sent a heartbeat in time, `left` if the worker has another job, else 0."""
    placed: str
    """For a queued run that was searched for: 1 if it is in its queue, else 0."""
    result_type: str
    result_id: str
    result_worker: str
    result_started: str
    result_ended: str
    value: bytes
    error: bytes

    @property
    def sign(self) -> str:
        """Return a fingerprint that changes with the run; empty if RQ has no record of it."""
        return f"{self.status}|{self.started_at}|{self.ended_at}" if self.status else ""

    @property
    def started(self) -> datetime | None:
        """Return when the newest attempt began, by its worker's clock."""
        return _instant(self.started_at) or _epoch(self.result_started)

    @property
    def ended(self) -> datetime | None:
        """Return when an attempt ended, by its worker's clock; it may be an attempt before the newest."""
        return _instant(self.ended_at) or _epoch(self.result_ended)

    @property
    def written(self) -> datetime | None:
        """Return when the newest result was written, by Redis' clock."""
        milliseconds = number(self.result_id.partition("-")[0], 0)
        return clock.from_ms(milliseconds) if milliseconds else None

    @property
    def worker(self) -> str:
        """Return the name of the last worker; after a killed work-horse, RQ's hash names an earlier one."""
        name = self.worker_name if self.status == "started" else self.result_worker or self.worker_name
        return name.encode(errors="surrogateescape").decode(errors="replace")


def number(text: str, default: int) -> int:
    """Return the number that RQ wrote, or `default` for anything else."""
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
    if type(value) is int:  # excludes bool, a subclass of int
        return kind != "str" and 0 <= value < _MOST
    return value is None and kind == "int | None"
