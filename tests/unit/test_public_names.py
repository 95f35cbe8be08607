"""What `dir(beat)` and `help(beat.periodic)` show."""

from __future__ import annotations

import pydoc
import re

import pytest

import beat
from beat.schedule.options import Options


def test_dir_shows_exactly_the_public_names() -> None:
    assert dir(beat) == sorted(beat.__all__)
    assert all(getattr(beat, name) is not None for name in dir(beat))


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'beat' has no attribute 'perodic'"):
        getattr(beat, "perodic")  # noqa: B009 (mypy knows that it is not there)


def test_help_shows_every_option_with_its_type_and_one_line() -> None:
    shown = pydoc.plain(pydoc.render_doc(beat.periodic))
    options = dict(re.findall(r"^ {8}(\w+) \((.+?)\): [A-Z\"].*\.$", shown, re.MULTILINE))
    types = {name: getattr(each, "__forward_arg__", each) for name, each in Options.__annotations__.items()}
    assert options == {"expression": "str", **types}
