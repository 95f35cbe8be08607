"""Load the previous scripts, and bind the names in their headers to the keys of a test, as beat did."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent / "scripts"
_NAMED = re.compile(r"^-- (KEYS|ARGV)\[\d+\] +(\w+) ", re.MULTILINE)
_REPLY = re.compile(r"^-- +([A-Z]{2,})  ", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include (\w+)\n", re.MULTILINE)

FIXED: dict[str, Any] = {
    "schedules": "beat:schedules",
    "due": "beat:due",
    "due_index": "beat:due",
    "meta": "beat:meta",
    "events": "beat:events",
    "announcements": "beat:announcements",
    "open": "beat:open",
    "closed": "beat:closed",
    "records": "beat:records",
    "waiting_slots": "beat:waiting",
    "functions": "beat:functions",
    "fanout": "beat:fanout",
    "groups": "beat:groups",
    "schedule_prefix": "beat:schedule:",
    "lock_prefix": "beat:lock:",
    "template_prefix": "beat:template:",
    "runs_prefix": "beat:runs:",
    "running_prefix": "beat:running:",
    "waiting_prefix": "beat:waiting:",
    "followers_prefix": "beat:followers:",
    "slow_prefix": "beat:slow:",
    "shards_prefix": "beat:shards:",
    "announced_prefix": "beat:announced:",
    "index_prefix": "beat:in:",
    "app_prefix": "beat:app:",
    "request_prefix": "beat:request:",
    "queues": "rq:queues",
    "job_prefix": "rq:job:",
    "queue_prefix": "rq:queue:",
    "results_prefix": "rq:results:",
    "format": 1,
}
"""The arguments that were the same in every call, with the keys' usual prefix."""


@functools.cache
def text(name: str) -> str:
    """Return the text of a previous script with all its parts."""
    return _INCLUDE.sub(lambda part: _read(f"parts/{part[1]}"), _read(name))


@functools.cache
def arguments(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a script's keys and of its other arguments, in order."""
    named = _NAMED.findall(_read(name))
    keys, args = (tuple(word for kind, word in named if kind == wanted) for wanted in ("KEYS", "ARGV"))
    return keys, args


@functools.cache
def replies(name: str) -> tuple[str, ...]:
    """Return the reply codes that a script's header promises."""
    return tuple(dict.fromkeys(_REPLY.findall(_read(name))))


def _read(name: str) -> str:
    return (_HERE / f"{name}.lua").read_text(encoding="utf-8")
