"""What a job says of itself, read from what a worker wrote: whatever it wrote, nothing happens but reading."""

from __future__ import annotations

import base64
import collections
import contextlib
import datetime as dt
import enum
import functools
import json
import math
import pickle
import re
import struct
import sys
import time
import traceback
import tracemalloc
import types
import zlib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beat.history import ledger
from beat.history.ledger import Error
from beat.jobs import job_template, report
from beat.jobs.report import NotPlain, Report, Told, beat_entry, error, plain, told
from beat.jobs.report.safe_pickle import LARGEST
from beat.jobs.run import Run
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every
from tests.support.chance import examples
from tests.support.declared import Colour, Point

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
RUN = Run("report", NOON, "scheduler")
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
WRITERS: dict[str, Callable[[Any], bytes]] = {
    **{f"pickle {n}": functools.partial(pickle.dumps, protocol=n) for n in PROTOCOLS},
    **{f"pickle {n}, in Python": functools.partial(pickle._dumps, protocol=n) for n in PROTOCOLS},  # type: ignore[attr-defined]  # noqa: SLF001
    "json": lambda value: json.dumps(value).encode(),
}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters())
JSON_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner), max_leaves=20
)
PLAIN_VALUES = st.recursive(
    SCALARS | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers(-9, 9) | st.text(), inner),
    max_leaves=20,
)


def returned(value: Any, writer: str = "pickle 5") -> bytes:
    """As RQ keeps what a job has returned."""
    return base64.b64encode(WRITERS[writer](value))


def within(levels: int) -> Any:
    """A list in a list in a list …"""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def cheap(act: Callable[[], object]) -> None:
    """Once for the time, once for the memory, which takes its time when it is traced."""
    began = time.process_time()
    with contextlib.suppress(NotPlain):
        act()
    assert time.process_time() - began < 2  # 0.1 s on an idle machine
    tracemalloc.start()
    with contextlib.suppress(NotPlain):
        act()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000  # bytes


def serializer(writer: str) -> str:
    return writer.partition(" ")[0]


# --- making a report -------------------------------------------------------------------------------------------------


def test_a_report_is_a_plain_dict() -> None:
    made = Report(False, "3 rows refused", {"rows": [4, 8, 15]})  # noqa: FBT003 (as users write it)
    assert made == {"success": False, "message": "3 rows refused", "details": {"rows": [4, 8, 15]}}
    assert type(made) is dict


def test_a_report_may_say_nothing_but_how_it_went() -> None:
    assert Report(success=True) == {"success": True, "message": "", "details": {}}


class Shade(enum.StrEnum):
    DARK = "dark"


def test_what_is_plain_by_its_base_becomes_plain() -> None:
    class Safe(str):
        __slots__ = ()

    given = {
        "counter": collections.Counter("aab"),
        "proxy": types.MappingProxyType({"a": (1, 2)}),
        "enum": Shade.DARK,
        Safe("signal"): re.ASCII,
        "float": type("Float", (float,), {})(0.5),
    }
    made = Report(success=True, message=Safe("fine"), details=types.MappingProxyType(given))
    expected = {"counter": {"a": 2, "b": 1}, "proxy": {"a": [1, 2]}, "enum": "dark", "signal": 256, "float": 0.5}
    assert made == {"success": True, "message": "fine", "details": expected}
    for written in (pickle.dumps(made), json.dumps(made).encode()):  # no class is in it any more
        assert plain(written, "json" if written[:1] == b"{" else "pickle") == made


def test_a_report_does_not_change_with_what_it_was_made_of() -> None:
    rows = [1]
    made = Report(success=True, details={"rows": rows})
    rows.append(2)
    assert made["details"] == {"rows": [1]}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1,), "success must be True or False, not int: write Report(True, '42 rows copied')"),
        (("no",), "success must be True or False, not str: write Report(True, '42 rows copied')"),
        ((None,), "success must be True or False, not NoneType: write Report(True, '42 rows copied')"),
        ((False, 3), "message must be text, not int: write Report(False, '3 rows refused')"),
        ((False, b"3"), "message must be text, not bytes: write Report(False, '3 rows refused')"),
        ((True, "", [1]), "details must be a dict, not list: write Report(True, details={'rows': 42})"),
        ((True, "", "rows"), "details must be a dict, not str: write Report(True, details={'rows': 42})"),
        ((True, "", {404: 3}), "details has the key 404, which is no text: write '404'"),
        ((True, "", {"by": {None: 3}}), "details.by has the key None, which is no text: write 'None'"),
    ],
)
def test_what_makes_no_report_is_refused_with_an_example(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        Report(*arguments)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (NOON, "is a datetime, which is no plain data: write .isoformat()"),
        (NOON.date(), "is a date, which is no plain data: write .isoformat()"),
        ({1}, "is a set, which is no plain data: write sorted(…)"),
        (b"a", "is a bytes, which is no plain data: write .hex()"),
        (Colour.RED, "is a Colour, which is no plain data: write .value"),
        (Decimal(1), "is a Decimal, which is no plain data: write str(…)"),
        (UUID(int=1), "is a UUID, which is no plain data: write str(…)"),
        (Path("a"), "is a PosixPath, which is no plain data: write str(…)"),
        (memoryview(b"a"), "is a memoryview, which is no plain data: write .tolist()"),  # as numpy's arrays and numbers
    ],
)
def test_details_that_are_no_plain_data_are_refused_by_their_path(value: object, sentence: str) -> None:
    in_a_list, in_a_dict = re.escape(f"details.at[2] {sentence}"), re.escape(f"details['a b'].c {sentence}")
    with pytest.raises(TypeError, match=f"^{in_a_list}$"):
        Report(success=True, details={"at": [0, 1, value]})
    with pytest.raises(TypeError, match=f"^{in_a_dict}$"):
        Report(success=True, details={"a b": {"c": value}})


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (math.nan, "details.n is nan, which JSON cannot write: write None, or 'unknown'"),
        (-math.inf, "details.n is -inf, which JSON cannot write: write None, or 'unknown'"),
        (1 << 20_000, "details.n is a number of 20,001 bits, too long to be shown: write hex(…)"),
    ],
    ids=["nan", "infinity", "long"],
)
def test_numbers_that_json_cannot_write_are_refused(value: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Report(success=True, details={"n": value})


def test_details_that_hold_themselves_are_refused() -> None:
    endless: dict[str, Any] = {}
    endless["me"] = endless
    with pytest.raises(ValueError, match=r"me\.me.* is nested more than 30 levels deep"):
        Report(success=True, details=endless)


@settings(max_examples=30)
@given(st.booleans(), st.text(st.characters()), st.dictionaries(st.text(), JSON_VALUES))
@example(False, "x" * 100_000, {})  # noqa: FBT003
@example(False, "\u2603" * 20_000, {"rows": [0.5] * 20_000})  # noqa: FBT003
@example(False, "", {"rows": "\U0001f600" * 100_000})  # noqa: FBT003
@example(False, "", {"rows": [0.5] * 13_000})  # noqa: FBT003
@example(False, "", {"rows": [0.5] * 3_200})  # noqa: FBT003 (as many as are not left out)
def test_a_report_of_any_size_is_heard(success: bool, message: str, details: dict[str, Any]) -> None:  # noqa: FBT001
    details = json.loads(json.dumps(details).replace("Infinity", "1"))
    made = Report(success, message, details)
    for writer in ("pickle 0", "pickle 2", "pickle 5", "json"):
        heard = told(returned(made, writer), serializer(writer))
        assert heard is not None
        assert heard.success is success
        assert heard.message == whole(message[:1000])


def test_details_that_beat_would_not_read_are_left_out() -> None:
    assert Report(success=True, message="copied", details={"rows": "x" * 100_000}) == {
        "success": True,
        "message": "copied",
        "details": {"left_out": "100,012 characters of details"},
    }


# --- plain data ------------------------------------------------------------------------------------------------------


@given(PLAIN_VALUES)
def test_plain_data_is_read_as_it_was_pickled(value: Any) -> None:
    for writer, write in WRITERS.items():
        if writer[-1] in "345":  # earlier protocols call a function to make bytes
            assert repr(plain(write(value), "pickle")) == repr(value)


@given(JSON_VALUES)
@example([1, -1, 255, 256, 65_535, 65_536, 2**31, -(2**31) - 1, 2**63, -(2**2100), 1.5, -0.0, math.inf])
@example(["", "x" * 255, "x" * 256, "zoë \ud800 \U0001f600 \x00\n\\u0041", True, False, None])
@example([[[]], [{}], {"a": {"a": ["a", "a"]}}, list(range(1200)), {str(n): n for n in range(1200)}])
def test_plain_data_is_read_as_it_was_written_by_any_protocol(value: Any) -> None:
    for writer, write in WRITERS.items():
        assert repr(plain(write(value), serializer(writer))) == repr(value)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 2000])
def test_tuples_are_plain_data(size: int) -> None:
    for protocol in PROTOCOLS:
        assert plain(pickle.dumps((None,) * size, protocol), "pickle") == (None,) * size


def test_text_that_is_referred_to_again_is_read_each_time() -> None:
    rows = [{"name of the first column": n, "name of the second column": str(n)} for n in range(2000)]
    assert plain(pickle.dumps(rows), "pickle") == rows


# Python 3.8 wrote them, and 3.9 to 3.13 write the very same.
FROM_3_8: dict[Any, bytes] = {
    0: b"(dp0\nVsuccess\np1\nI00\nsVdetails\np2\n(dp3\nVrows\np4\n(lp5\nI4\naI1000\naL4294967296L\naF0.5\naNa(ta(I1\nVa"
    b"\np6\ntp7\nass.",
    2: b"\x80\x02}q\x00(X\x07\x00\x00\x00successq\x01\x89X\x07\x00\x00\x00detailsq\x02}q\x03X\x04\x00\x00\x00rowsq\x04]"
    b"q\x05(K\x04M\xe8\x03\x8a\x05\x00\x00\x00\x00\x01G?\xe0\x00\x00\x00\x00\x00\x00N)K\x01X\x01\x00\x00\x00aq\x06\x86"
    b"q\x07esu.",
    4: b"\x80\x04\x95G\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x07success\x94\x89\x8c\x07details\x94}\x94\x8c\x04rows\x94"
    b"]\x94(K\x04M\xe8\x03\x8a\x05\x00\x00\x00\x00\x01G?\xe0\x00\x00\x00\x00\x00\x00N)K\x01\x8c\x01a\x94\x86\x94esu.",
}


@pytest.mark.parametrize("protocol", FROM_3_8)
def test_what_older_and_newer_pythons_pickle_is_read(protocol: int) -> None:
    value = {"success": False, "details": {"rows": [4, 1000, 2**32, 0.5, None, (), (1, "a")]}}
    assert plain(FROM_3_8[protocol], "pickle") == value
    assert pickle.dumps(value, protocol) == FROM_3_8[protocol]


class Trap:
    """Does harm when it is read as pickle reads it."""

    sprung: list[str] = []  # noqa: RUF012

    def __repr__(self) -> str:
        return "a trap"

    def __reduce__(self) -> tuple[Any, ...]:
        return self.sprung.append, ("reduced",)

    def __setstate__(self, state: object) -> None:
        self.sprung.append("set")


OBJECTS = [Trap(), Point(1), Colour.RED, NOON, Decimal(1), UUID(int=1), Path("a"), {1, 2}, frozenset({1}), set(), Point]
OBJECTS += [collections.OrderedDict(a=1), collections.Counter("aab"), collections.deque([1]), bytearray(b"a"), len]
OBJECTS += [collections.defaultdict(list, a=[1]), 1j, range(3), slice(1), ValueError("a"), re.compile("a")]


@pytest.mark.parametrize("value", OBJECTS, ids=repr)
def test_a_class_is_refused_wherever_it_stands(value: Any) -> None:
    for protocol in PROTOCOLS:
        for around in (value, [value], {"a": value}, {"a": (1, [value])}):
            with pytest.raises(NotPlain):
                plain(pickle.dumps(around, protocol), "pickle")
    assert Trap.sprung == []


def test_a_class_as_a_key_is_refused() -> None:
    for key in (Colour.RED, NOON, ("a", "b"), frozenset("a"), 2**61):
        with pytest.raises(NotPlain):
            plain(pickle.dumps({key: 1}), "pickle")


@pytest.mark.parametrize(
    "raw",
    [
        b"cos\nsystem\n(X\x01\x00\x00\x00xtR.",
        b"(ios\nsystem\n.",
        b"(cos\nsystem\nX\x01\x00\x00\x00xo.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.",
        b"\x80\x02cbuiltins\nexec\nX\x01\x00\x00\x00x\x85\x81.",
        b"\x80\x04cbuiltins\nexec\n)}\x92.",
        b"cbeat.nowhere\nnothing\n.",
        b"Pan id\n.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02\x83\x01\x00.",
        b"\x80\x02\x84\x01\x00\x00\x00.",
        b"\x80\x05\x97.",
        b"\x80\x05C\x01a\x98.",
        b"\x80\x02}}b.",
        b"\x80\x02N)R.",
        b"\x80\x02]K\x00K\x01s.",
        b"\x80\x02}K\x00a.",
        b"\x80\x06N.",
        b"S'text of Python 2'\n.",
    ],
    ids=repr,
)
def test_what_no_plain_data_needs_is_refused(raw: bytes) -> None:
    with pytest.raises(NotPlain):
        plain(raw, "pickle")


def test_nothing_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("harm = print")
    monkeypatch.syspath_prepend(tmp_path)
    for raw in (b"cplanted\nharm\n.", b"\x80\x04\x8c\x07planted\x8c\x04harm\x93."):
        with pytest.raises(NotPlain, match=r"^it holds a planted\.harm$"):
            plain(raw, "pickle")
    assert "planted" not in sys.modules


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b".",
        b"N",
        b"\x80\x05N.N",
        b"\x80\x05}(NNNu.",
        b"\x80\x05(NNNd.",
        b"\x80\x05h\x00.",
        b"\x80\x05\x95\x03\x00\x00\x00\x00\x00\x00\x00N.",  # a frame that is longer than the rest
        b"\x80\x05\x95\x02\x00\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00a.",  # a frame that ends within a length
        b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\xffN.",
        b"\x80\x05X\xff\xff\xff\xffa.",
        b"\x80\x05\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.",
        b"\x80\x05\x8e\x00\x00\x00\x00\x00\x01\x00\x00a.",
        b"\x80\x05\x96\x00\x00\x00\x00\x00\x01\x00\x00a.",
        b"\x80\x05\x8b\xff\xff\xff\xff.",
        b"\x80\x05\x8b\xff\xff\xff\x7fa.",
        b"\x80\x05X\x01\x00\x00\x00\xff.",
        b"I" + b"9" * 5000 + b"\n.",
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_a_pickle_that_lies_or_ends_too_soon_is_refused(raw: bytes) -> None:
    with pytest.raises(NotPlain):
        plain(raw, "pickle")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nul", b'"\xff"', b"\xef\xbb\xbf1", '"a"'.encode("utf-16"), b"9" * 5000, b"1 2", b"["]
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(NotPlain):
        plain(raw, "json")


def test_what_no_serializer_wrote_is_refused() -> None:
    calls: list[Any] = [(b"N.", "yaml"), (b"N.", ""), (None, "json"), ("N.", "pickle"), (b"N.", []), (b"N.", None)]
    for raw, name in calls:
        with pytest.raises(NotPlain):
            plain(raw, name)


def test_64_kb_are_read_and_no_more() -> None:
    assert plain(b'"' + b"a" * (LARGEST - 2) + b'"', "json") == "a" * (LARGEST - 2)
    with pytest.raises(NotPlain, match="more than 65,536"):
        plain(b'"' + b"a" * (LARGEST - 1) + b'"', "json")


def test_a_hundred_levels_are_read_and_no_more() -> None:
    nested = within(100)
    assert plain(pickle.dumps(nested), "pickle") == nested
    for writer, write in WRITERS.items():
        with pytest.raises(NotPlain, match="deep"):
            plain(write([nested]), serializer(writer))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_holds_itself_is_refused(protocol: int) -> None:
    endless: list[Any] = []
    endless.append(endless)
    around: dict[str, Any] = {"a": ([],)}
    around["a"][0].append(around)
    for value in (endless, around):
        with pytest.raises(NotPlain, match="recursive"):
            plain(pickle.dumps(value, protocol), "pickle")


# --- bombs: small pickles that want the whole machine ----------------------------------------------------------------


def doubled(levels: int) -> bytes:
    """A tuple of the same two tuples, of the same two tuples …"""
    return b")" + b"q\x00h\x00h\x00\x87q\x00" * levels


def keys(count: int, key: Callable[[int], bytes]) -> bytes:
    return b"\x80\x05}(" + b"".join(key(n) + b"N" for n in range(1, count)) + b"u."


LONG_NAME = b"X\x30\x75\x00\x00" + b"x" * 30_000 + b"q\x00"
BOMBS = {
    "a memo of four thousand million": b"\x80\x05Nr\xff\xff\xff\xff.",
    "memos far apart": b"N" + b"".join(b"r" + struct.pack("<I", n * 330_000) for n in range(13_000)) + b".",
    "memos of one hash": b"N" + b"".join(b"p%d\n" % (n * (2**61 - 1)) for n in range(1, 2700)) + b".",
    "tuples of the same tuples": b"\x80\x05" + doubled(7000) + b".",
    "60 levels of the same tuples": b"\x80\x05" + doubled(60) + b".",
    "a key of the same tuples": b"\x80\x05}" + doubled(60) + b"Ns.",
    "an item of the same tuples in a set": b"\x80\x05\x8f(" + doubled(60) + b"\x90.",
    "a frozenset of the same tuples": b"\x80\x05(" + doubled(60) + b"\x91.",
    "30,000 times itself": b"\x80\x05]q\x00(" + b"h\x00" * 30_000 + b"e.",
    "one dict 10,000 times": b"\x80\x05](}q\x00("
    + b"".join(b"M" + struct.pack("<H", n) + b"N" for n in range(8000))
    + b"u"
    + b"h\x00" * 10_000
    + b"e.",
    "one text 15,000 times": b"\x80\x05(" + LONG_NAME + b"h\x00" * 15_000 + b"l.",
    "one long number 15,000 times": b"\x80\x05(\x8b\x30\x75\x00\x00"
    + b"\x7f" * 30_000
    + b"q\x00"
    + b"h\x00" * 15_000
    + b"l.",
    "one class 5,000 times, by a long name": b"\x80\x05(" + LONG_NAME + b"h\x00h\x00\x93" * 5_000 + b"l.",
    "numbers of one hash": keys(5000, lambda n: b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little")),
    "floats of few hashes": keys(6000, lambda n: b"G" + struct.pack(">d", 2.0 ** (n % 1000) * (1 + n // 1000))),
    "nothing but marks": b"(" * (LARGEST - 1) + b".",
    "nothing but dicts": b"}" * (LARGEST - 1) + b".",
    "tuples within tuples": b"N" + b"\x85" * (LARGEST - 2) + b".",
    "lists within lists": b"\x80\x05" + b"]" * 30_000 + b"a" * 29_999 + b".",
    "a long number": b"\x80\x05\x8b\xe8\xfd\x00\x00" + b"\x7f" * 65_000 + b".",
    "a long number in digits": b"L" + b"9" * 65_000 + b"L\n.",
    "a bytearray of a terabyte": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".",
    "json: lists within lists": b"[" * LARGEST,
    "json: dicts within dicts": b'{"a":' * 13_000,
    "json: digits": b"9" * LARGEST,
    "json: dicts": b"[" + b"{}," * 21_000 + b"{}]",
    "json: nines": b"[" + b"9e999," * 10_000 + b"0]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_bomb_takes_long_or_much(name: str) -> None:
    raw, kind = BOMBS[name], "json" if name.startswith("json") else "pickle"
    assert len(raw) <= LARGEST
    cheap(lambda: plain(raw, kind))


@pytest.mark.parametrize("name", [name for name in BOMBS if not name.startswith("json")])
def test_no_bomb_in_the_details_of_a_report_takes_long_or_much(name: str) -> None:
    body = BOMBS[name].removeprefix(b"\x80\x05")[:-1]
    raw = base64.b64encode(b"\x80\x05}(\x8c\x07success\x89\x8c\x07details}\x8c\x01a" + body[: LARGEST - 40] + b"su.")
    cheap(lambda: told(raw, "pickle"))


@pytest.mark.parametrize("name", [name for name in BOMBS if "same" in name or "itself" in name or "times" in name])
def test_what_would_be_large_when_written_out_is_refused(name: str) -> None:
    with pytest.raises(NotPlain):
        plain(BOMBS[name], "pickle")


CODES = b"".join(bytes([code]) for code in pickle._Unpickler.dispatch)  # noqa: SLF001
SAMPLES = [pickle.dumps({"success": True, "details": {"a": [1.5, (1,), NOON, {2}]}}, n) for n in PROTOCOLS]


@settings(max_examples=examples(100))
@given(st.one_of(st.binary(), st.lists(st.sampled_from(CODES)).map(lambda codes: b"success" + bytes(codes) + b".")))
def test_no_garbage_does_harm(raw: bytes) -> None:
    for kind in ("pickle", "json"):
        for written in (raw, raw.removeprefix(b"success")):
            with contextlib.suppress(NotPlain):
                json.dumps(plain(written, kind), default=repr)
            assert isinstance(beat_entry(written, kind), dict | None)
            assert isinstance(told(base64.b64encode(written), kind), Told | None)
    told(raw, "pickle")
    error(raw)


@settings(max_examples=examples(100))
@given(st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=5))
def test_no_broken_pickle_does_harm(sample: bytes, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(sample)
    for place, byte in changes:
        raw[place % len(raw)] = byte
    heard = told(base64.b64encode(bytes(raw)), "pickle")
    assert heard is None or json.loads(json.dumps(heard.details, allow_nan=False)) == heard.details


# --- the run in a job's meta -----------------------------------------------------------------------------------------


def meta_of(meta: dict[str, Any], kind: Any = "pickle", run: Run = RUN) -> bytes:
    """As a beat writes it."""
    made = Schedule(id="report", func="app.report", timing=Every("1h"), meta=meta, serializer=kind)
    return job_template.template(made)["meta"] + job_template.run_block(run, kind)


@pytest.mark.parametrize("kind", ["pickle", "json"])
@pytest.mark.parametrize("meta", [{}, {"a": 1}, {"beats": {"beat": {"a": 1}}}, {"a": '"beat": {}'}], ids=repr)
def test_a_plain_meta_is_read_with_its_run(meta: dict[str, Any], kind: str) -> None:
    assert plain(meta_of(meta, kind), kind) == {**meta, "beat": RUN.plain()}
    assert beat_entry(meta_of(meta, kind), kind) == RUN.plain()


CLASSES = [Point(1), Colour.RED, NOON, {NOON}, frozenset({1}), Decimal(1), collections.OrderedDict(a=1), Point]


@pytest.mark.parametrize("value", [*CLASSES, {Colour.RED: 1}, {("a", "b"): 1}, {2**70: 1}], ids=repr)
def test_the_run_is_found_beside_classes(value: Any) -> None:
    raw = meta_of({"mine": value})
    with pytest.raises(NotPlain):
        plain(raw, "pickle")
    assert beat_entry(raw, "pickle") == RUN.plain()


@pytest.mark.parametrize("value", CLASSES, ids=repr)
def test_the_run_is_found_in_a_meta_that_the_job_has_saved(value: Any) -> None:
    saved = {"mine": value, "beat": RUN.plain(), "progress": [value]}
    for protocol in PROTOCOLS:
        assert beat_entry(pickle.dumps(saved, protocol), "pickle") == RUN.plain()


@pytest.mark.parametrize("kind", ["pickle", "json"])
@pytest.mark.parametrize("size", [60_000, 65_000, 66_000, 200_000])
def test_the_run_is_found_behind_a_meta_that_is_too_large(size: int, kind: str) -> None:
    for meta in ({"a": "x" * size}, {"a": "x" * size, "b": {"beat": {"schedule_id": "other"}}}):
        assert beat_entry(meta_of(meta, kind), kind) == RUN.plain()
    assert beat_entry(meta_of({"a": "x" * size, "b": Point(1)}), "pickle") == RUN.plain()


def test_nobody_passes_for_another_run_by_a_name() -> None:
    block = job_template.run_block(Run("other", None, "nobody"), "pickle")
    run = Run("report", None, f"({block[1:-2].decode('latin-1')}")
    for meta in ({}, {"mine": block.decode("latin-1")}, {"mine": Point(1)}, {"mine": "x" * 70_000}):
        assert beat_entry(meta_of(meta, "pickle", run), "pickle") == run.plain()


@pytest.mark.parametrize("kind", ["pickle", "json"])
@pytest.mark.parametrize(
    "meta", [{}, {"mine": 1}, {"beat": None}, {"beat": [1]}, {"a": {"beat": {"b": "c"}}}, [], None]
)
def test_a_job_that_beat_did_not_fire_has_no_entry(meta: Any, kind: str) -> None:
    for filling in ("", "x" * 70_000):
        written = {**meta, "filling": filling} if isinstance(meta, dict) else meta
        assert beat_entry(WRITERS["json" if kind == "json" else "pickle 5"](written), kind) is None
    assert beat_entry(None, kind) is None


def test_an_end_that_beat_did_not_write_is_none() -> None:
    for kind in ("pickle", "json"):
        raw = meta_of({"a": "x" * 70_000}, kind)
        for broken in (raw[:-1], raw[:-2] + b"  ", raw + raw[-1:], raw[:-1] + b"\x00"):
            assert beat_entry(broken, kind) is None


def test_an_entry_that_holds_a_class_is_none() -> None:
    assert beat_entry(pickle.dumps({"beat": {"schedule_id": Point(1)}}), "pickle") is None


# --- what a job has told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Report(success=True), Told(success=True, message="", details={})),
        (
            Report(success=False, message="3 refused", details={"rows": [4, (8, 15)]}),
            Told(success=False, message="3 refused", details={"rows": [4, [8, 15]]}),
        ),
        ({"success": False}, Told(success=False, message="", details={})),
        ({"success": True, "message": "a\x00\x1b[31m\n"}, Told(success=True, message="a\x00\x1b[31m\n", details={})),
        ({"success": True, "more": 1, "details": {"a": None}}, Told(success=True, message="", details={"a": None})),
    ],
    ids=repr,
)
def test_a_report_is_heard(value: Any, expected: Told) -> None:
    for writer in WRITERS:
        assert told(returned(value, writer), serializer(writer)) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        "success",
        ["success", True],
        {},
        {"success": 1},
        {"success": None},
        {"success": "False"},
        {"failure": True, "of": "success"},
        {"success": False, "message": None},
        {"success": False, "message": 3},
        {"success": False, "details": None},
        {"success": False, "details": [1]},
        [{"success": False}],
        {"success": False, "details": {"a": "x" * 70_000}},
    ],
    ids=lambda value: repr(value)[:60],
)
def test_anything_else_is_left_alone(value: Any) -> None:
    for writer in WRITERS:
        assert told(returned(value, writer), serializer(writer)) is None


@pytest.mark.parametrize("value", [*OBJECTS, collections.OrderedDict(success=False)], ids=repr)
def test_an_object_is_left_alone(value: Any) -> None:
    for message in (value, [value, "success"], {"success": value}, {"success": False, "message": value}):
        assert told(returned(message), "pickle") is None
    assert Trap.sprung == []


@pytest.mark.parametrize("raw", [None, b"", b"=", b"a", b"\xff", b"success", b"c3VjY2Vzcw==", b"gASVCw\n=="])
def test_what_rq_did_not_write_is_left_alone(raw: bytes | None) -> None:
    for kind in ("pickle", "json", "yaml"):
        assert told(raw, kind) is None


def test_base64_with_something_in_between_is_left_alone() -> None:
    raw = returned({"success": False})
    assert told(raw, "pickle") is not None
    assert told(raw[:8] + b"!\n" + raw[8:], "pickle") is None


def test_a_result_that_is_too_large_is_not_even_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    large = returned({"success": False, "message": "x" * LARGEST})
    monkeypatch.setattr(report, "base64", None)
    assert told(large, "pickle") is None


def test_a_result_without_the_word_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "read", None)
    assert told(returned({"rows": 3}), "pickle") is None


def test_a_long_message_is_cut() -> None:
    heard = told(returned({"success": True, "message": "x" * 1001}), "pickle")
    assert heard == Told(success=True, message="x" * 1000, details={})


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ({"rows": "x" * 12_333}, "12,345 characters of details"),
        ({"at": [1, NOON]}, "details with a datetime.datetime"),
        ({NOON: 1}, "details with a datetime.datetime"),
        ({("de", 1): 1}, "details with a compound key"),
        ({"ids": {1, 2}}, "details with a set"),
        ({"key": b"a"}, "details with bytes"),
        ({"n": 1 << 20_000}, "details with a number that is too long"),
        ({"a": within(31)}, "details with more than 30 levels"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_details_that_cannot_be_shown_are_left_out_and_the_rest_counts(details: dict[Any, Any], why: str) -> None:
    heard = told(returned({"success": False, "message": "3 refused", "details": details}), "pickle")
    assert heard == Told(success=False, message="3 refused", details={"left_out": why})


def test_8000_characters_of_details_are_kept() -> None:
    details = {"rows": "\u2603" * (8000 - len('{"rows": ""}'))}
    assert told(returned({"success": True, "details": details}), "pickle") == Told(
        success=True, message="", details=details
    )
    details["rows"] += "x"
    heard = told(returned({"success": True, "details": details}), "pickle")
    assert heard == Told(success=True, message="", details={"left_out": "8,001 characters of details"})


def test_details_become_what_json_makes_of_them() -> None:
    details = {404: 1, None: (2,), 0.5: math.nan, True: -math.inf}
    heard = told(returned({"success": True, "details": details}), "pickle")
    assert heard is not None
    assert heard.details == {"404": 1, "null": [2], "0.5": "nan", "true": "-inf"}


def whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d.", "\ufffd."),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        ("\ufeff\ud800", "\ufeff\ufffd"),
    ],
    ids=ascii,
)
def test_half_a_character_breaks_no_writing(broken: str, mended: str) -> None:
    value = {"success": True, "message": broken, "details": {broken: [broken]}}
    for writer in WRITERS:
        heard = told(returned(value, writer), serializer(writer))
        assert heard == Told(success=True, message=mended, details={mended: [mended]})


def test_half_a_character_in_the_name_of_a_class_breaks_no_writing() -> None:
    details = b"X\x03\x00\x00\x00\xed\xa0\x80\x8c\x01b\x93"
    raw = b"\x80\x04}(\x8c\x07success\x88\x8c\x07details}\x8c\x01a" + details + b"su."
    heard = told(base64.b64encode(raw), "pickle")
    assert heard == Told(success=True, message="", details={"left_out": "details with a \ufffd.b"})


@settings(max_examples=50)
@given(st.text(st.characters(), max_size=2000), st.dictionaries(st.text(st.characters()), JSON_VALUES))
def test_what_was_heard_can_be_written_into_the_ledger_and_read_again(message: str, details: dict[str, Any]) -> None:
    heard = told(returned({"success": False, "message": message, "details": details}), "pickle")
    assert heard is not None
    outcome = ledger.Outcome(
        "failed", NOON, "job", None, None, None, None, 1, NOON, "beat", message=heard.message, details=heard.details
    )
    line = json.dumps(ledger.plain(outcome), ensure_ascii=False, allow_nan=False).encode()
    assert ledger.read(line) == outcome


# --- errors ----------------------------------------------------------------------------------------------------------


def kept(text: str) -> bytes:
    """As RQ keeps a traceback."""
    return base64.b64encode(zlib.compress(text.encode()))


def caught(act: Callable[[], object]) -> Error:
    """What is read of the traceback that RQ's worker would write."""
    try:
        act()
    except BaseException as e:  # noqa: BLE001 (whatever a test raises)
        text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        found = error(kept(text))
        assert found.traceback == text.strip("\n")[:2000]
        assert error(kept(text).decode()) == found
        return found
    raise AssertionError


def fail(exception: BaseException, cause: BaseException | None = None) -> Any:
    if cause is None:
        raise exception
    try:
        fail(cause)
    except BaseException as e:
        raise exception from e


def noted(exception: Exception, *notes: str) -> Exception:
    for note in notes:
        exception.add_note(note)
    return exception


class Outer:
    class Inner(Exception):
        pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def endless() -> None:
    endless()


def while_handling() -> None:
    try:
        fail(KeyError("a"))
    except KeyError:
        try:
            fail(OSError("b"))
        except OSError:
            fail(ValueError("c"))


SEVERAL = ExceptionGroup("several", [ValueError(1), ExceptionGroup("inner", [OSError("a\nb")])])
QUOTED = "the child said:\nTraceback (most recent call last):\n  File 'x', line 1\nOSError: quoted"


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (lambda: fail(ValueError("bad value")), "ValueError", "bad value"),
        (lambda: fail(ValueError()), "ValueError", ""),
        (lambda: fail(ValueError(": a: b")), "ValueError", ": a: b"),
        (lambda: fail(ValueError("a\n\n  b: c\nOSError: d")), "ValueError", "a\n\n  b: c\nOSError: d"),
        (lambda: fail(ValueError("\na")), "ValueError", "a"),
        (lambda: fail(ValueError("zoë \x00 \x1b[31m")), "ValueError", "zoë \x00 \x1b[31m"),
        (lambda: fail(RuntimeError(QUOTED)), "RuntimeError", QUOTED),
        (lambda: FROM_3_8["a"], "KeyError", "'a'"),
        (lambda: fail(Outer.Inner("a")), f"{__name__}.Outer.Inner", "a"),
        (lambda: fail(Mute()), f"{__name__}.Mute", "<exception str() failed>"),
        (lambda: fail(type("Größe", (Exception,), {"__module__": "maß"})("a")), "maß.Größe", "a"),
        (lambda: fail(SystemExit(3)), "SystemExit", "3"),
        (lambda: compile("x = = 1", "f.py", "exec"), "SyntaxError", "invalid syntax"),
        (endless, "RecursionError", "maximum recursion depth exceeded"),
        (lambda: fail(ValueError("b"), KeyError("a")), "ValueError", "b"),
        (while_handling, "ValueError", "c"),
        (lambda: fail(noted(ValueError("a"), "b", "c\nd")), "ValueError", "a\nb\nc\nd"),
        (lambda: fail(noted(ValueError(), "b")), "ValueError", "b"),
        (lambda: fail(SEVERAL), "ExceptionGroup", "several (2 sub-exceptions)"),
        (lambda: fail(SEVERAL.derive([ValueError(1)]), KeyError("a")), "ExceptionGroup", "several (1 sub-exception)"),
        (lambda: fail(ValueError("after"), SEVERAL), "ValueError", "after"),
        (lambda: fail(ExceptionGroup("a\nb", [OSError(1)]), SEVERAL), "ExceptionGroup", "a\nb (1 sub-exception)"),
    ],
)
def test_the_last_exception_of_a_traceback_is_the_error(act: Callable[[], object], kind: str, message: str) -> None:
    found = caught(act)
    assert (found.type, found.message) == (kind, message)


def test_a_class_inside_a_function_has_its_whole_name() -> None:
    class Local(Exception):
        pass

    assert caught(lambda: fail(Local("a"))).type.endswith(".<locals>.Local")


FROM_3_12 = """\
Traceback (most recent call last):
  File "/app/tasks.py", line 17, in sync
    rows = 1 / 0
           ~~^~~
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/rq/worker.py", line 1430, in perform_job
    rv = job.perform()
         ^^^^^^^^^^^^^
  File "/venv/lib/python3.12/site-packages/rq/timeouts.py", line 63, in handle_death_penalty
    raise self._exception('Task exceeded maximum timeout value ({0} seconds)'.format(self._timeout))
rq.timeouts.JobTimeoutException: Task exceeded maximum timeout value (180 seconds)
"""
FROM_3_13 = """\
Traceback (most recent call last):
  File "/app/tasks.py", line 4, in poll
    fetch()
    ~~~~~^^
  File "/app/tasks.py", line 30, in fetch
    raise ValueError(
    ...<7 lines>...
    )
ValueError: ('a', 'b', 3, 3, 4)
"""
GROUP_FROM_3_13 = """\
Traceback (most recent call last):
  File "/app/tasks.py", line 48, in poll
    1/0
    ~^~
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

  + Exception Group Traceback (most recent call last):
  |   File "/app/tasks.py", line 4, in poll
  |     fetch()
  |     ~~~~~^^
  |   File "/app/tasks.py", line 50, in fetch
  |     raise ExceptionGroup("sev\\neral", [ValueError(1)]) from e
  | ExceptionGroup: sev
  | eral (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------
"""
SYNTAX_FROM_3_13 = """\
Traceback (most recent call last):
  File "/app/tasks.py", line 24, in load
    compile("x = = 1","f.py","exec")
    ~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^
  File "f.py", line 1
    x = = 1
        ^
SyntaxError: invalid syntax
"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (FROM_3_12, "rq.timeouts.JobTimeoutException", "Task exceeded maximum timeout value (180 seconds)"),
        (FROM_3_13, "ValueError", "('a', 'b', 3, 3, 4)"),
        (GROUP_FROM_3_13, "ExceptionGroup", "sev\neral (1 sub-exception)"),
        (SYNTAX_FROM_3_13, "SyntaxError", "invalid syntax"),
    ],
)
def test_tracebacks_of_newer_pythons_are_read(text: str, kind: str, message: str) -> None:
    assert error(kept(text)) == Error(kind, message, text.strip("\n"))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "Work-horse terminated unexpectedly; waitpid returned 9 (signal 9); ",
            "WorkHorseKilled",
            "Work-horse terminated unexpectedly; waitpid returned 9 (signal 9)",
        ),
        (
            "Moved to FailedJobRegistry, due to AbandonedJobError, at 2026-11-16 12:00:00+00:00",
            "AbandonedJobError",
            "Moved to FailedJobRegistry, due to AbandonedJobError, at 2026-11-16 12:00:00+00:00",
        ),
        ("Job stopped by user, work-horse terminated.", "Stopped", "Job stopped by user, work-horse terminated."),
        ("Job was stuck in intermediate queue.", "StuckInQueue", "Job was stuck in intermediate queue."),
    ],
)
def test_rqs_own_sentences_get_a_type(text: str, kind: str, message: str) -> None:
    assert error(kept(text)) == Error(kind, message, "")


def test_a_text_that_names_no_exception_is_the_message() -> None:
    assert error(kept("something went wrong\n")) == Error("", "something went wrong", "something went wrong")
    headless = "Traceback (most recent call last):\n  File 'x', line 1"
    assert error(kept(headless)) == Error("", headless, headless)


@pytest.mark.parametrize("raw", [None, b"", "", kept(""), kept("\n")])
def test_where_nothing_is_recorded_nothing_is_made_up(raw: bytes | str | None) -> None:
    assert error(raw) == Error("", "nothing is recorded", "")


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage",
        b"\xff",
        b"eA==",
        b"Z2FyYmFnZQ==",
        "Größe",
        "Traceback",
        b"=",
        base64.b64encode(b"x\x9c\xff"),
        b"\x00" * 9,
    ],
)
def test_garbage_is_unreadable_and_no_exception(raw: bytes | str) -> None:
    assert error(raw) == Error("", "unreadable", "")


def test_a_long_error_is_cut() -> None:
    found = error(kept(f"Traceback (most recent call last):\n  File 'x'\n{'a.' * 500}B: {'m' * 3000}"))
    assert (len(found.type), found.message, len(found.traceback)) == (200, "m" * 500, 2000)


def test_a_traceback_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    whole_text = kept("ValueError: " + "".join(map(str, range(5000))))
    assert error(whole_text[: len(whole_text) // 8 * 4]).type == "ValueError"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert error(base64.b64encode(zlib.compress(b"ValueError: \xff"))).message == "\ufffd"


@pytest.mark.parametrize(
    "filling", [b"\x00", b"a\n", b"\n\nDuring handling of the above exception, another exception occurred:\n\n"]
)
def test_a_compressed_bomb_is_not_unpacked(filling: bytes) -> None:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(filling * (1_000_000 // len(filling))) for _ in range(100)) + packer.flush()
    cheap(lambda: error(base64.b64encode(packed)))


def test_an_endless_record_is_not_decoded_to_its_end() -> None:
    raw = b"A" * 50_000_000
    cheap(lambda: error(raw))
