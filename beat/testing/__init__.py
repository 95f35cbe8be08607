"""For the tests of an application: its schedules tried by a clock that is set by hand, without a server.

`assert_fires`, `assert_silent` and `simulate` ask the schedules alone and need nothing else. `ManualBeat` runs a whole
beat in this process, on fakeredis: `pip install 'rq-beat[testing]'`.
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
    if name != "ManualBeat":  # loaded when it is first used: the others work without fakeredis
        raise AttributeError(f"module 'beat.testing' has no attribute {name!r}")
    return globals().setdefault(name, import_module("beat.testing.manual_scheduler").ManualBeat)
