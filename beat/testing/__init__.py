"""Test the schedules of an application with a clock that is set by hand, without a Redis server.

`assert_fires`, `assert_silent` and `simulate` only compute ticks and need no other package. `ManualBeat` runs a whole
scheduler in this process, on fakeredis: `pip install 'rq-beat[testing]'`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from beat.testing.assertions import assert_fires, assert_silent
from beat.testing.manual_clock import ManualClock
from beat.testing.results import Fired, Skipped
from beat.testing.simulation import Tick, simulate

if TYPE_CHECKING:
    from beat.testing.manual_scheduler import ManualBeat

__all__ = ["Fired", "ManualBeat", "ManualClock", "Skipped", "Tick", "assert_fires", "assert_silent", "simulate"]


def __getattr__(name: str) -> Any:
    if name != "ManualBeat":  # loaded on first use, so that the other helpers work without fakeredis
        raise AttributeError(f"module 'beat.testing' has no attribute {name!r}")
    return globals().setdefault(name, import_module("beat.testing.manual_scheduler").ManualBeat)
