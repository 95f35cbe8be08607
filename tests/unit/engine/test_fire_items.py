"""Verdicts as the fire script takes them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beat.engine import fire_items
from beat.jobs import job_template
from beat.policies.decide import Fire, Skip
from beat.schedule.schedule import Schedule
from beat.storage.keys import Keys
from beat.storage.messages import Claim, Item
from beat.storage.scripts import script
from beat.timing import clock
from beat.timing.interval import Every

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
MS = 1_794_819_600_000
CLAIM = Claim("report", "rev", "2026-11-16T09:00:00Z", MS + 250, "normal")


def schedule(**given: Any) -> Schedule:
    return Schedule(id="report", func="app.tasks.report", timing=Every("1h"), **given)


def test_an_item_has_the_parts_of_the_scripts_header() -> None:
    assert Item._fields == script("fire").item


def test_a_fire_says_everything_about_its_job() -> None:
    (item,) = fire_items.chain(CLAIM, "rev", schedule(queue="reports"), [Fire(NINE, NINE + HOUR)], Keys()).items
    assert item._replace(run=b"") == Item(
        kind="fire", id="report", rev="rev", tick="2026-11-16T09:00:00Z", due=MS, next="2026-11-16T10:00:00Z",
        next_due=MS + 3_600_000, job=f"beat_report_{MS // 1000}", queue="rq:queue:reports", at="back", by="scheduler",
    )  # fmt: skip


def test_the_last_tick_has_no_next() -> None:
    (item,) = fire_items.chain(CLAIM, "rev", schedule(), [Fire(NINE, None)], Keys()).items
    assert (item.next, item.next_due) == ("", 0)


def test_a_job_may_go_to_the_front() -> None:
    (item,) = fire_items.chain(CLAIM, "rev", schedule(at_front=True), [Fire(NINE, None)], Keys()).items
    assert item.at == "front"


def test_a_skip_has_a_number_and_no_job() -> None:
    skip = Skip(NINE, last=NINE + 4 * HOUR, count=5, next=NINE + 5 * HOUR)
    (item,) = fire_items.chain(CLAIM, "rev", schedule(), [skip], Keys()).items
    assert (item.kind, item.tick, item.number, item.next) == ("skip", "2026-11-16T09:00:00Z", 5, "2026-11-16T14:00:00Z")
    assert (item.last, item.reason) == ("2026-11-16T13:00:00Z", "misfire")
    assert (item.job, item.queue, item.run, item.by) == ("", "", b"", "")


def test_a_chain_keeps_the_order_and_is_sent_when_its_claim_is_due() -> None:
    decided = [Fire(NINE + n * HOUR, NINE + (n + 1) * HOUR) for n in range(3)]
    chain = fire_items.chain(CLAIM, "rev", schedule(), decided, Keys())
    assert (chain.id, chain.due, chain.func) == ("report", MS + 250, "app.tasks.report")
    assert [item.tick[11:13] for item in chain.items] == ["09", "10", "11"]
    assert len({item.job for item in chain.items}) == 3


@pytest.mark.parametrize("by", ["scheduler", "catchup"])
@pytest.mark.parametrize("serializer", ["pickle", "json"])
def test_the_run_completes_the_meta_of_the_template(serializer: str, by: str) -> None:
    made = schedule(serializer=serializer, meta={"owner": "ops"})
    (item,) = fire_items.chain(CLAIM, "rev", made, [Fire(NINE, None, by)], Keys()).items
    assert item.by == by
    written = job_template.template(made)["meta"] + item.run
    reads = pickle.loads if serializer == "pickle" else __import__("json").loads
    run = "report 2026-11-16T09:00:00Z" if by == "scheduler" else f"report 2026-11-16T09:00:00Z {by}"
    assert reads(written) == {"owner": "ops", "beat": run}


@pytest.mark.parametrize(
    "written", ["2026-11-16T09:00:00.000Z", "2026-11-16T09:00:00.Z", "2026-11-16T09:00:00.000000Z"]
)
def test_the_tick_is_sent_as_redis_wrote_it(written: str) -> None:
    """The compare-and-set compares text: another spelling of the same instant would never be equal."""
    claim = CLAIM._replace(tick=written)
    chain = fire_items.chain(claim, "rev", schedule(), [Fire(NINE, NINE + HOUR), Fire(NINE + HOUR, None)], Keys())
    assert [item.tick for item in chain.items] == [written, "2026-11-16T10:00:00Z"]
    assert chain.items[0].job == f"beat_report_{MS // 1000}"


def test_what_was_not_decided_is_released_at_once() -> None:
    chain = fire_items.released("report")
    assert chain.items == (Item("release", "report", ""),)
    assert (chain.due, chain.func) == (0, "")


def test_what_cannot_be_read_waits_for_a_person() -> None:
    chain = fire_items.quarantined("report", "rev", "definition cannot be read")
    assert chain.items == (Item("quarantine", "report", "rev", error="definition cannot be read"),)
    assert chain.due == 0


def test_installations_with_prefixes_of_their_own_share_no_job() -> None:
    ids = [
        fire_items.chain(CLAIM, "rev", schedule(), [Fire(NINE, None)], Keys(prefix)).items[0].job
        for prefix in ("beat:", "a:", "b:", "b:c:")
    ]
    assert ids == [f"{start}_report_{clock.floor(NINE)}" for start in ("beat", "a", "b", "b_c")]
