"""What beat remembers of a run is read back as it was written, and nothing else is taken for it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.jobs.observation import Record, Sighting
from beat.timing import clock

WHOLE = Record(
    schedule="report", tick="2026-11-16T09:00:00Z", by="catchup", queue="rq:queue:default",
    enqueued="2026-11-16T09:00:00.004Z", n=117, life="2026-11-16T08:00:00.000Z", retries=3, result_ttl=0,
    failure_ttl=7, group="reports", of="beat_report_1", shard=1, shards=3, requeued=2,
    missing=5, missing_as="queued", replaced_by="2026-11-16T09:05:00Z", outcome="failed", sign="failed||x", started="s",
    ended="e", attempts=4,
)  # fmt: skip
FIRED = (
    '{"schedule":"report","tick":"2026-11-16T09:00:00Z","by":"scheduler","queue":"rq:queue:default",'
    '"enqueued":"2026-11-16T09:00:00.004Z","n":1}'
)
"""As the fire script writes it."""


def test_a_record_is_read_back_as_it_was_written() -> None:
    assert Record.read(WHOLE.text()) == WHOLE
    assert all(getattr(WHOLE, each.name) != each.default for each in fields(Record)), "no field is left out here"


def test_what_the_script_wrote_is_read() -> None:
    expected = Record("report", WHOLE.tick, "scheduler", "rq:queue:default", WHOLE.enqueued, 1)
    assert Record.read(FIRED) == expected
    assert expected.text() == FIRED, "and is written in the same way"


def test_a_queue_may_have_any_name() -> None:
    record = Record("report", queue="rq:queue:ünïcode 🎉")
    assert Record.read(record.text()) == record
    assert Record.read('{"schedule":"report","queue":"rq:queue:ünïcode 🎉"}') == record, "as the script writes it"


def test_what_says_nothing_is_not_written() -> None:
    assert Record("report").text() == '{"schedule":"report"}'


def test_a_time_to_keep_of_nothing_is_something() -> None:
    assert (
        Record("report", result_ttl=0, failure_ttl=0).text() == '{"schedule":"report","result_ttl":0,"failure_ttl":0}'
    )


def test_what_a_later_version_adds_is_passed_over() -> None:
    assert Record.read('{"schedule":"report","colour":"red"}') == Record("report")


@pytest.mark.parametrize(
    "garbage",
    [
        "", "garbage", "null", "3", "[]", "{}", '"schedule"', '["schedule"]', '{"tick":"x"}', "[" * 100_000, "\ufffd",
        "NaN", '{"schedule":', "{'schedule':'a'}",
    ],
    ids=repr,
)  # fmt: skip
def test_anything_else_is_no_record(garbage: str) -> None:
    assert Record.read(garbage) is None


TEXTS = [each.name for each in fields(Record) if str(each.type) == "str"]
COUNTS = [each.name for each in fields(Record) if str(each.type).startswith("int")]
OPTIONAL = {"result_ttl", "failure_ttl"}


def test_every_field_is_a_text_or_a_count() -> None:
    assert len(TEXTS) + len(COUNTS) == len(fields(Record))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("value", [None, 3, 1.5, True, [], {}, ["x"]], ids=repr)
def test_a_text_that_is_none_is_no_record(name: str, value: Any) -> None:
    assert Record.read(json.dumps({"schedule": "report", name: value})) is None


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_nobody_can_send_to_redis_is_no_record(name: str) -> None:
    assert Record.read(f'{{"schedule":"report","{name}":"\\ud800"}}') is None


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", ["3", 1.5, 1e300, True, [], {}, -1, 10**30], ids=repr)
def test_a_count_that_is_none_is_no_record(name: str, value: Any) -> None:
    assert Record.read(json.dumps({"schedule": "report", name: value})) is None


@pytest.mark.parametrize("name", COUNTS)
def test_nothing_is_a_count_only_where_there_may_be_none(name: str) -> None:
    found = Record.read(json.dumps({"schedule": "report", name: None}))
    assert found == (Record("report") if name in OPTIONAL else None)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    Record.read(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([each.name for each in fields(Record)]), values))
def test_whatever_is_read_can_be_written_and_read_again(found: dict[str, Any]) -> None:
    record = Record.read(json.dumps(found))
    if record is not None:
        assert Record.read(record.text()) == record


def sighting(**facts: Any) -> Sighting:
    words: dict[str, Any] = {each.name: "" for each in fields(Sighting)}
    return Sighting(**{**words, "value": b"", "error": b"", "job": "job", "record": FIRED, **facts})


@pytest.mark.parametrize(
    ("status", "started_at", "ended_at", "sign"),
    [
        ("failed", "s", "e", "failed|s|e"), ("queued", "", "", "queued||"), ("started", "s", "", "started|s|"),
        ("", "", "", ""), ("", "s", "e", ""),
    ],
)  # fmt: skip
def test_a_change_is_noticed_by_status_start_and_end(status: str, started_at: str, ended_at: str, sign: str) -> None:
    assert sighting(status=status, started_at=started_at, ended_at=ended_at).sign == sign


@pytest.mark.parametrize(
    ("status", "of_the_hash", "of_the_result", "worker"),
    [
        ("started", "new", "old", "new"), ("failed", "old", "new", "new"), ("failed", "only", "", "only"),
        ("started", "", "old", ""), ("finished", "", "", ""), ("finished", "\udcff", "", "\ufffd"),
    ],
)  # fmt: skip
def test_the_worker_is_who_had_it_last(status: str, of_the_hash: str, of_the_result: str, worker: str) -> None:
    assert sighting(status=status, worker_name=of_the_hash, result_worker=of_the_result).worker == worker


@pytest.mark.parametrize(
    ("stream_id", "written"),
    [("1794819600123-0", "2026-11-16T09:00:00.123Z"), ("", ""), ("garbage", ""), ("0-1", ""), (f"{2**64 - 1}-1", "")],
)
def test_a_result_was_written_when_its_id_says(stream_id: str, written: str) -> None:
    found = sighting(result_id=stream_id).written
    assert (clock.text(found) if found else "") == written
