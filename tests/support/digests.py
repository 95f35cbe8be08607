"""Prints the digests of schedules with arguments of every kind: the same in every process, or beats would disagree.

Beside each stands a digest of the pickle, which may differ.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from beat.schedule.schedule import Schedule
from beat.timing.interval import Every
from tests.support.declared import MISSING, Colour, Number, Point, Queues, Tags, plain

WORDS = ["how", "vexingly", "quick", "daft", "zebras", "jump", "over", "the", "lazy", "dogs", "of", "our"]

SAMPLES: dict[str, Any] = {
    "nothing": None,
    "numbers": [0, -1, 1.5, -0.0, 10**30, -(10**5000), True],
    "floats": [float("inf"), 0.1 + 0.2, 5e-324],
    "text": ["", "daily", "Größe 🎉", "\ud800"],
    "bytes": [b"\x00\xff", bytearray(b"a")],
    "set": set(WORDS),
    "frozenset": frozenset(WORDS),
    "set of sets": {frozenset(WORDS[:5]), frozenset(WORDS[5:])},
    "mixed set": {1, "a", None, 2.5, ("b", 3), Colour.RED},
    "subclass of a set": Tags(WORDS),
    "dict": {word: {word} for word in WORDS},
    "dict with odd keys": {("a", 1): 1, None: 2, 3: 3, frozenset(WORDS): 4},
    "counter": Counter(WORDS),
    "ordered dict": OrderedDict(a=1, b=2),
    "default dict": defaultdict(list, a=[1]),
    "deque": deque([1, 2], maxlen=5),
    "datetime": datetime(2026, 11, 16, 9, tzinfo=UTC),
    "datetime in a zone": datetime(2026, 11, 16, 9, tzinfo=ZoneInfo("Europe/Paris")),
    "date": date(2026, 11, 16),
    "timedelta": timedelta(minutes=90),
    "decimal": Decimal("1.50"),
    "fraction": Fraction(1, 3),
    "uuid": UUID(int=5),
    "enum": [Colour.RED, Queues.REPORTS, Number.THREE],
    "dataclass": Point(1, frozenset(WORDS)),
    "path": PurePosixPath("/srv/data"),
    "pattern": re.compile("a+", re.IGNORECASE),
    "range": [range(3), slice(1, 2)],
    "complex": 1 + 2j,
    "function": [plain, len, partial(plain)],
    "class": [Point, int, list[int]],
    "singleton": [MISSING, ...],
    "one list twice": [WORDS, WORDS],
}


def digests() -> dict[str, tuple[str, str, str]]:
    """Name → rev, timing_rev, digest of the pickle."""
    found = {}
    for name, value in SAMPLES.items():
        made = Schedule(id="digests", func="app.f", timing=Every("1h"), kwargs={"value": value}, meta={"value": value})
        written = hashlib.sha256(pickle.dumps(value)).hexdigest()
        found[name] = (made.rev, made.timing_rev, written)
    return found


if __name__ == "__main__":
    print(json.dumps(digests()))  # noqa: T201 (a program)
