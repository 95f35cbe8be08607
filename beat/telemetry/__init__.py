"""Log, measure and trace what a scheduler does.

`Collector` shows beat's metrics in a registry of prometheus_client. It is imported on first use, because it needs the
extra `metrics`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beat.telemetry.metrics import Collector

__all__ = ["Collector"]


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any misspelt name

    def __getattr__(name: str) -> object:
        """Import a public name on first use."""
        if name not in __all__:
            raise AttributeError(f"module 'beat.telemetry' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module("beat.telemetry.metrics"), name))
