"""A directory with an application in it, into which schedules move."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import beat
from beat.migrate import writer
from beat.schedule.registry import Registry
from tests.support.files import lay_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path
    from types import ModuleType

    import pytest

    from beat.migrate import Found, Reading
    from beat.schedule.schedule import Schedule

APP = {
    "app/__init__.py": "",
    "app/tasks.py": """
        def add(*args, **kwargs):
            '''Adds.'''

        def report(*args, **kwargs):
            '''Reports.'''

        class Jobs:
            @staticmethod
            def run(): ...
    """,
}


@dataclass
class House:
    """The directory, current and importable; what is imported from it is forgotten with the test."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def write(self, name: str, text: str) -> str:
        lay_out(self.folder, {name: text})
        return name

    def run_printed(self, reading: Reading) -> tuple[Registry, ModuleType]:
        """The printed Python, imported as a user's module: what it declares, and the module."""
        registry = Registry()
        self.monkeypatch.setattr(beat, "register", registry.register, raising=False)
        self.monkeypatch.setattr(beat, "periodic", registry.periodic, raising=False)
        (self.folder / "moved.py").write_text(writer.module(reading), encoding="utf-8")
        sys.modules.pop("moved", None)
        importlib.invalidate_caches()
        return registry, importlib.import_module("moved")

    def declared(self, reading: Reading) -> dict[str, Schedule]:
        """The schedules of the printed Python, by id."""
        registry, _ = self.run_printed(reading)
        return {schedule.id: schedule for schedule in registry}


def furnished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    lay_out(folder, {**APP, "pyproject.toml": ""})
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("TZ", "UTC")
    before = set(sys.modules)
    yield House(folder, monkeypatch)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"app", "moved", "celeryconfig", "cron_config", "celery"}:
            del sys.modules[name]


def only(reading: Reading) -> Found:
    """The one schedule that was found; nothing was left."""
    assert reading.left == ()
    [found] = reading.found
    return found


def why(reading: Reading) -> str:
    """Why the one schedule was left; nothing was found."""
    assert reading.found == ()
    [left] = reading.left
    return left.why


def local(ticks: list[datetime], schedule: Schedule, pattern: str = "%m-%d %H:%M") -> list[str]:
    """Ticks as the wall clock of the schedule's zone shows them."""
    return [f"{tick.astimezone(ZoneInfo(schedule.tz or 'UTC')):{pattern}}" for tick in ticks]
