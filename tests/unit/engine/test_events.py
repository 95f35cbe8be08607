"""Every event that the code tells has a name that people can look up; and every name is told by somebody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from beat.engine.events import NAMES, Event
from tests.support.emitted import emitted


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Event("fired").name = "skipped"  # type: ignore[misc]  # that is the question


def test_every_event_that_is_told_has_a_name() -> None:
    assert {each.name for each in emitted()} <= set(NAMES)


def test_every_name_is_told_by_somebody() -> None:
    assert set(NAMES) <= {each.name for each in emitted()}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_explained_in_a_line(name: str) -> None:
    assert NAMES[name]
    assert "\n" not in NAMES[name]
    assert not NAMES[name].endswith(".")


def test_the_outbox_comes_with_import_beat() -> None:
    program = "import sys, beat; assert 'beat.events' not in sys.modules; beat.events.read"
    subprocess.run([sys.executable, "-c", program], check=True)
