"""What Redis knows about a schedule, whoever wrote it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.schedule.state import FIELDS, State

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
WELL = (b"rev", b"timing", b"active", b"2026-11-16T09:00:00Z", b"2026-11-16T09:00:00Z", b"2026-11-16T08:00:00Z")


def read(**given: bytes | None) -> State:
    found = State.read([{**dict(zip(FIELDS, WELL, strict=True)), **given}[name] for name in FIELDS])
    assert found is not None
    return found


def test_the_values_have_the_names_of_the_fields() -> None:
    assert [getattr(read(), name).encode() for name in FIELDS] == list(WELL)


def test_a_schedule_without_any_value_is_not_there() -> None:
    assert State.read([None] * len(FIELDS)) is None


@pytest.mark.parametrize("name", FIELDS)
def test_a_schedule_with_a_single_value_is_there(name: str) -> None:
    found = State.read([b"" if each == name else None for each in FIELDS])
    assert found == State("", "", "", "", "", "")


def test_the_next_tick_is_an_instant() -> None:
    assert read().next == NINE
    assert read().last == NINE.replace(hour=8)


@pytest.mark.parametrize(
    "garbled", [None, b"", b"abc", b"-1", b"2026-02-31T00:00:00Z", b"\xff\xfe", b"2026-11-16T09:00"]
)
@pytest.mark.parametrize("name", ["next_run", "due_at"])
def test_without_both_its_times_there_is_no_next_tick(name: str, garbled: bytes | None) -> None:
    assert read(**{name: garbled}).next is None


def test_jitter_is_no_part_of_the_tick() -> None:
    assert read(due_at=b"2026-11-16T09:00:07.250Z").next == NINE


@given(st.lists(st.one_of(st.none(), st.binary(max_size=30)), min_size=6, max_size=6))
def test_no_bytes_do_harm(values: list[bytes | None]) -> None:
    found = State.read(values)
    assert (found is None) == (values == [None] * 6)
    assert found is None or (found.next is None) or found.next.tzinfo is not None
