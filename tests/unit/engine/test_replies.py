"""What the replies of Redis mean: an event each, said once."""

from __future__ import annotations

import pytest
from redis import exceptions

from beat.engine import fire_items, obstacles
from beat.engine.events import NAMES, Event
from beat.engine.fire_items import Chain
from beat.engine.replies import LONGEST_WAIT_MS, Replies
from beat.storage.messages import Item, Reply

NOW = 1_794_819_600_500
LOST = exceptions.ConnectionError("gone")
REPORT = [("report", "app.tasks.report")]


def fire(number: int = 0) -> Item:
    return Item("fire", "report", "rev", f"tick-{number}", NOW - 500, "next", NOW, f"job-{number}", "rq:queue:default")


SKIP = Item("skip", "report", "rev", "tick", 0, "next", NOW, number=7, last="last", reason="overlap")
QUARANTINE = Item("quarantine", "report", "rev", error="definition cannot be read")


class Heard:
    """Replies, and the events that they became."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.replies = Replies(self.events.append)

    def settle(self, items: list[Item], *found: Reply) -> Chain | None:
        return self.replies.settle(chain(*items), found, NOW)

    def names(self) -> list[str]:
        return [event.name for event in self.events]


def chain(*items: Item) -> Chain:
    return Chain(items, 5, "app.tasks.report" if items[0].kind == "fire" else "", priority="high")


# --- codes and events ------------------------------------------------------------------------------------------------


def test_a_fire_that_was_done_is_told_with_how_late_it_was() -> None:
    heard = Heard()
    assert heard.settle([fire()], Reply("OK")) is None
    fields = {
        "tick": "tick-0",
        "job_id": "job-0",
        "job_name": "app.tasks.report",
        "priority": "high",
        "queue": "default",
        "queues": ["default"],
        "late_ms": 500,
        "next_run": "next",
    }
    assert heard.events == [Event("fired", "report", fields)]


def test_a_skip_is_told_with_its_count_and_reason() -> None:
    heard = Heard()
    heard.settle([SKIP], Reply("OK"))
    assert heard.events == [
        Event("skipped", "report", {"tick": "tick", "count": 7, "reason": "overlap", "next_run": "next", "why": ""})
    ]


def test_a_release_is_not_worth_a_word() -> None:
    heard = Heard()
    heard.settle(list(fire_items.released("report").items), Reply("OK"))
    assert heard.events == []


def test_what_was_set_apart_is_broken() -> None:
    heard = Heard()
    heard.settle([QUARANTINE], Reply("OK"))
    assert heard.events == [Event("broken", "report", {"code": "BADSTATE", "error": "definition cannot be read"})]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("LOCKED", "locked"), ("FENCED", "fenced"), ("GONE", "gone"), ("STALE", "passed_on"), ("CHANGED", "passed_on"),
        ("INACTIVE", "passed_on"), ("OTHERS", "unread"), ("BADTYPE", "broken"), ("BADSTATE", "broken"),
        ("BADARG", "broken"),
    ],
)  # fmt: skip
def test_each_code_has_its_event(code: str, name: str) -> None:
    heard = Heard()
    assert heard.settle([fire()], Reply(code, "words")) is None
    assert [(event.name, event.schedule_id, event.fields["code"]) for event in heard.events] == [(name, "report", code)]
    assert name in NAMES


def test_what_is_left_to_others_is_told_with_the_reason() -> None:
    heard = Heard()
    heard.settle([QUARANTINE], Reply("OTHERS"))
    assert [event.fields["words"] for event in heard.events] == ["definition cannot be read"]


def test_what_cannot_be_enqueued_is_told_with_its_function() -> None:
    heard, words = Heard(), f"{fire().queue} is a string, not a queue"
    for _ in range(2):
        assert heard.settle([fire()], Reply("BADTYPE", words)) is None
    ((name, fields),) = [(event.name, event.fields) for event in heard.events]
    assert (name, fields["error"]) == ("enqueue_failed", f"{words}; rename that key, or delete it")
    assert fields["func"]


def test_a_ledger_that_is_none_is_no_trouble_of_the_queue() -> None:
    heard, words = Heard(), "beat:runs:report is a string, not a list"
    assert heard.settle([fire()], Reply("BADTYPE", words)) is None
    fields = {"code": "BADTYPE", "error": f"{words}; rename that key, or delete it"}
    assert [(event.name, event.fields) for event in heard.events] == [("broken", fields)]


def test_what_is_broken_is_told_once_until_it_is_broken_otherwise() -> None:
    heard = Heard()
    for words in ("a", "a", "b", "b", "a"):
        heard.replies.trouble("report", Reply("BADSTATE", words), NOW)
    heard.replies.trouble("other", Reply("BADSTATE", "a"), NOW)
    assert [(event.schedule_id, event.fields["error"].partition(";")[0]) for event in heard.events] == [
        ("report", "a"), ("report", "b"), ("report", "a"), ("other", "a"),
    ]  # fmt: skip


def test_what_went_well_in_between_is_told_anew_when_it_breaks() -> None:
    heard = Heard()
    heard.replies.trouble("report", Reply("BADSTATE", "a"), NOW)
    heard.settle([fire()], Reply("OK"))
    heard.replies.trouble("report", Reply("BADSTATE", "a"), NOW)
    assert heard.names() == ["broken", "fired", "recovered", "broken"]


# --- the end of an obstacle ------------------------------------------------------------------------------------------

REJECTED = Reply("BADTYPE", "rq:queue:default is a string, not a queue")


def recovered(heard: Heard) -> list[tuple[int, str]]:
    """How many ticks fired late at the end of each obstacle, and why if none did."""
    return [(each.fields["count"], each.fields["why"]) for each in heard.events if each.name == "recovered"]


def test_end_of_an_obstacle_counts_the_ticks_that_fired_late() -> None:
    heard, late = Heard(), [fire(n)._replace(due=NOW - 1000 * n) for n in (3, 2, 1)]
    heard.settle(late, REJECTED, REJECTED, REJECTED)
    on_time = fire(0)._replace(due=NOW + 1000)
    heard.replies.settle(chain(*late, on_time), [Reply("OK")] * 4, NOW + 1000)
    assert recovered(heard) == [(3, "")]
    heard.replies.settle(chain(fire(9)._replace(due=NOW + 2000)), [Reply("OK")], NOW + 2000)
    assert recovered(heard) == [(3, "")]


def test_chain_that_is_rejected_in_part_is_still_an_obstacle() -> None:
    heard = Heard()
    heard.settle([fire(1), fire(2)], REJECTED, REJECTED)
    heard.settle([fire(1), fire(2)], Reply("OK"), REJECTED)
    assert recovered(heard) == []
    assert heard.names().count("enqueue_failed") == 1
    heard.settle([fire(2)], Reply("OK"))
    assert recovered(heard) == [(1, "")]


def test_skip_of_what_was_missed_does_not_end_an_obstacle() -> None:
    heard = Heard()
    heard.settle([fire()], REJECTED)
    heard.settle([SKIP], Reply("OK"))
    assert recovered(heard) == []


@pytest.mark.parametrize("code", ["WAITS", "SKIPPED"])
def test_tick_without_a_slot_ends_an_obstacle(code: str) -> None:
    heard = Heard()
    heard.settle([fire()], REJECTED)
    heard.settle([fire()], Reply(code, "overlap"))
    assert len(recovered(heard)) == 1


def test_lost_reply_ends_an_obstacle() -> None:
    heard = Heard()
    heard.settle([fire()], REJECTED)
    heard.settle([fire()], Reply("STALE", "job-0"))
    assert recovered(heard) == [(1, "")]


def test_obstacle_that_ended_at_another_scheduler_is_logged_with_the_next_tick() -> None:
    heard = Heard()
    heard.settle([fire()], REJECTED)
    heard.replies.settle(chain(fire(5)._replace(due=NOW + 60_000)), [Reply("OK")], NOW + 60_000)
    assert recovered(heard) == [(0, "another scheduler decided the late ones")]


def test_obstacle_that_was_not_met_for_long_is_logged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, now = Heard(), [1000.0]
    monkeypatch.setattr("beat.engine.obstacles.time.monotonic", lambda: now[0])
    for later in (0, obstacles.FORGOTTEN_S - 1, obstacles.FORGOTTEN_S - 1, obstacles.FORGOTTEN_S):
        now[0] += later
        heard.settle([fire()], REJECTED)
    assert heard.names() == ["enqueue_failed"] * 2


def test_missing_right_to_all_jobs_is_one_obstacle() -> None:
    heard = Heard()
    for number in range(3):
        words = f"Redis does not let this user do hset with rq:job:job-{number}"
        heard.settle([fire(number)], Reply("BADTYPE", words))
    [event] = heard.events
    assert "hset with rq:job:*; grant that right" in event.fields["error"]


def test_remedy_goes_with_each_rejection() -> None:
    words = {
        "beat:schedule:report is a string": "rename that key",
        "Redis does not let this user do rpush with rq:queue:x": "grant that right",
        "beat:template:report is missing": "restart a scheduler",
        "run_count is not a number: x": "write a sound value",
    }
    for error, remedy in words.items():
        heard = Heard()
        heard.replies.trouble("report", Reply("BADSTATE", error), NOW)
        assert heard.events[0].fields["error"].startswith(f"{error}; {remedy}")


# --- what had happened already ---------------------------------------------------------------------------------------


def test_stale_with_our_own_job_means_that_it_had_happened() -> None:
    heard = Heard()
    assert heard.settle([fire()], Reply("STALE", "job-0")) is None
    assert heard.names() == ["fired"]


def test_a_chain_that_had_happened_counts_each_tick_once() -> None:
    heard = Heard()
    items = [SKIP, fire(1), fire(2), fire(3)]
    heard.settle(items, *[Reply("STALE", "job-3")] * 4)
    assert heard.names() == ["skipped", "fired", "fired", "fired"]
    assert [event.fields.get("job_id") for event in heard.events] == [None, "job-1", "job-2", "job-3"]


@pytest.mark.parametrize("last_job", ["", "job-0", "somebody-elses"])
def test_stale_with_any_other_job_means_that_somebody_else_decided(last_job: str) -> None:
    heard = Heard()
    heard.settle([fire(1), fire(2)], Reply("STALE", last_job), Reply("STALE", last_job))
    assert heard.names() == ["passed_on", "passed_on"]


def test_stale_with_an_earlier_job_of_the_chain_is_no_proof_for_the_later_ones() -> None:
    heard = Heard()
    heard.settle([fire(1), fire(2)], Reply("STALE", "job-1"), Reply("STALE", "job-1"))
    assert heard.names() == ["fired", "passed_on"]


# --- too early -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_early_comes_back_with_the_rest_of_its_chain(place: int) -> None:
    heard = Heard()
    items = [fire(0), fire(1), fire(2)]
    found = [*[Reply("OK")] * place, Reply("EARLY", "250"), *[Reply("STALE", "")] * (2 - place)]
    again = heard.settle(items, *found)
    assert again == Chain(tuple(items[place:]), NOW + 250, "app.tasks.report", priority="high")
    assert heard.names() == ["fired"] * place


def test_a_wait_that_is_just_bearable_is_borne() -> None:
    again = Heard().settle([fire()], Reply("EARLY", str(LONGEST_WAIT_MS)))
    assert again is not None
    assert again.due == NOW + LONGEST_WAIT_MS


def test_a_longer_one_is_given_back() -> None:
    assert Heard().settle([fire()], Reply("EARLY", str(LONGEST_WAIT_MS + 1))) == fire_items.released("report")


# --- what went wrong -------------------------------------------------------------------------------------------------


def test_a_refusal_is_told_once_and_stamped_on_the_next_fire() -> None:
    heard = Heard()
    for _ in range(3):
        heard.replies.refused(REPORT, LOST)
    assert heard.names() == ["enqueue_failed"]
    assert heard.replies.stamped(fire()).error == "ConnectionError: gone"


def test_the_newest_cause_is_stamped() -> None:
    heard = Heard()
    heard.replies.refused(REPORT, LOST)
    heard.replies.refused(REPORT, exceptions.OutOfMemoryError("OOM"))
    assert heard.replies.stamped(fire()).error == "OutOfMemoryError: OOM"


@pytest.mark.parametrize("item", [SKIP, QUARANTINE, fire_items.released("report").items[0]], ids=lambda item: item.kind)
def test_only_a_fire_is_stamped(item: Item) -> None:
    heard = Heard()
    heard.replies.refused(REPORT, LOST)
    assert heard.replies.stamped(item) == item


def test_other_schedules_are_not_stamped() -> None:
    heard = Heard()
    heard.replies.refused(REPORT, LOST)
    assert heard.replies.stamped(fire()._replace(id="other")).error == ""


def test_the_stamp_goes_with_the_fire_that_was_done_and_the_next_refusal_is_told_again() -> None:
    heard = Heard()
    heard.replies.refused(REPORT, LOST)
    heard.settle([fire()], Reply("OK"))
    assert heard.replies.stamped(fire()).error == ""
    heard.replies.refused(REPORT, LOST)
    assert heard.names() == ["enqueue_failed", "fired", "enqueue_failed"]


BROADCAST = fire()._replace(queue="rq:queue:x\nrq:queue:y")


def test_the_queues_of_a_broadcast_are_told_by_name() -> None:
    heard = Heard()
    heard.settle([BROADCAST], Reply("OK"))
    [event] = heard.events
    assert (event.name, event.fields["queue"]) == ("fired", "x, y")


def test_a_queue_of_a_broadcast_that_is_none_keeps_it_from_being_enqueued() -> None:
    heard = Heard()
    heard.settle([BROADCAST], Reply("BADTYPE", "rq:queue:y is a string, not a queue"))
    assert heard.names() == ["enqueue_failed"]
