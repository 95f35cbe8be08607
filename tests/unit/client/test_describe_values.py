"""Values as people write them: JSON where they can be, and else the text that was written."""

from __future__ import annotations

from typing import Any

import pytest

from beat.client.describe import values
from beat.errors import BadOption


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("5", 5),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ('"007"', "007"),
        ("007", "007"),
        ("5a", "5a"),
        ("", ""),
        (" x ", " x "),
        ("[1, [2]]", [1, [2]]),
        ('{"a": 1}', {"a": 1}),
        ("[1,", "[1,"),
        ("True", "True"),
        ("NaN", "NaN"),
        ("[Infinity]", "[Infinity]"),
        ("2026-11-16", "2026-11-16"),
        ("a=b", "a=b"),
        ("[" * 100_000, "[" * 100_000),
        ("9" * 5000, "9" * 5000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_is_json_where_it_can_be(written: str, meant: Any) -> None:
    found = values.value(written)
    assert (found, type(found)) == (meant, type(meant))


def test_pairs_are_names_and_values() -> None:
    assert values.pairs(["a=1", "b=x=y", "c="], "--arg") == {"a": 1, "b": "x=y", "c": ""}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (["kind"], "--arg 'kind' has no value: write --arg name=value"),
        (["=5"], "--arg '=5' has no name: write --arg name=value"),
        ([" =5"], "has no name"),
        (["a=1", "a=2"], "--arg 'a' is there twice: give it once"),
        (["a=1", " a =2"], "--arg 'a' is there twice: give it once"),
    ],
)
def test_what_is_no_pair_is_refused(written: list[str], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        values.pairs(written, "--arg")


@pytest.mark.parametrize(
    ("args", "named", "found"),
    [
        (None, [], (None, None)),
        ("[1, 2]", [], ([1, 2], None)),
        ("[]", ["a=1"], ([], {"a": 1})),
        ('{"a": 1, "b": 2}', ["b=3"], (None, {"a": 1, "b": 3})),
        (None, ["a=x"], (None, {"a": "x"})),
    ],
)
def test_arguments_come_as_a_list_an_object_or_one_by_one(args: str | None, named: list[str], found: Any) -> None:
    assert values.arguments(args, named) == found


@pytest.mark.parametrize("written", ["5", "x", '"x"', "[1"])
def test_arguments_that_are_neither_list_nor_object_are_refused(written: str) -> None:
    with pytest.raises(BadOption, match="is neither a list nor an object of JSON: write --args"):
        values.arguments(written, [])


@pytest.mark.parametrize(
    "value", [5, "5", "true", True, None, "x", "", " x ", "NaN", [1, "2"], {"a": None}, "é", '"'], ids=repr
)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    assert values.value(values.written(value)) == value
    assert type(values.value(values.written(value))) is type(value)


def test_what_is_no_json_is_shown_as_python_writes_it() -> None:
    assert values.written([b"x"]) == "[\"b'x'\"]"
