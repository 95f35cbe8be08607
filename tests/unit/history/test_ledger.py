"""The ledger's lines are read as what was written, and nothing that stands among them breaks a reader."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from beat.history import ledger
from beat.history.ledger import Changed, Enqueued, Entry, Error, Outcome, Reopened, Skipped, Waiting

NINE = "2026-11-16T09:00:00Z"
SIGNED = {"at": "2026-11-16T09:00:00.004Z", "beat": "web-2:17"}
RULE = {"cron": "0 9 * * *", "tz": "Europe/Berlin"}
LINES: dict[str, dict[str, Any]] = {
    "enqueued": {"tick": NINE, "job": "beat_a_1", "by": "scheduler", "late_ms": 4, "n": 1, **SIGNED},
    "enqueued by hand": {"tick": None, "job": "beat_a_m7", "by": "manual", "late_ms": 0, "n": 2, **SIGNED},
    "enqueued by choice": {
        "tick": NINE, "job": "beat_a_1", "by": "scheduler", "queue": "fast", "why": "shortest: 3 in line", "late_ms": 4,
        "n": 3, **SIGNED,
    },
    "enqueued everywhere": {
        "tick": NINE, "job": "beat_a_1", "by": "scheduler", "shards": 3, "why": "broadcast", "late_ms": 4, "n": 4,
        **SIGNED,
    },
    "enqueued after another": {
        "tick": NINE, "job": "beat_a_f1", "by": "follows", "after": "beat_b_1", "late_ms": 4, "n": 5, **SIGNED,
    },
    "skipped": {"tick": NINE, "last": "2026-11-16T09:30:00Z", "count": 31, "reason": "misfire", "n": 31, **SIGNED},
    "skipped behind another": {
        "tick": NINE, "last": NINE, "count": 1, "reason": "overlap", "behind": "beat_a_0", "n": 32, **SIGNED,
    },
    "skipped after another": {
        "tick": NINE, "last": NINE, "count": 1, "reason": "dependency", "why": "b has never succeeded",
        "after": "beat_c_1", "n": 33, **SIGNED,
    },
    "waiting for its group": {
        "tick": NINE, "job": "beat_a_1", "behind": "beat_c_0", "group": "reports", **SIGNED,
    },
    "waiting": {"tick": NINE, "job": "beat_a_1", "behind": "beat_a_0", **SIGNED},
    "succeeded": {
        "tick": NINE, "job": "beat_a_1", "started": "2026-11-16T09:00:01.5Z", "ended": "2026-11-16T09:00:04.642Z",
        "duration": 3.142, "worker": "w1", "attempts": 1, "message": "42 rows", "details": {"rows": [42]}, **SIGNED,
    },
    "failed": {
        "tick": NINE, "job": "beat_a_1", "started": None, "ended": None, "duration": None, "worker": None,
        "attempts": 3, "error": {"type": "KeyError", "message": "'x'", "traceback": "…\nKeyError: 'x'"}, **SIGNED,
    },
    "failed by its report": {
        "tick": None, "job": "beat_a_m7", "started": None, "ended": NINE, "duration": 0.0, "worker": "w1",
        "attempts": 1, "reported": True, "message": "no rows", **SIGNED,
    },
    "succeeded in part": {
        "tick": NINE, "job": "beat_a_1_s1", "of": "beat_a_1", "shard": 1, "started": NINE, "ended": NINE,
        "duration": 0.5, "worker": "w1", "attempts": 1, **SIGNED,
    },
    "reopened in part": {
        "tick": NINE, "job": "beat_a_1_s1", "of": "beat_a_1", "shard": 1, "was": "failed", "attempts": 1, **SIGNED,
    },
    "stopped": {
        "tick": NINE, "job": "beat_a_1", "started": None, "ended": None, "duration": None, "worker": None,
        "attempts": 1, "reason": "somebody stopped it", **SIGNED,
    },
    "lost": {
        "tick": NINE, "job": "beat_a_1", "started": None, "ended": None, "duration": None, "worker": None,
        "attempts": 0, "reason": "RQ has no record of it", **SIGNED,
    },
    "reopened": {"tick": NINE, "job": "beat_a_1", "was": "failed", "attempts": 1, **SIGNED},
    "registered": {"rev": "a1", "rule": RULE, "was": None, "from": "", "next": NINE, **SIGNED},
    "updated": {"rev": "a2", "rule": RULE, "was": RULE, "from": NINE, "next": NINE, **SIGNED},
    "moved": {"rev": "a3", "rule": {"every": "15m", "tz": "UTC"}, "was": RULE, "from": NINE, "next": "", **SIGNED},
}  # fmt: skip


def line(kind: str, **other: Any) -> dict[str, Any]:
    return {"type": kind.partition(" ")[0], **LINES[kind], **other}


def read(written: object) -> Entry | None:
    return ledger.read(json.dumps(written).encode())


@pytest.mark.parametrize("kind", LINES)
def test_a_line_is_read_and_written_as_it_was(kind: str) -> None:
    entry = read(line(kind))
    assert entry is not None
    written = ledger.plain(entry)
    assert json.loads(json.dumps(written)) == {
        **line(kind), **({"started": "2026-11-16T09:00:01.500Z"} if kind == "succeeded" else {}),
    }  # fmt: skip
    assert list(written)[0] == "type"  # noqa: RUF015 (the order is meant)


def test_the_fields_are_called_as_people_would() -> None:
    nine = datetime(2026, 11, 16, 9, tzinfo=UTC)
    at = nine + timedelta(milliseconds=4)
    assert read(line("enqueued")) == Enqueued(nine, "beat_a_1", "scheduler", 4, 1, at, "web-2:17")
    assert read(line("skipped")) == Skipped(nine, nine + timedelta(minutes=30), 31, "misfire", 31, at, "web-2:17")
    assert read(line("skipped behind another")) == Skipped(nine, nine, 1, "overlap", 32, at, "web-2:17", "beat_a_0")
    assert read(line("waiting")) == Waiting(nine, "beat_a_1", "beat_a_0", at, "web-2:17")
    chosen = Enqueued(nine, "beat_a_1", "scheduler", 4, 3, at, "web-2:17", "fast", "shortest: 3 in line")
    assert read(line("enqueued by choice")) == chosen
    assert read(line("reopened")) == Reopened(nine, "beat_a_1", "failed", 1, at, "web-2:17")
    assert read(line("registered")) == Changed("registered", "a1", RULE, None, None, nine, at, "web-2:17")
    assert read(line("failed")) == Outcome(
        type="failed", tick=nine, job="beat_a_1", started=None, ended=None, duration=None, worker=None, attempts=3,
        error=Error("KeyError", "'x'", "…\nKeyError: 'x'"), at=at, beat="web-2:17",
    )  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_what_a_newer_beat_adds_is_passed_over(kind: str) -> None:
    assert read(line(kind, colour="red", more={"x": [1]})) == read(line(kind))


@pytest.mark.parametrize("name", ["error", "reason", "reported", "message", "details"])
def test_what_may_be_left_out_may_be_nothing_too(name: str) -> None:
    assert read(line("failed", **{name: None})) is not None


OPTIONAL = {
    "error", "reported", "message", "details", "queue", "why", "shards", "after", "group", "of", "shard",
}  # fmt: skip
LEFT_OUT = {("skipped behind another", "behind"), ("stopped", "reason"), ("lost", "reason")}
NEEDED = [
    (kind, name)
    for kind in LINES
    for name in [*LINES[kind], "type"]
    if name not in OPTIONAL and (kind, name) not in LEFT_OUT
]


@pytest.mark.parametrize(("kind", "name"), NEEDED)
def test_a_line_that_lacks_something_is_none(kind: str, name: str) -> None:
    written = line(kind)
    del written[name]
    assert read(written) is None


WRONG: list[object] = [True, 1.5, -0.1, [], {}, [1], "banana", 10**16, -(10**16), "2026-11-16T09:00:00", "2026-11-16"]


def fits(kind: str, name: str, value: object) -> bool:
    """Whether one of WRONG may stand there all the same."""
    match name:
        case "from" | "reported":  # copied as it was; anything but true says no
            return True
        case "rule" | "was" | "details" if not kind.startswith("reopened"):
            return value == {}
        case "job" | "by" | "behind" | "reason" | "beat" | "worker" | "message" | "rev" | "was":
            return isinstance(value, str)
        case "queue" | "why" | "after" | "group" | "of":
            return isinstance(value, str)
        case _:
            return name == "duration" and isinstance(value, float)


@pytest.mark.parametrize("kind", LINES)
def test_a_value_that_cannot_stand_there_makes_it_no_line(kind: str) -> None:
    for name in LINES[kind]:
        for value in WRONG:
            found = read(line(kind, **{name: value}))
            assert (found is not None) == fits(kind, name, value), (name, value)


@pytest.mark.parametrize("garbled", ["banana", "2026-11-16T09:00:00", "31 February", "2026-02-31T09:00:00Z"])
def test_a_next_run_that_was_garbled_reads_as_none(garbled: str) -> None:
    found = read(line("moved", **{"from": garbled}))
    assert isinstance(found, Changed)
    assert found.before is None


@pytest.mark.parametrize(
    "written",
    [
        b"", b" ", b"null", b"[]", b"{}", b'"enqueued"', b"17", b"\xff\xfe{}", b"\x00", b"{", b'{"type":', b"NaN",
        b'{"type":["enqueued"]}', b'{"type":{}}', b'{"type":null}', b'{"type":"banana"}', b"[" * 100_000,
        b'{"a":' * 100_000, b"9" * 5000, '{"type": "enqueued"}'.encode("utf-16"), b"PONG", b"\x80\x04K\x01.",
    ],
    ids=lambda written: repr(written[:30]),
)  # fmt: skip
def test_what_is_no_line_is_none(written: bytes) -> None:
    assert ledger.read(written) is None


def test_white_space_around_a_line_says_nothing_and_anything_else_spoils_it() -> None:
    written = json.dumps(line("enqueued")).encode()
    assert ledger.read(b" \t" + written + b"\r\n") == ledger.read(written) is not None
    assert [ledger.read(each) for each in (b"x" + written, written + b"x", written + written)] == [None] * 3


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 400, "9" * 5000])
def test_a_number_that_is_none_makes_it_no_line(number: str) -> None:
    for kind, name in [("succeeded", "duration"), ("succeeded", "attempts"), ("enqueued", "n"), ("skipped", "count")]:
        written = json.dumps(line(kind, **{name: "X"})).replace('"X"', number)
        assert ledger.read(written.encode()) is None


def test_bytes_that_are_no_text_spoil_only_their_own_value() -> None:
    written = json.dumps(line("enqueued")).encode().replace(b"web-2", b"w\xffb")
    found = ledger.read(written)
    assert isinstance(found, Enqueued)
    assert found.beat == "w\ufffdb:17"


@pytest.mark.parametrize("name", ["rule", "was", "details"])
def test_what_is_too_deep_to_be_printed_makes_it_no_line(name: str) -> None:
    kind = "succeeded" if name == "details" else "updated"
    for depth, readable in [(20, True), (40, False), (500, False)]:
        deep: Any = 1
        for n in range(depth):
            deep = [deep] if n % 2 else {"a": deep}
        assert (read(line(kind, **{name: {"deep": deep}})) is not None) == readable


# --- any line ---------------------------------------------------------------------------------------------------------

words = st.text(max_size=20)
instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 (given here)
whole = st.integers(-(10**15) + 1, 10**15 - 1)
values = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(words, inside, max_size=3),
    max_leaves=10,
)
mappings = st.dictionaries(words, values, max_size=3)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        Enqueued, st.none() | instants, words, words, whole, whole, instants, words, words, words, whole, words,
    ),
    st.builds(Skipped, instants, instants, whole, words, whole, instants, words, words, words, words),
    st.builds(Waiting, instants, words, words, instants, words, words),
    st.builds(
        Outcome,
        type=st.sampled_from(ledger.OUTCOMES),
        tick=st.none() | instants,
        job=words,
        started=st.none() | instants,
        ended=st.none() | instants,
        duration=st.none() | st.floats(-(10**14), 10**14),
        worker=st.none() | words,
        attempts=whole,
        at=instants,
        beat=words,
        error=st.none() | st.builds(Error, words, words, words),
        reason=words,
        reported=st.booleans(),
        message=words,
        details=mappings,
        of=words,
        shard=whole,
    ),
    st.builds(Reopened, st.none() | instants, words, words, whole, instants, words, words, whole),
    st.builds(
        Changed, st.sampled_from(ledger.CHANGES), words, mappings, st.none() | mappings, st.none() | instants,
        st.none() | instants, instants, words,
    ),
)  # fmt: skip


@given(entries)
def test_every_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert ledger.read(json.dumps(ledger.plain(entry)).encode()) == entry


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf{}")
def test_any_bytes_may_stand_in_the_ledger(written: bytes) -> None:
    assert ledger.read(written) is None


@given(values)
def test_any_json_may_stand_in_the_ledger(value: Any) -> None:
    assert read(value) is None


@given(st.sampled_from(sorted(LINES)), st.data())
def test_any_value_may_stand_in_a_line(kind: str, data: st.DataObject) -> None:
    written = line(kind)
    name = data.draw(st.sampled_from(sorted(written)))
    written[name] = data.draw(values | instants.map(datetime.isoformat))
    found = read(written)
    if found is not None:
        assert ledger.read(json.dumps(ledger.plain(found)).encode()) == found


@given(st.sampled_from(sorted(LINES)), st.integers(0, 400), st.binary(max_size=3))
def test_a_line_that_was_cut_or_overwritten_does_no_harm(kind: str, place: int, other: bytes) -> None:
    written = json.dumps(line(kind)).encode()
    ledger.read(written[:place])
    ledger.read(written[:place] + other + written[place + len(other) :])
