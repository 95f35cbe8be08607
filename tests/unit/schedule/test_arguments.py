from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict, defaultdict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beat
from beat.errors import BadArguments, DeclarationError
from beat.schedule.arguments import LARGEST, canonical, freeze
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every
from tests.support import refusals
from tests.support.chance import examples
from tests.support.declared import MISSING, MISSING_TOO, Colour, Forgetful, Point, Tags, anything, plain
from tests.support.digests import SAMPLES, digests
from tests.support.refusals import BadRepr, accepted, refused

PROJECT = Path(beat.__file__).parent.parent
STRANGER = type("Stranger", (), {"__module__": "__main__"})


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def folded(times: int) -> list[Any]:
    """Small in memory and in a pickle; two to the power of `times` values when read to its end."""
    value: list[Any] = [1]
    for _ in range(times):
        value = [value, value]
    return value


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def local() -> object:
    class Local: ...

    return Local()


def with_args(value: object) -> Schedule:
    return Schedule(id="a", func="app.f", timing=Every("1h"), args=[value])


# --- what no worker would get ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda: None, "args[0] refers to tests.unit.schedule.test_arguments.<lambda>, which no worker can import"),
        (
            local(),
            "args[0] refers to tests.unit.schedule.test_arguments.local.<locals>.Local, which no worker can import",
        ),
        (type(local()), "which no worker can import: move it to the top of a module"),
        (STRANGER, "args[0] refers to __main__.Stranger, which no worker can import"),
        (STRANGER(), "args[0] refers to __main__.Stranger, which no worker can import"),
        (threading.Lock(), "args[0] cannot reach a worker: cannot pickle '_thread.lock' object; pass plain data"),
        (sys.stdout, "args[0] cannot reach a worker"),
        (sys, "args[0] cannot reach a worker: cannot pickle 'module' object"),
        ((n for n in [1]), "args[0] cannot reach a worker: cannot pickle 'generator' object"),
        (memoryview(b"a"), "build the memoryview in the job"),
        ({}.keys(), "args[0] cannot reach a worker: cannot pickle 'dict_keys' object"),
        (type("Lost", (), {"__module__": "app"}), "args cannot be written by pickle"),
        (Forgetful(5, "lost"), "args can be written but not read again: TypeError"),
        ([1, {"a": [2, lambda: None]}], "args[0][1].a[1] refers to"),
        ({"a b": lambda: None}, "args[0]['a b'] refers to"),
        ({5: lambda: None}, "args[0][5] refers to"),
        ({Colour.RED: lambda: None}, "args[0][<Colour>] refers to"),
        ({plain: 1, local: 2, (lambda: None): 3}, "a key of args[0] refers to"),
        ({lambda: None}, "args[0]{…} refers to"),
        (Point(lambda: None), "args[0].x refers to"),  # type: ignore[arg-type]  # whatever is in there
        (defaultdict(lambda: 0), "args[0][0] refers to"),
        (OrderedDict(a=lambda: None), "args[0][0][1] refers to"),
        pytest.param("x" * 300_000, "bytes, 262,144 is the most: pass a key to the data", id="300 KB of text"),
        pytest.param(b"x" * 300_000, "bytes, 262,144 is the most: pass a key to the data", id="300 KB of bytes"),
        pytest.param(1 << 3_000_000, "bytes, 262,144 is the most: pass a key to the data", id="a number of 366 KB"),
        pytest.param("x" * 10**7, "args is too large", id="10 MB of text"),
        pytest.param(1 << 10**8, "args is too large", id="a number of 12 MB"),
        pytest.param(list(range(10**6)), "args is too large", id="a million numbers"),
        pytest.param(folded(64), "args is too large, shared parts counted each time", id="2 to the power of 64 values"),
        pytest.param(["x" * 200_000] * 1_000, "args is too large", id="one long text a thousand times"),
        pytest.param(nested(3_000), "nested more than 100 levels deep: pass flat data", id="3,000 levels"),
        pytest.param(nested(100_000), "nested more than 100 levels deep", id="100,000 levels"),
        (cycle(), "nested more than 100 levels deep"),
    ],
)
def test_what_no_worker_would_get_is_refused_by_its_path(value: Any, words: str) -> None:
    began = time.process_time()
    assert words in refused(BadArguments, lambda: freeze([value], "args", "pickle"))
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "kwargs.a is nan, which JSON cannot write: pass None"),
        ([1, 2, float("inf")], "kwargs.a[2] is inf, which JSON cannot write"),
        ((1, 2), "kwargs.a is a tuple, which comes back from JSON as a list: write a list"),
        ([[(1, 2)]], "kwargs.a[0][0] is a tuple"),
        ({5: 1}, "kwargs.a has the key 5, which comes back from JSON as text"),
        ({None: 1}, "kwargs.a has the key None"),
        ({"b": {True: 1}}, "kwargs.a.b has the key True"),
        ({Colour.RED: 1}, "kwargs.a has the key <Colour>"),
        ({1}, "kwargs.a is a set, which JSON cannot write: pass plain data, or use serializer='pickle'"),
        (b"a", "kwargs.a is a bytes, which JSON cannot write"),
        (datetime(2026, 11, 16, tzinfo=UTC), "kwargs.a is a datetime, which JSON cannot write"),
        (Decimal(1), "kwargs.a is a Decimal, which JSON cannot write"),
        (Colour.RED, "kwargs.a is a Colour, which JSON cannot write"),
        (OrderedDict(a=1), "kwargs.a is a OrderedDict, which JSON cannot write"),
        (plain, "kwargs.a is a function, which JSON cannot write"),
        ("\ud83d\ude00", "kwargs.a has half a character (a surrogate)"),
        ({"\ud83d\ude00": 1}, "a key of kwargs.a has half a character (a surrogate)"),
        pytest.param(10**5000, "kwargs cannot be written by json", id="more digits than Python prints"),
        pytest.param("é" * 100_000, "kwargs takes 600,009 bytes", id="100,000 letters that JSON escapes"),
        pytest.param(nested(3_000), "nested more than 100 levels deep", id="3,000 levels"),
    ],
)
def test_what_json_would_change_or_not_write_is_refused_by_its_path(value: Any, words: str) -> None:
    assert words in refused(BadArguments, lambda: freeze({"a": value}, "kwargs", "json"))


def test_a_very_long_key_is_cut_short_in_the_path() -> None:
    assert "kwargs.xxx" in refused(BadArguments, lambda: freeze({"x" * 100_000: (1,)}, "kwargs", "json"))


@pytest.mark.parametrize("hostile", refusals.HOSTILE)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [{"a": value}], Point])
def test_a_hostile_argument_is_taken_or_refused_and_harms_nobody(hostile: Any, wrap: Any) -> None:
    accepted(lambda: with_args(wrap(hostile())).rev)


def test_an_object_that_cannot_be_shown_is_a_fine_argument() -> None:
    assert type(with_args(BadRepr()).args[0]) is BadRepr


def test_what_cannot_be_taken_apart_is_refused_with_its_own_reason() -> None:
    message = refused(BadArguments, lambda: freeze([refusals.BadReduce()], "args", "pickle"))
    assert "args[0] cannot reach a worker: cannot be taken apart; pass plain data" in message


# --- what a worker gets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_worker_gets_an_equal_value(name: str) -> None:
    frozen = freeze(SAMPLES[name], "args", "pickle")
    assert type(frozen) is type(SAMPLES[name])
    assert canonical(frozen, "args") == canonical(SAMPLES[name], "args")


def nested_dicts(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [[nested(100)], nested_dicts(100)], ids=["lists", "dicts"])
def test_a_hundred_levels_are_taken(value: Any) -> None:
    assert freeze(value, "args", "pickle") == value


@pytest.mark.parametrize("value", [[nested(101)], nested_dicts(101)], ids=["lists", "dicts"])
def test_a_level_more_is_refused(value: Any) -> None:
    assert "… is nested more than 100 levels deep" in refused(BadArguments, lambda: freeze(value, "args", "pickle"))


ROOM = LARGEST - len(pickle.dumps(["x" * 200_000])) + 200_000


def test_256_kilobytes_are_taken() -> None:
    assert freeze(["x" * ROOM], "args", "pickle") == ["x" * ROOM]


def test_a_byte_more_is_refused() -> None:
    message = refused(BadArguments, lambda: freeze(["x" * (ROOM + 1)], "args", "pickle"))
    assert "args takes 262,145 bytes, 262,144 is the most" in message


def test_many_small_records_with_the_same_long_keys_are_taken() -> None:
    records = [{"a key of many characters": n, "and another one": n} for n in range(10_000)]
    assert freeze(records, "args", "pickle") == records


def test_a_later_change_does_not_reach_the_frozen_copy() -> None:
    original = {"a": [1, {"b": {2}}]}
    frozen = freeze(original, "kwargs", "pickle")
    original["a"][1]["b"].add(3)  # type: ignore[index]  # of many types
    original["a"].append(4)
    assert frozen == {"a": [1, {"b": {2}}]}


def test_a_later_change_does_not_reach_the_schedule() -> None:
    args: list[Any] = [[1]]
    kwargs: dict[str, Any] = {"a": [1]}
    schedule = Schedule(id="a", func="app.f", timing=Every("1h"), args=args, kwargs=kwargs, meta=kwargs)
    twin = copy.deepcopy(schedule)
    args[0].append(2)
    args.append(3)
    kwargs["a"].append(2)
    kwargs["b"] = 3
    assert (schedule.args, schedule.kwargs, schedule.meta) == (([1],), {"a": [1]}, {"a": [1]})
    assert schedule.rev == twin.rev


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))]))
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.sampled_from([*Colour, Point(1), plain, int]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=12,
)


@given(values)
@settings(max_examples=examples(100), deadline=None)
def test_what_pickle_carries_comes_back_the_same(value: Any) -> None:
    assert canonical(freeze(value, "args", "pickle"), "args") == canonical(value, "args")


@given(values)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_accepted_for_json_comes_back_from_json_the_same(value: Any) -> None:
    try:
        frozen = freeze(value, "args", "json")
    except DeclarationError:
        return
    assert canonical(json.loads(json.dumps(value)), "args") == canonical(value, "args") == canonical(frozen, "args")


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(plain_json)
@settings(max_examples=examples(100), deadline=None)
def test_plain_json_is_accepted(value: Any) -> None:
    assert freeze(value, "args", "json") == value


# --- the same in every process ---------------------------------------------------------------------------------------


def elsewhere(seed: str) -> dict[str, list[str]]:
    """The digests of another process, whose hashes are not ours."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.digests"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def others() -> list[dict[str, list[str]]]:
    return [elsewhere(seed) for seed in ("1", "2", "3")]


@pytest.fixture(scope="module")
def ours() -> dict[str, tuple[str, str, str]]:
    return digests()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_digests_are_the_same_in_every_process(
    name: str, ours: dict[str, tuple[str, str, str]], others: list[dict[str, list[str]]]
) -> None:
    rev, timing_rev, _ = ours[name]
    assert [other[name][:2] for other in others] == [[rev, timing_rev]] * len(others)


@pytest.mark.parametrize("name", ["set", "set of sets", "subclass of a set", "dataclass"])
def test_the_pickles_are_not_the_same_in_every_process(name: str, others: list[dict[str, list[str]]]) -> None:
    assert len({other[name][2] for other in others}) > 1  # otherwise the test above says nothing about order


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        ({8, 16, 0}, {0, 16, 8}),
        ([[1], [1]], [[1]] * 2),
        (Point(1, frozenset("abc")), Point(1, frozenset("cba"))),
        (10**30, int("1" + "0" * 30)),
    ],
)
def test_equal_values_have_one_form(a: object, b: object) -> None:
    assert canonical(a, "args") == canonical(b, "args")


def test_strings_that_are_shared_pickle_differently_and_have_one_form() -> None:
    shared, apart = ["daily", "daily"], ["daily", str(b"daily", "ascii")]
    assert pickle.dumps(shared) != pickle.dumps(apart)  # otherwise the next line says nothing
    assert with_args(shared).rev == with_args(apart).rev


DIFFERENT = [
    None,
    "None",
    True,
    1,
    1.0,
    "1",
    b"1",
    [1],
    (1,),
    {1},
    frozenset({1}),
    Tags("1"),
    {1: 1},
    {"1": 1},
    [[1, 1]],
    0,
    0.0,
    -0.0,
    math.inf,
    math.nan,
    "nan",
    ["float", "1.0"],
    ["list", 1],
    10**30,
    hex(10**30),
    ["int", hex(10**30)],
    Decimal(1),
    Decimal("1.0"),
    Colour.RED,
    Colour.BLUE,
    "red",
    Point(1),
    Point(2),
    Point(1, frozenset("a")),
    Point,
    plain,
    anything,
    len,
    MISSING,
    MISSING_TOO,
    ...,
    datetime(2026, 11, 16, tzinfo=UTC),
    datetime(2026, 11, 16, tzinfo=timezone(timedelta(hours=1))),
    OrderedDict(a=1),
    OrderedDict(a=1, b=2),
    OrderedDict(b=2, a=1),
]


@pytest.mark.parametrize("serialised", [False, True])
def test_different_values_have_different_forms(*, serialised: bool) -> None:
    forms = [json.dumps(canonical(value, "args")) for value in DIFFERENT]
    if serialised:
        forms = [with_args(value).rev for value in DIFFERENT]
    same = [
        (DIFFERENT[i], DIFFERENT[j]) for i, j in itertools.combinations(range(len(forms)), 2) if forms[i] == forms[j]
    ]
    assert same == []
