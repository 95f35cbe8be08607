"""The policies of place in examples/policies with real workers: what docs/guides/places.md says, happens.

All of them run side by side in one beat for some ten seconds, and workers are killed at their work; the tests then read
what was written down.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from beat import Client
from tests.process.example_stage import OF_PLACE, Place, a_place, explained, instant
from tests.support.facts import wait_until
from tests.support.rq_worker import SIMPLE, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = [
    *[("reports",)] * 3, *[("alerts",)] * 2, ("left", "host-a"), ("right", "host-b"),
    ("quick", "slow"),
]  # fmt: skip
FORKING = [("host-c",), ("etl",), ("chain",)]
"""Those whose jobs last no longer than the blink of an eye: with a work-horse there is time to kill it."""
KILLED = {"report": "reports", "flush": "host-c", "load": "chain", "collect": "etl"}
"""Whose worker is killed at it, in which queue."""
REPORTS = ["report-north", "report-east", "report-south", "report-west"]
ALERTS = ["alert-disk", "alert-load"]
LONG_ENOUGH = {
    **dict.fromkeys(REPORTS, 2), "alert-disk": 1, "turn": 6, "near": 3, "user-1": 2, "user-2": 2, "user-3": 2,
    "flush": 2, "tell": 2, "search": 6, "lookup": 4, "summary": 2, "digest": 2, "load": 3, "publish": 2,
}  # fmt: skip
"""How many jobs of each there must be before the tests have something to look at."""


@dataclass
class Crew:
    """The workers, each of which may be killed, and another comes in its place."""

    place: Place
    stage: ExitStack
    workers: list[Worker] = field(default_factory=list)

    def hire(self, *queues: str, options: tuple[str, ...] = ()) -> None:
        self.workers.append(self.stage.enter_context(self.place.worker(*queues, options=options)))

    def lose(self, name: str, queue: str) -> str:
        """Kills a worker at a job of that name, and its work-horse; the job, which nobody will end."""

        def struck() -> str:
            for job in self._taken(name, queue):
                if worker := self._at(job, queue):
                    worker.__exit__()
                    self.workers.remove(worker)
                    self.hire(*worker.queues, options=SIMPLE if worker.queues in WORKERS else ())
                    if job in self._taken(name, queue):  # else it has ended just then
                        return job
            return ""

        return wait_until(struck, 60, lambda: f"to kill a worker at {name}: {self._taken(name, queue)}")

    def _taken(self, name: str, queue: str) -> list[str]:
        """The jobs of that name that a worker has taken out of the queue, and not ended."""
        jobs = (each.partition(":")[0] for each in self.place.redis.zrange(f"rq:wip:{queue}", 0, -1))
        return [each for each in jobs if each.startswith(f"beat_{name}")]

    def _at(self, job: str, queue: str) -> Worker | None:
        """The worker that has it; of several this is not known at once."""
        found = [each for each in self.workers if queue in each.queues]
        is_at_it = [each for each in found if self.place.redis.hget(f"rq:worker:{each.name}", "current_job") == job]
        return found[0] if len(found) == 1 else next(iter(is_at_it), None)


@pytest.fixture(scope="module")
def show() -> Iterator[Place]:
    """All of them have run for a while, some workers were killed, and all have ended; Redis is still there."""
    with a_place() as made:
        with ExitStack() as stage:
            crew = Crew(made, stage)
            for queues in WORKERS:
                crew.hire(*queues, options=SIMPLE)
            for queues in FORKING:
                crew.hire(*queues)
            for worker in crew.workers:
                worker.says("Listening")
            beat = stage.enter_context(made.beat(*OF_PLACE))
            for name, queue in KILLED.items():
                made.killed[name] = crew.lose(name, queue)
                made.is_lost(made.killed[name], queue)
            for schedule_id, count in LONG_ENOUGH.items():
                made.fires(schedule_id, count, beat)
            assert beat.end() == 0
        yield made


# --- workers that are killed at their work --------------------------------------------------------------------------


@pytest.mark.parametrize("name", KILLED)
def test_what_a_worker_was_at_when_it_was_killed_has_one_end(show: Place, name: str) -> None:
    [line] = show.ends(show.killed[name])
    assert line["type"] in {"lost", "failed"}  # as RQ calls it, if it was the first to notice


def test_the_room_of_a_run_that_was_lost_is_there_again(show: Place) -> None:
    lost = instant(show.ends(show.killed["report"])[0]["at"])
    later = [run for schedule_id in REPORTS for run in show.runs(schedule_id) if run.start > lost]
    assert max(sum(run.start <= each.start < run.end for run in later) for each in later) == 2


def test_a_broadcast_of_which_a_part_was_lost_has_not_succeeded(show: Place) -> None:
    tick, _, shard = show.killed["flush"].rpartition("_s")
    ended = {line["job"] for line in show.lines("flush", "succeeded") if line["of"] == tick}
    assert ended == {f"{tick}_s{n}" for n in range(3)} - {f"{tick}_s{shard}"}
    assert tick not in followed(show, "tell")
    lost = {line["of"] for line in show.lines("flush", "lost", "failed")}
    assert int(show.ledgers.state("flush")["failure_count"]) == len(lost)


def test_nothing_follows_what_was_lost(show: Place) -> None:
    assert show.killed["load"] not in followed(show, "publish")


# --- groups ----------------------------------------------------------------------------------------------------------


def at_once(place: Place, ids: list[str]) -> int:
    """How many runs of all of them were there at the same time, at the most."""
    runs = [run for schedule_id in ids for run in place.runs(schedule_id)]
    return max(sum(run.start <= each.start < run.end for run in runs) for each in runs)


def test_of_a_group_as_many_run_at_once_as_may_and_the_others_wait(show: Place) -> None:
    assert at_once(show, REPORTS) == 2  # though there are three workers
    waiting = [line for schedule_id in REPORTS for line in show.lines(schedule_id, "waiting")]
    assert {line["group"] for line in waiting} == {"reports"}
    assert [line for schedule_id in REPORTS for line in show.lines(schedule_id, "skipped")] == []


def test_what_waits_for_its_group_is_let_in_in_the_order_of_the_ticks(show: Place) -> None:
    waited = {(each, line["tick"]) for each in REPORTS for line in show.lines(each, "waiting")}
    admitted = sorted(
        (instant(line["at"]), line["tick"])
        for each in REPORTS
        for line in show.lines(each, "enqueued")
        if (each, line["tick"]) in waited
    )
    assert [tick for _, tick in admitted] == sorted(tick for _, tick in admitted)


def test_what_finds_its_group_full_is_skipped_where_the_group_says_so(show: Place) -> None:
    assert at_once(show, ALERTS) == 1
    skipped = [line for schedule_id in ALERTS for line in show.lines(schedule_id, "skipped")]
    assert {line["reason"] for line in skipped} == {"group"}
    jobs = {line["job"] for schedule_id in ALERTS for line in show.lines(schedule_id, "enqueued")}
    assert {line["behind"] for line in skipped} <= jobs
    assert [line for schedule_id in ALERTS for line in show.lines(schedule_id, "waiting")] == []


# --- routes ----------------------------------------------------------------------------------------------------------


def queues(place: Place, schedule_id: str) -> list[str]:
    """To which its ticks went, the first one first."""
    return [line["queue"] for line in place.lines(schedule_id, "enqueued")]


def test_round_robin_goes_to_each_in_turn(show: Place) -> None:
    found = queues(show, "turn")
    assert found == (["left", "right"] * len(found))[: len(found)]


def test_failover_goes_to_the_first_where_somebody_works_and_says_so(show: Place) -> None:
    lines = show.lines("near", "enqueued")
    assert {(line["queue"], line["why"]) for line in lines} == {("left", "failover: nobody works at abandoned")}


def test_hash_goes_always_to_the_same(show: Place) -> None:
    found = [{*queues(show, f"user-{n}")} for n in (1, 2, 3)]
    assert [len(each) for each in found] == [1, 1, 1]
    assert set.union(*found) == {"left", "right"}


def test_a_broadcast_is_a_job_for_every_queue_and_succeeds_once(show: Place) -> None:
    fired, ended = show.lines("flush", "enqueued"), show.lines("flush", "succeeded")
    assert {line["shards"] for line in fired} == {3}
    parts: dict[str, set[int]] = {}
    for line in ended:
        parts.setdefault(line["of"], set()).add(line["shard"])
    whole = [job for job, found in parts.items() if found == {0, 1, 2}]
    assert len(ended) == sum(map(len, parts.values()))
    assert int(show.ledgers.state("flush")["success_count"]) == len(whole) >= 2
    assert followed(show, "tell") <= {*whole}


# --- the slow lane ---------------------------------------------------------------------------------------------------


def test_what_was_slow_three_times_goes_to_the_slow_queue_and_says_why(show: Place) -> None:
    lines = show.lines("search", "enqueued")
    lanes = [line.get("queue", "quick") for line in lines]
    assert lanes[:3] == ["quick"] * 3
    assert lanes == sorted(lanes)  # and stays there: a minute has not passed
    assert {line["why"] for line in lines if line.get("queue") == "slow"} == {"slow: 3 runs over 300ms within 1m"}


def test_what_is_quick_stays_where_it_is(show: Place) -> None:
    assert {line.get("queue", "quick") for line in show.lines("lookup", "enqueued")} == {"quick"}


# --- on each other ---------------------------------------------------------------------------------------------------


def test_what_requires_another_is_skipped_unless_that_one_has_succeeded_since(show: Place) -> None:
    skipped = show.lines("summary", "skipped")
    assert {line["reason"] for line in skipped} == {"dependency"}
    assert all(line["why"].startswith("collect has ") for line in skipped)
    successes = [instant(line["ended"]) for line in show.lines("collect", "succeeded")]
    for line in show.lines("summary", "enqueued"):
        tick = instant(line["tick"]).timestamp()
        assert any(tick - 2 <= success.timestamp() <= instant(line["at"]).timestamp() for success in successes), line


def test_what_requires_a_success_within_a_minute_runs_after_the_first_one(show: Place) -> None:
    first = min(instant(line["at"]) for line in show.lines("collect", "succeeded"))
    late = [line for line in show.lines("digest", "skipped") if instant(line["at"]) > first]
    assert late == []


def followed(place: Place, schedule_id: str) -> set[str]:
    """The jobs whose success it has followed: each once."""
    found = [line["after"] for line in place.lines(schedule_id, "enqueued", "skipped")]
    assert len(found) == len({*found}), "twice for one success"
    return {*found}


@pytest.mark.parametrize(("parent", "follower"), [("extract", "load"), ("load", "publish")])
def test_a_follower_runs_once_for_every_success_and_for_no_failure(show: Place, parent: str, follower: str) -> None:
    successes = [line["job"] for line in show.lines(parent, "succeeded")]
    waiting = [words.split()[3] for words in show.redis.zrange(f"beat:waiting:{follower}", 0, -1)]
    assert followed(show, follower) | {*waiting} == {*successes}  # the beat may have ended in between
    assert {line["by"] for line in show.lines(follower, "enqueued")} == {"follows"}


def test_there_were_failures_that_nothing_has_followed(show: Place) -> None:
    assert show.lines("extract", "failed")


# --- and why ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule_id", [*ALERTS, "summary"])
def test_beat_why_explains_a_skip_in_a_sentence(show: Place, schedule_id: str) -> None:
    explained(show, show.lines(schedule_id, "skipped")[0], schedule_id)


def test_beat_verify_accounts_for_every_tick(show: Place) -> None:
    assert [each for each in Client(show.server.url).verify() if not each.sound] == []
