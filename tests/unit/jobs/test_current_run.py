"""What a job is told about its run: how it is written into the meta, and how the job asks for it."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import rq
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rq.job import Job
from rq.serializers import DefaultSerializer, JSONSerializer

from beat.errors import BadArguments, BadInstant, BadOption
from beat.jobs import job_template
from beat.jobs.current_run import get_current_run
from beat.jobs.run import Run
from beat.schedule.schedule import Schedule
from beat.timing.interval import Every
from tests.support.declared import MISSING, Colour, Point

TICK = datetime(2026, 11, 16, 9, tzinfo=UTC)
RUN = Run("report", TICK, "schedule")
LINE = "report 2026-11-16T09:00:00Z schedule"
PLAIN = {"schedule_id": "report", "scheduled_for": "2026-11-16T09:00:00Z", "triggered_by": "schedule"}
"""As a part of a broadcast begins, and as every run was written before."""


def schedule(**options: Any) -> Schedule:
    return Schedule(id="report", func="app.report", timing=Every("1h"), **options)


# --- a run -----------------------------------------------------------------------------------------------------------


def test_a_run_is_plain_text_that_can_be_read_again() -> None:
    assert RUN.plain() == LINE
    assert Run.read(LINE) == Run.read(PLAIN) == RUN
    usual = Run("report", TICK, "scheduler")
    assert usual.plain() == "report 2026-11-16T09:00:00Z"
    assert Run.read(usual.plain()) == usual


def test_a_run_that_somebody_asked_for_has_no_tick() -> None:
    run = Run("report", None, "Zoë")
    assert run.plain() == "report - Zoë"
    assert Run.read(run.plain()) == run


def test_a_tick_is_kept_in_utc() -> None:
    paris = timezone(timedelta(hours=1))
    assert Run("report", TICK.astimezone(paris), "schedule").plain() == LINE
    with pytest.raises(BadInstant, match="scheduled_for 2026-11-16T09:00:00 has no time zone"):
        Run("report", TICK.replace(tzinfo=None), "schedule")


def test_what_a_newer_beat_adds_to_a_run_is_no_hindrance() -> None:
    assert Run.read({**PLAIN, "shard": 3}) == RUN


BROKEN: list[Any] = [
    None,
    3,
    "",
    "report",
    "report soon",
    "report  2026-11-16T09:00:00Z",
    "report 2026-11-16T09:00:00",
    [],
    ["schedule_id", "scheduled_for", "triggered_by"],
    {},
    {**PLAIN, "schedule_id": None},
    {**PLAIN, "triggered_by": 3},
    {**PLAIN, "scheduled_for": 1_794_819_600},
    {**PLAIN, "scheduled_for": ""},
    {**PLAIN, "scheduled_for": "soon"},
    {**PLAIN, "scheduled_for": "2026-11-16T09:00:00"},
    {**PLAIN, "scheduled_for": "0001-01-01T00:00:00+14:00"},
    *({name: value for name, value in PLAIN.items() if name != missing} for missing in PLAIN),
]


@pytest.mark.parametrize("broken", BROKEN, ids=repr)
def test_what_is_no_run_reads_as_none(broken: Any) -> None:
    assert Run.read(broken) is None


# --- the job asks ----------------------------------------------------------------------------------------------------


class Deaf:
    """A connection to nowhere, for a job that is run by hand."""

    def persist(self, key: str) -> None: ...


def run_job(meta: Any, func: str = "beat.jobs.current_run.get_current_run") -> Any:
    nowhere: Any = Deaf()
    job = Job.create(func, connection=nowhere)
    job.meta = meta
    return job.perform()


def test_a_job_that_beat_fired_knows_its_run() -> None:
    for written in (LINE, PLAIN):
        assert run_job({"beat": written, "mine": 1}) == RUN


def test_outside_a_job_there_is_no_run() -> None:
    assert get_current_run() is None


@pytest.mark.parametrize("meta", [{}, {"mine": 1}, None, [], *({"beat": broken} for broken in BROKEN)], ids=repr)
def test_a_job_that_beat_did_not_fire_has_no_run(meta: Any) -> None:
    assert run_job(meta) is None


def ask_in_a_thread() -> list[Run | None]:
    answers: list[Run | None] = []
    thread = threading.Thread(target=lambda: answers.append(get_current_run()))
    thread.start()
    thread.join()
    return answers


def test_another_thread_of_the_job_does_not_know_the_run() -> None:
    assert run_job({"beat": PLAIN}, f"{__name__}.ask_in_a_thread") == [None]


# --- the meta, in two parts ------------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=10,
)
VALUES = st.recursive(
    JSON_VALUES | st.binary() | st.datetimes() | st.builds(Point, st.integers()) | st.sampled_from([*Colour, MISSING]),
    lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner) | st.dictionaries(st.integers(), inner),
    max_leaves=10,
)
KEYS = st.text().filter(lambda key: key != "beat")
RUNS = st.builds(Run, st.from_regex(r"[\w-]{1,100}", fullmatch=True), st.none() | st.just(TICK), st.text())


def compose(meta: dict[str, Any], run: Run, serializer: Any) -> bytes:
    return job_template.template(schedule(meta=meta, serializer=serializer))["meta"] + job_template.run_block(
        run, serializer
    )


def loaded(written: bytes) -> dict[str, Any]:
    """What RQ's serializer reads, and Python's slow reader too, which minds the frames; they end between opcodes."""
    pickletools.dis(written, out=io.StringIO())
    opcodes: list[Any] = list(pickletools.genops(written))
    ends = {place + 9 + length for code, length, place in opcodes if code.name == "FRAME"}
    assert ends <= {place for _, _, place in opcodes}
    slow = pickle._Unpickler(io.BytesIO(written)).load()  # noqa: SLF001
    fast: dict[str, Any] = DefaultSerializer.loads(written)
    assert repr(slow) == repr(fast)
    return fast


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=5), RUNS)
@example({}, RUN)
@example({"": ""}, RUN)
@example({"}": '"beat": '}, RUN)
def test_in_json_the_two_parts_are_what_rq_would_write(meta: dict[str, Any], run: Run) -> None:
    rqs: Any = JSONSerializer
    written = compose(meta, run, "json")
    assert written == rqs.dumps({**meta, "beat": run.plain()})
    assert rqs.loads(written) == {**meta, "beat": run.plain()}


@given(st.dictionaries(KEYS, VALUES, max_size=5), RUNS)
@example({}, RUN)
@example({"a": 1}, RUN)
@example({"a": "\ud800"}, Run("report", None, "\ud800"))
def test_pickled_the_two_parts_are_read_as_one(meta: dict[str, Any], run: Run) -> None:
    read = loaded(compose(meta, run, "pickle"))
    assert read == {**meta, "beat": run.plain()}
    assert repr(read) == repr({**meta, "beat": run.plain()})


@settings(max_examples=30)
@given(VALUES)
def test_what_was_shared_in_a_pickle_is_still_shared(value: Any) -> None:
    shared = [value]
    read = loaded(compose({"a": shared, "b": (shared, "report", "beat"), "c": "report"}, RUN, "pickle"))
    assert read["a"] is read["b"][0]
    assert read == {"a": [value], "b": ([value], "report", "beat"), "c": "report", "beat": LINE}


def test_a_meta_that_holds_itself_is_refused_by_the_schedule() -> None:
    endless: dict[str, Any] = {}
    endless["me"] = endless
    with pytest.raises(BadArguments, match="nested more than"):
        schedule(meta=endless)


FRAME = 64 * 1024  # a pickle is written in frames of about so many bytes


@pytest.mark.parametrize("extra", [*range(-40, 8), FRAME, 2 * FRAME])
def test_wherever_the_last_frame_ends_the_meta_is_read(extra: int) -> None:
    halves = {"a": "x" * ((FRAME + extra) // 2), "b": "y" * ((FRAME + extra + 1) // 2)}
    assert loaded(compose(halves, RUN, "pickle")) == {**halves, "beat": LINE}
    whole = {"a": "x" * (FRAME + extra)}
    assert loaded(compose(whole, RUN, "pickle")) == {**whole, "beat": LINE}


@pytest.mark.parametrize("size", [999, 1_000, 1_001, 5_000])  # pickles write a thousand entries at a time
def test_a_meta_of_many_entries_is_read(size: int) -> None:
    many = {f"key {n}": [n, str(n)] for n in range(size)}
    assert loaded(compose(many, RUN, "pickle")) == {**many, "beat": LINE}


# --- the template ----------------------------------------------------------------------------------------------------


def test_the_template_has_no_times() -> None:
    assert not {"created_at", "enqueued_at"} & job_template.template(schedule()).keys()


def test_all_fields_are_bytes() -> None:
    full = schedule(retry=3, ttl=5, job_timeout=6, on_success="app.done", description="Größe")
    assert {type(value) for value in job_template.template(full).values()} == {bytes}
    assert job_template.template(full)["description"] == "Größe".encode()


class Unspeakable:
    """Can be written by pickle, but has no repr, of which RQ makes the description of a job."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def test_what_rq_cannot_write_is_refused_in_one_sentence() -> None:
    told = "RQ cannot write the job of schedule 'report': RuntimeError: no words; pass plain data"
    with pytest.raises(BadArguments, match=f"^{re.escape(told)}$"):
        job_template.template(schedule(args=[Unspeakable()]))
    assert (
        job_template.template(schedule(args=[Unspeakable()], description="Described."))["description"] == b"Described."
    )


def test_an_rq_without_retries_at_the_front_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_template, "_RETRY_HAS_A_FRONT", False)
    with pytest.raises(BadOption, match=f"needs RQ 2.8, and this is {rq.__version__}: upgrade, or leave it out"):
        job_template.template(schedule(retry={"max": 2, "enqueue_at_front": True}))
    assert job_template.template(schedule(retry=2))["retries_left"] == b"2"
