"""What operators do, script by script: each reply, and what is written with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat.jobs import job_template
from beat.jobs.run import Run
from beat.storage.messages import Claim, Item, Reply
from beat.storage.operations import Operations
from tests.support.builders import (
    QUEUE,
    REV,
    TEMPLATE,
    changed,
    claim,
    everything,
    hash_of,
    put,
    put_and_claim,
    queued,
    registration,
    score,
    second,
    shows,
    text,
    verdict,
)  # fmt: skip

if TYPE_CHECKING:
    from beat.storage.store import Store

OK = Reply("OK")


def lines(store: Store, schedule_id: str = "report") -> list[dict[str, Any]]:
    """The ledger, newest first."""
    found: Any = store.client.lrange(store.keys.runs(schedule_id), 0, -1)
    return [json.loads(line) for line in found]


def types(store: Store) -> list[str]:
    return [line["type"] for line in lines(store)]


def index(store: Store, name: str) -> set[str]:
    found: Any = store.client.smembers(store.keys.index(name))
    return {each.decode() for each in found}


def pause(store: Store, *ids: str, version: str = "", **given: Any) -> list[Reply]:
    return Operations(store).pause([(each, version) for each in ids or ("report",)], by="ann", **given)


def fire(store: Store, *items: Item, token: str = "ann") -> list[Reply]:  # noqa: S107 (no secret)
    return list(store.fire(items, token=token).replies)


def resume(at: int, **changes: Any) -> Item:
    made = Item("resume", "report", REV, text(at), 0, text(at + 180), (at + 180) * 1000, number=3, last=text(at + 120))
    return made._replace(**changes)


# --- pause -----------------------------------------------------------------------------------------------------------


@shows("pause", "OK", "SAME")
def test_a_paused_schedule_is_handed_out_to_nobody_and_says_why(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    assert pause(store, reason="the disk is full") == [OK]
    found = hash_of(store)
    assert (found["state"], found["pause_reason"], found["paused_by"]) == ("paused", "the disk is full", "ann")
    assert (found["next_run"], found["version"], score(store), index(store, "paused")) == (
        text(at),
        "2",
        None,
        {"report"},
    )
    assert claim(store).claims == ()
    line = lines(store)[0]
    assert (line["type"], line["tick"], line["reason"], line["beat"]) == ("paused", text(at), "the disk is full", "ann")
    assert pause(store, reason="the disk is full") == [Reply("SAME")]
    assert pause(store, reason="another", scope="all") == [Reply("SAME")]  # what is paused already stays as it is
    assert pause(store, reason="another") == [OK]
    assert hash_of(store)["pause_reason"] == "another"


def test_a_pause_with_an_end_is_handed_out_when_it_ends(store: Store) -> None:
    now = second(store)
    put(store, "report", now - 10)
    assert pause(store, untl=text(now + 600)) == [OK]
    assert score(store) == (now + 600) * 1000
    assert claim(store).claims == ()
    store.client.hset("beat:schedule:report", "pause_until", text(now - 5))
    store.client.zadd("beat:due", {"report": (now - 5) * 1000})
    [found] = claim(store).claims
    assert found == Claim("report", REV, text(now - 10), (now - 5) * 1000, "normal", text(now - 5))


@shows("pause", "PAST", "GONE", "INACTIVE", "CONFLICT", "BADTYPE")
def test_what_cannot_be_paused_is_left_as_it_is(store: Store) -> None:
    now = second(store)
    put(store, "report", now + 60)
    put(store, "old", now + 60, state="finished")
    store.client.set("beat:schedule:text", "text")
    before = everything(store)
    assert pause(store, untl=text(now - 60))[0].code == "PAST"
    assert pause(store, "nobody", "old", "text") == [
        Reply("GONE"), Reply("INACTIVE", "finished"), Reply("BADTYPE", "beat:schedule:text is a string, not a hash"),
    ]  # fmt: skip
    assert pause(store, version="7") == [Reply("CONFLICT", "1")]
    assert not changed(before, store)
    store.client.delete("beat:schedule:text")


# --- resume ----------------------------------------------------------------------------------------------------------


def test_what_a_pause_held_passes_as_one_stretch(store: Store) -> None:
    at = second(store) - 130
    put(store, "report", at)
    pause(store)
    assert fire(store, resume(at)) == [OK]
    found = hash_of(store)
    assert (found["state"], found["next_run"], found["skip_count"]) == ("active", text(at + 180), "3")
    assert not {name for name in found if name.startswith("pause")}
    assert (score(store), index(store, "paused")) == ((at + 180) * 1000, set())
    assert types(store)[:3] == ["resumed", "skipped", "paused"]
    skipped = lines(store)[1]
    assert (skipped["tick"], skipped["last"], skipped["count"], skipped["reason"]) == (
        text(at),
        text(at + 120),
        3,
        "paused",
    )
    assert fire(store, resume(at)) == [Reply("STALE")]
    assert queued(store) == []


def test_what_is_to_be_caught_up_with_is_due_at_once(store: Store) -> None:
    at = second(store) - 130
    put(store, "report", at)
    pause(store)
    assert fire(store, resume(at, next=text(at), next_due=at * 1000, number=0, last="")) == [OK]
    assert (hash_of(store)["next_run"], hash_of(store)["skip_count"], score(store)) == (text(at), "0", at * 1000)


@shows("fire", "EARLY", "CHANGED", "INACTIVE", "STALE")
def test_a_pause_ends_by_itself_only_when_it_ends(store: Store) -> None:
    now = second(store)
    put(store, "report", now - 130)
    pause(store, untl=text(now + 600))
    before = everything(store)
    assert fire(store, resume(now - 130, reason=text(now + 600)))[0].code == "EARLY"
    assert fire(store, resume(now - 130, reason=text(now - 60))) == [Reply("CHANGED")]  # somebody has made it longer
    assert fire(store, resume(now - 70, reason=""))[0].code == "STALE"
    assert fire(store, resume(now - 130, rev="r9"))[0].code == "CHANGED"
    assert not changed(before, store)
    put(store, "other", now - 130)
    assert fire(store, resume(now - 130)._replace(id="other")) == [Reply("INACTIVE", "active")]


def test_a_tick_that_was_claimed_before_the_pause_is_not_fired(store: Store) -> None:
    at = put_and_claim(store)
    until = second(store) + 600
    pause(store, untl=text(until))
    assert fire(store, verdict(at), token=hash_token(store)) == [Reply("INACTIVE", "paused")]
    assert score(store) == until * 1000  # it is looked at again when the pause ends
    assert queued(store) == []


def hash_token(store: Store) -> str:
    found: Any = store.client.get("beat:lock:report")
    return str(found.decode())


# --- manual ----------------------------------------------------------------------------------------------------------


def manual(job: str = "beat_report_m1", **changes: Any) -> Item:
    run = job_template.run_block(Run("report", None, "manual"), "pickle")
    made = Item("manual", "report", REV, job=job, queue=QUEUE, run=run, by="manual", number=3600)
    return made._replace(**changes)


def test_a_manual_run_is_enqueued_and_moves_nothing(store: Store) -> None:
    at = second(store) + 600
    put(store, "report", at)
    assert fire(store, manual()) == [OK]
    found = hash_of(store)
    assert (found["next_run"], found["run_count"], found["manual_count"], found["last_job"]) == (
        text(at), "1", "1", "beat_report_m1",
    )  # fmt: skip
    assert "last_run" not in found
    assert (score(store), queued(store)) == (at * 1000, ["beat_report_m1"])
    line = lines(store)[0]
    assert (line["type"], line["tick"], line["by"], line["beat"], line["n"]) == ("enqueued", None, "manual", "ann", 1)
    assert store.client.zscore("beat:open", "beat_report_m1")
    assert 3000 < int(store.client.ttl("beat:request:beat_report_m1")) <= 3600


@shows("fire", "STALE")
def test_a_manual_run_that_is_asked_for_again_was_enqueued_once(store: Store) -> None:
    put(store, "report", second(store) + 600)
    assert fire(store, manual()) == [OK]
    before = everything(store)
    assert fire(store, manual()) == [Reply("STALE", "beat_report_m1")]
    assert not changed(before, store)


@pytest.mark.parametrize("state", ["paused", "disabled", "finished", "retired"])
def test_a_manual_run_needs_no_active_schedule(store: Store, state: str) -> None:
    put(store, "report", second(store) + 600, state=state)
    assert fire(store, manual()) == [OK]
    assert hash_of(store)["state"] == state


def test_a_manual_run_may_have_other_arguments(store: Store) -> None:
    put(store, "report", second(store) + 600)
    assert fire(store, manual(data=b"others")) == [OK]
    assert store.client.hget("rq:job:beat_report_m1", "data") == b"others"


@shows("fire", "FULL")
def test_a_manual_run_finds_no_room_while_another_goes_on(store: Store) -> None:
    put(store, "report", second(store) + 600)
    assert fire(store, manual(slot="skip 1 0 cleared")) == [OK]
    before = everything(store)
    assert fire(store, manual("beat_report_m2", slot="skip 1 0 cleared")) == [Reply("FULL", "beat_report_m1")]
    assert not changed(before, store)
    assert fire(store, manual("beat_report_m3")) == [OK]  # by force


def test_a_manual_run_may_take_the_place_of_the_next_tick(store: Store) -> None:
    at = second(store) + 600
    put(store, "report", at)
    item = manual(last=text(at), next=text(at + 60), next_due=(at + 60) * 1000)
    assert fire(store, item) == [OK]
    found = hash_of(store)
    assert (found["next_run"], found["skip_count"], score(store)) == (text(at + 60), "1", (at + 60) * 1000)
    assert (found["kept"], found["skips"]) == ("2", "instead 1")
    skipped = lines(store)[0]
    assert (skipped["type"], skipped["tick"], skipped["reason"], skipped["behind"]) == (
        "skipped", text(at), "instead", "beat_report_m1",
    )  # fmt: skip


@shows("fire", "CHANGED", "INACTIVE", "BADARG")
def test_a_manual_run_that_was_prepared_for_something_else_is_refused(store: Store) -> None:
    at = second(store) + 600
    put(store, "report", at)
    instead: Any = {"next": text(at + 60), "next_due": (at + 60) * 1000}
    before = everything(store)
    assert fire(store, manual(rev="r9")) == [Reply("CHANGED")]
    assert fire(store, manual(last=text(at - 60), **instead)) == [Reply("CHANGED")]
    assert fire(store, manual(number="soon"))[0].code == "BADARG"
    assert fire(store, manual(last=text(at), next=text(at), next_due=at * 1000))[0].code == "BADARG"
    pause(store)
    assert fire(store, manual(last=text(at), **instead)) == [Reply("INACTIVE", "paused")]
    assert "rq:queue:default" not in changed(before, store)


# --- defer -----------------------------------------------------------------------------------------------------------


def defer(store: Store, tick: int, to: int, **changes: Any) -> Reply:
    given = {"schedule_id": "report", "rev": REV, "tick": text(tick), "due_at": text(to), "version": "", "by": "ann"}
    return Operations(store).defer(**{**given, **changes})


@shows("defer", "OK")
@pytest.mark.parametrize("by", [-30, 30])
def test_the_next_tick_is_due_at_another_time(store: Store, by: int) -> None:
    at = second(store) + 60
    put(store, "report", at)
    assert defer(store, at, at + by) == OK
    found = hash_of(store)
    assert (found["next_run"], found["due_at"], found["moved_by"]) == (text(at), text(at + by), "ann")
    [claimed] = claim(store, lookahead=100_000).claims
    assert (claimed.tick, claimed.due, claimed.mark) == (text(at), (at + by) * 1000, "moved")
    line = lines(store)[0]
    assert (line["type"], line["tick"], line["until"], line["beat"]) == ("deferred", text(at), text(at + by), "ann")


def test_a_tick_that_was_moved_fires_once_and_the_mark_goes_with_it(store: Store) -> None:
    now = second(store)
    put(store, "report", now + 60)
    defer(store, now + 60, now + 30)
    store.client.hset("beat:schedule:report", "due_at", text(now - 1))  # the time has come
    store.client.zadd("beat:due", {"report": (now - 1) * 1000})
    [claimed] = claim(store).claims
    item = verdict(now + 60)._replace(due=claimed.due)
    assert fire(store, item, token=hash_token(store)) == [OK]
    assert queued(store) == [f"beat_report_{now + 60}"]
    assert claim(store, lookahead=200_000).claims[0].mark == ""


@shows("defer", "PAST", "GONE", "CHANGED", "INACTIVE", "CONFLICT", "BADTYPE")
def test_a_tick_that_cannot_be_moved_stays(store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at)
    before = everything(store)
    assert defer(store, at, at - 120).code == "PAST"
    assert defer(store, at - 60, at + 30).code == "CHANGED"
    assert defer(store, at, at + 30, rev="r9").code == "CHANGED"
    assert defer(store, at, at + 30, version="7") == Reply("CONFLICT", "1")
    assert defer(store, at, at + 30, schedule_id="nobody").code == "GONE"
    assert not changed(before, store)
    pause(store)
    assert defer(store, at, at + 30) == Reply("INACTIVE", "paused")
    store.client.set("beat:schedule:text", "text")
    assert defer(store, at, at + 30, schedule_id="text").code == "BADTYPE"
    store.client.delete("beat:schedule:text")


# --- remove ----------------------------------------------------------------------------------------------------------


def remove(store: Store, *ids: str, version: str = "", **given: Any) -> list[Reply]:
    return Operations(store).remove([(each, version) for each in ids or ("report",)], by="ann", **given)


@shows("remove", "OK", "GONE")
def test_a_removed_schedule_leaves_an_event_and_nothing_else(store: Store) -> None:
    put(store, "report", second(store) + 60)
    pause(store)
    assert remove(store) == [OK]
    keys: Any = store.client.keys("beat:*")
    assert {each.decode() for each in keys} <= {"beat:events", "beat:meta"}
    newest: Any = store.client.xrevrange("beat:events", count=1)
    [(_, event)] = newest
    assert (event[b"type"], event[b"schedule"], event[b"by"]) == (b"removed", b"report", b"ann")
    assert remove(store) == [Reply("GONE")]


@pytest.mark.parametrize("name", ["failing", "overridden", "monitored"])
def test_a_removed_schedule_leaves_every_index(store: Store, name: str) -> None:
    put(store, "report", second(store) + 60)
    put(store, "other", second(store) + 60)
    store.client.sadd(f"beat:in:{name}", "report", "other")
    assert remove(store) == [OK]
    assert index(store, name) == {"other"}


@shows("remove", "DECLARED", "INACTIVE", "CONFLICT")
def test_what_a_live_beat_declares_is_not_removed(store: Store) -> None:
    put(store, "report", second(store) + 60)
    store.announce({"report": REV}, digest="d", ttl=10_000)
    before = everything(store)
    assert remove(store) == [Reply("DECLARED")]
    assert remove(store, state="retired") == [Reply("INACTIVE", "active")]
    assert remove(store, version="7") == [Reply("CONFLICT", "1")]
    assert not changed(before, store)


# --- register: from data, by an operator, under another id -----------------------------------------------------------


def seen(store: Store, schedule_id: str = "report") -> dict[str, Any]:
    found = hash_of(store, schedule_id)
    return {
        f"seen_{name}": found.get(of, "") for name, of in (("rev", "rev"), ("next", "next_run"), ("state", "state"))
    }


@shows("register", "HIDDEN", "NEW")
def test_only_what_an_application_exposes_is_scheduled_from_data(store: Store) -> None:
    item = registration(at=second(store) + 60, origin="api", func="os.system")
    assert store.register([item], beat="ann") == [Reply("HIDDEN", "os.system")]
    assert hash_of(store) == {}
    store.announce({}, ["app.report"], digest="d", ttl=10_000)
    assert store.register([item._replace(func="app.report")], beat="ann") == [Reply("NEW")]
    assert hash_of(store)["source"] == "api"


@shows("register", "TAKEN", "CONFLICT")
@pytest.mark.parametrize(("first", "second_one"), [("code", "api"), ("api", "code")])
def test_neither_code_nor_data_takes_the_others_id(store: Store, first: str, second_one: str) -> None:
    at = second(store) + 60
    store.announce({}, ["f"], digest="d", ttl=10_000)
    assert store.register([registration(at=at, origin=first, func="f")], beat="ann") == [Reply("NEW")]
    before = everything(store)
    again: Any = {**seen(store), "rev": "r2", "next": "keep", "func": "f"}
    assert store.register([registration(**again, origin=second_one)], beat="ann") == [Reply("TAKEN", first)]
    assert store.register([registration(**again, origin=first, version="7")], beat="ann") == [Reply("CONFLICT", "1")]
    assert not changed(before, store)


def test_an_operators_rule_leaves_the_template_and_the_codes_revs_alone(store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at)
    fields = {"override": '{"every":"1h"}', "declared_rev": REV, "overridden_by": "ann"}
    given: Any = {**seen(store), "rev": "r2", "next": text(at + 60), "next_due": (at + 60) * 1000}
    item = registration(**given, origin="operator", fields=fields, template={})
    assert store.register([item], beat="ann") == [Reply("MOVED", text(at))]
    found = hash_of(store)
    assert (found["rev"], found["revs"], found["source"], found["version"]) == ("r2", REV, "code", "2")
    assert store.client.hgetall("beat:template:report") == {k.encode(): v for k, v in TEMPLATE.items()}
    assert index(store, "overridden") == {"report"}
    assert lines(store)[0]["type"] == "rescheduled"
    back: Any = {**seen(store), "rev": REV, "next": text(at), "next_due": at * 1000}
    store.register([registration(**back, origin="operator", fields={}, template={})], beat="ann")
    assert (index(store, "overridden"), lines(store)[0]["type"]) == (set(), "reset")
    assert not {"override", "declared_rev", "overridden_by"} & hash_of(store).keys()


def test_what_repair_finds_stands_in_the_sets(store: Store) -> None:
    put(store, "report", second(store) + 60, state="paused", consecutive_failures="3", override="{}")
    put(store, "other", second(store) + 60)
    store.client.sadd("beat:in:failing", "other", "gone")
    store.client.sadd("beat:schedules", "gone")
    store.repair(["report", "other", "gone"])
    assert (index(store, "paused"), index(store, "failing"), index(store, "overridden")) == ({"report"},) * 3
