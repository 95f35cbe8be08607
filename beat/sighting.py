"""A run as it is seen and remembered: what RQ's own records show of it, and what beat keeps until it is closed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Self

_MOST = 10**15
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
    retries: int = 0
    """How many times RQ may try again, as its job was made."""
    result_ttl: int | None = None
    failure_ttl: int | None = None
    requeued: int = 0
    """How many times it was started again by somebody."""
    missing: int = 0
    """Since when it is in no queue and with no worker, in ms."""
    missing_as: str = ""
    """The status that it had then."""
    outcome: str = ""
    """How it was closed; nothing while it is open."""
    sign: str = ""
    started: str = ""
    ended: str = ""
    attempts: int = 0

    @classmethod
    def read(cls, text: str) -> Self | None:
        """What a script or `text` wrote; None for anything else."""
        try:
            found = json.loads(text)
            known = {field.name: found[field.name] for field in fields(cls) if field.name in found}
            made = cls(**known)
        except (ValueError, TypeError, RecursionError):
            return None
        return made if all(_fits(getattr(made, field.name), str(field.type)) for field in fields(cls)) else None

    def text(self) -> str:
        """As Redis keeps it."""
        empty = type(self)(self.schedule)
        kept = {name: v for name in self.__dataclass_fields__ if (v := getattr(self, name)) != getattr(empty, name)}
        return json.dumps({"schedule": self.schedule, **kept}, separators=(",", ":"))


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
    alive: str
    """Of a started run: 1 when its worker has shown life in time, else 0."""
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
        return f"{self.status}|{self.ended_at}" if self.status else ""


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, str):
        return kind == "str" and not _HALF.search(value)
    number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
    return number if kind == "int" else kind != "str" and (number or value is None)
