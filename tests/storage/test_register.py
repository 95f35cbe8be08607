"""Registering: definitions come into Redis by compare-and-set; the newest wins, and no tick that is due is moved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from beat.jobs import job_template
from beat.schedule import serialize
from beat.storage.messages import Reply
from beat.storage.script_keys import FORMAT
from beat.timing.interval import Every
from tests.support.builders import (
    FIELDS,
    REV,
    RULE,
    TEMPLATE,
    changed,
    everything,
    hash_of,
    put,
    registration,
    schedule,
    score,
    second,
    shows,
    text,
)

if TYPE_CHECKING:
    from beat.storage.messages import Registration
    from beat.storage.store import Store

SCHEDULE, JOB = "beat:schedule:report", "beat:template:report"
SOON = 3_600
"""A tick that is not due during a test, in seconds from now."""


def register(store: Store, *items: Registration) -> list[Reply]:
    return store.register(items, beat="tests")


def again(store: Store, **changes: Any) -> Registration:
    """The same schedule with another definition, by a beat that has seen what Redis holds now."""
    seen = hash_of(store)
    known = {f"seen_{name}": seen.get(field, "") for name, field in
             {"rev": "rev", "next": "next_run", "state": "state"}.items()}  # fmt: skip
    return registration(**{"rev": "r2", "next": "keep", **known, **changes})


def events(store: Store) -> list[dict[str, str]]:
    found: Any = store.client.xrange(store.keys.events)
    return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in found]


def ledger(store: Store) -> list[dict[str, Any]]:
    found: Any = store.client.lrange(store.keys.runs("report"), 0, -1)
    return [json.loads(line) for line in found]


# --- new -------------------------------------------------------------------------------------------------------------


@shows("register", "NEW")
def test_a_new_schedule_is_written_whole(store: Store) -> None:
    at = second(store) + SOON
    fields = {"func": "app.report", "cron": "0 * * * *", "tz": "UTC", "priority": "high", "definition": "{…}"}
    assert register(store, registration("report", at, fields=fields)) == [Reply("NEW")]
    state = hash_of(store)
    assert state.pop("created_at") == state.pop("updated_at")
    assert state == {
        **fields,
        "rev": REV,
        "revs": REV,
        "rule": RULE,
        "state": "active",
        "next_run": text(at),
        "due_at": text(at),
        "run_count": "0",
        "skip_count": "0",
        "version": "1",
        "source": "code",
        "app": "default",
        "kept": "0",
    }
    assert store.client.hgetall(JOB) == {name.encode(): value for name, value in TEMPLATE.items()}
    assert score(store) == at * 1000
    assert store.client.smembers("beat:schedules") == {b"report"}
    assert store.client.hget("beat:meta", "format") == str(FORMAT).encode()
    ((event, line),) = zip(events(store), ledger(store), strict=True)
    assert line == {
        "type": "registered", "rev": REV, "rule": json.loads(RULE), "was": None, "from": "", "next": text(at),
        "at": hash_of(store)["created_at"], "beat": "tests",
    }  # fmt: skip
    assert {**event, "entry": json.loads(event["entry"])} == {
        "type": "registered", "schedule": "report", "tick": text(at), "job": "", "by": "tests", "entry": line,
    }  # fmt: skip


def test_a_page_is_registered_in_one_step_each_with_its_own_fields(store: Store) -> None:
    at = second(store) + SOON
    items = [
        registration(f"s{n}", at + n, fields={f"x{i}": f"{n}.{i}" for i in range(n)}, template={"data": b"%d" % n})
        for n in range(50)
    ]
    assert register(store, *items) == [Reply("NEW")] * 50
    for n in range(50):
        state = hash_of(store, f"s{n}")
        assert {name: value for name, value in state.items() if name[0] == "x"} == items[n].fields
        assert store.client.hgetall(f"beat:template:s{n}") == {b"data": b"%d" % n}
        assert score(store, f"s{n}") == (at + n) * 1000


@pytest.mark.parametrize("state", ["disabled", "finished"])
def test_a_new_one_that_is_not_active_is_not_in_the_index(state: str, store: Store) -> None:
    at = second(store) + SOON if state == "disabled" else None
    assert register(store, registration("report", at, state=state)) == [Reply("NEW")]
    assert hash_of(store)["state"] == state
    assert ("next_run" in hash_of(store)) == (state == "disabled")
    assert score(store) is None


def test_a_hash_that_somebody_left_without_a_definition_keeps_its_counts(store: Store) -> None:
    store.client.hset(SCHEDULE, mapping={"run_count": 7, "skip_count": 2})
    assert register(store, registration("report", second(store) + SOON)) == [Reply("NEW")]
    assert (hash_of(store)["run_count"], hash_of(store)["skip_count"]) == ("7", "2")


# --- another definition ----------------------------------------------------------------------------------------------


@shows("register", "UPDATED")
def test_another_definition_replaces_the_old_and_leaves_the_next_tick(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at, last_run=text(at - 60), run_count=5, updated_at="long ago", created_at="at first")
    assert register(store, again(store, fields={"queue": "other"})) == [Reply("UPDATED")]
    state = hash_of(store)
    assert (state["rev"], state["queue"], state["version"], state["created_at"]) == ("r2", "other", "2", "at first")
    assert (state["next_run"], state["due_at"], state["last_run"]) == (text(at), text(at), text(at - 60))
    assert (state["run_count"], state["skip_count"]) == ("5", "0")
    assert state["updated_at"] != "long ago"
    assert score(store) == at * 1000
    line, _ = ledger(store)
    assert line == {
        "type": "updated", "rev": "r2", "rule": json.loads(RULE), "was": json.loads(RULE), "from": text(at),
        "next": text(at), "at": state["updated_at"], "beat": "tests",
    }  # fmt: skip
    assert [event["type"] for event in events(store)] == ["registered", "updated"]
    assert json.loads(events(store)[-1]["entry"]) == line


@shows("register", "UPDATED", "MOVED")
def test_the_reply_has_the_former_definition(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at, definition='{"every": "1m"}')
    assert register(store, again(store)) == [Reply("UPDATED", '{"every": "1m"}')]
    moved = again(store, rev="r3", next=text(at + 600), next_due=(at + 600) * 1000)
    assert register(store, moved) == [Reply("MOVED", f'{text(at)} {{"every": "1m"}}')]
    store.client.hdel(SCHEDULE, "next_run", "due_at")
    moved = again(store, rev="r4", next=text(at + 900), next_due=(at + 900) * 1000)
    assert register(store, moved) == [Reply("MOVED", ' {"every": "1m"}')]
    store.client.hset(SCHEDULE, "definition", "x" * 16_385)
    assert register(store, again(store, rev="r5")) == [Reply("UPDATED")]


@shows("register", "MOVED")
def test_another_timing_moves_the_next_tick_and_says_from_where(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at)
    hourly = serialize.ticks(schedule(timing=Every("1h")))
    moved = again(store, next=text(at + 600), next_due=(at + 600) * 1000, rule=hourly)
    assert register(store, moved) == [Reply("MOVED", text(at))]
    state = hash_of(store)
    assert (state["next_run"], state["due_at"]) == (text(at + 600), text(at + 600))
    assert score(store) == (at + 600) * 1000
    assert state["rule"] == hourly
    line, _ = ledger(store)
    assert line == {
        "type": "moved", "rev": "r2", "rule": json.loads(hourly), "was": json.loads(RULE), "from": text(at),
        "next": text(at + 600), "at": state["updated_at"], "beat": "tests",
    }  # fmt: skip
    event = events(store)[-1]
    assert (event["type"], event["tick"], event["by"]) == ("moved", text(at + 600), "tests")
    assert json.loads(event["entry"]) == line


def test_the_same_tick_again_is_no_move(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at)
    assert register(store, again(store, next=text(at), next_due=at * 1000)) == [Reply("UPDATED")]


@shows("register", "UPDATED")
def test_a_tick_that_is_due_is_never_moved(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    later = at + SOON
    assert register(store, again(store, next=text(later), next_due=later * 1000)) == [Reply("UPDATED")]
    state = hash_of(store)
    assert (state["rev"], state["next_run"], state["due_at"]) == ("r2", text(at), text(at))
    assert score(store) == at * 1000


def test_the_tick_that_is_due_comes_before_the_end(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    assert register(store, again(store, next="", state="finished")) == [Reply("UPDATED")]
    assert (hash_of(store)["state"], hash_of(store)["next_run"]) == ("active", text(at))
    assert score(store) == at * 1000


def test_a_schedule_that_ends_before_its_next_tick_has_none(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at)
    assert register(store, again(store, next="", state="finished")) == [Reply("MOVED", text(at))]
    assert hash_of(store)["state"] == "finished"
    assert not {"next_run", "due_at"} & hash_of(store).keys()
    assert score(store) is None


@pytest.mark.parametrize("ago", [-SOON, 10], ids=["not due", "due"])
def test_a_disabled_schedule_leaves_the_index(ago: int, store: Store) -> None:
    put(store, "report", second(store) - ago)
    assert register(store, again(store, state="disabled")) == [Reply("UPDATED")]
    assert hash_of(store)["state"] == "disabled"
    assert score(store) is None


def test_an_enabled_schedule_comes_back_into_the_index(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at)
    register(store, again(store, state="disabled"))
    assert register(store, again(store, rev="r3", next=text(at + 60), next_due=(at + 60) * 1000))[0].code == "MOVED"
    assert (hash_of(store)["state"], score(store)) == ("active", (at + 60) * 1000)


def test_what_was_garbled_goes_on_where_it_is_told(store: Store) -> None:
    at = second(store) + SOON
    put(store, "report", at, next_run="abc", due_at="def")
    assert register(store, again(store, next=text(at), next_due=at * 1000)) == [Reply("MOVED", "abc")]
    assert (hash_of(store)["next_run"], hash_of(store)["due_at"], score(store)) == (text(at), text(at), at * 1000)


def test_the_template_is_replaced_whole(store: Store) -> None:
    put(store, "report", second(store) + SOON)
    store.client.hset(JOB, "stranger", "1")
    template = job_template.template(schedule(queue="other"))
    register(store, again(store, template=template))
    assert store.client.hgetall(JOB) == {name.encode(): value for name, value in template.items()}


def test_a_template_that_was_no_hash_is_replaced(store: Store) -> None:
    put(store, "report", second(store) + SOON)
    store.client.delete(JOB)
    store.client.set(JOB, "garbage")
    assert register(store, again(store)) == [Reply("UPDATED")]
    assert store.client.type(JOB) == b"hash"


def test_an_expression_that_became_a_period_is_not_left_behind(store: Store) -> None:
    register(store, registration("report", second(store) + SOON, fields={"cron": "0 * * * *"}))
    register(store, again(store, fields={"every": "1h"}))
    assert "cron" not in hash_of(store)
    assert hash_of(store)["every"] == "1h"


def test_the_version_grows_with_every_change(store: Store) -> None:
    put(store, "report", second(store) + SOON)
    for n in range(2, 6):
        register(store, again(store, rev=f"r{n}"))
        assert hash_of(store)["version"] == str(n)
    store.client.hset(SCHEDULE, "version", "garbage")
    register(store, again(store, rev="r9"))
    assert hash_of(store)["version"] == "1"


def test_the_last_ten_definitions_are_remembered_newest_first(store: Store) -> None:
    put(store, "report", second(store) + SOON)
    for n in range(2, 15):
        register(store, again(store, rev=f"r{n}"))
    assert hash_of(store)["revs"].split() == [f"r{n}" for n in range(14, 4, -1)]
    register(store, again(store, rev="r9"))
    assert hash_of(store)["revs"].split() == ["r9", "r14", "r13", "r12", "r11", "r10", "r8", "r7", "r6", "r5"]


def test_the_events_are_bounded(store: Store) -> None:
    put(store, "report", second(store) + SOON)
    with store.client.pipeline(transaction=False) as pipe:
        for _ in range(12_000):
            pipe.xadd(store.keys.events, {"type": "old"})
        pipe.execute()
    register(store, again(store))
    assert 10_000 <= store.client.xlen(store.keys.events) < 10_500
    assert events(store)[-1]["type"] == "updated"


# --- older, newer ----------------------------------------------------------------------------------------------------


def put_newer(store: Store) -> None:
    """A schedule of which r1 and then r2 were registered."""
    put(store, "report", second(store) + SOON)
    assert register(store, again(store))[0].code == "UPDATED"


@shows("register", "OLDER")
def test_an_older_definition_is_held_while_a_live_beat_announces_a_newer_one(store: Store) -> None:
    put_newer(store)
    store.announce({"other": "r0"}, digest="stranger", ttl=60_000)
    store.announce({"report": "r2"}, digest="new", ttl=60_000)
    before = everything(store)
    held = register(store, again(store, rev="r1"))
    assert held == [Reply("OLDER", "r2")]
    assert not changed(before, store)


def test_an_older_definition_comes_back_when_nobody_announces_a_newer_one(store: Store) -> None:
    put_newer(store)
    store.announce({"report": "r1"}, digest="old", ttl=60_000)
    assert register(store, again(store, rev="r1")) == [Reply("UPDATED")]
    assert (hash_of(store)["rev"], hash_of(store)["revs"]) == ("r1", "r1 r2")


def test_an_unknown_definition_is_newer_whatever_is_announced(store: Store) -> None:
    put_newer(store)
    store.announce({"report": "r2"}, digest="new", ttl=60_000)
    assert register(store, again(store, rev="r3")) == [Reply("UPDATED")]


def test_the_present_definition_is_not_held(store: Store) -> None:
    put_newer(store)
    register(store, again(store, rev="r3"))
    register(store, again(store, rev="r2"))
    store.announce({"report": "r3"}, digest="late", ttl=60_000)
    assert register(store, again(store, rev="r2", state="disabled")) == [Reply("UPDATED")]


def test_an_announcement_that_is_no_hash_holds_nobody(store: Store) -> None:
    put_newer(store)
    store.announce({"report": "r2"}, digest="new", ttl=60_000)
    store.client.set("beat:announced:new", "garbage", px=60_000)
    assert register(store, again(store, rev="r1")) == [Reply("UPDATED")]


@pytest.mark.parametrize("written", [str(FORMAT + 1), "99", "abc"])
@shows("register", "NEWER")
def test_what_a_newer_beat_wrote_is_left_alone(written: str, store: Store) -> None:
    store.client.hset("beat:meta", "format", written)
    before = everything(store)
    items = [registration("report", second(store) + SOON), registration("other")]
    assert [reply.code for reply in register(store, *items)] == ["NEWER", "NEWER"]
    assert not changed(before, store)


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [{"seen_rev": "r0"}, {"seen_next": ""}, {"seen_state": "paused"}])
@shows("register", "RETRY")
def test_what_changed_meanwhile_is_to_be_looked_at_again(seen: dict[str, str], store: Store) -> None:
    put(store, "report", second(store) + SOON)
    before = everything(store)
    assert register(store, again(store, **seen)) == [Reply("RETRY")]
    assert not changed(before, store)


@pytest.mark.parametrize("decided", ["last_run", "last_skip"])
@shows("register", "RETRY")
def test_a_tick_that_was_decided_does_not_come_back(decided: str, store: Store) -> None:
    """Another definition decided it, and was replaced: all is again as it was when this was prepared."""
    at = second(store) + SOON
    put(store, at=at + 60, **{decided: text(at)})
    before = everything(store)
    assert register(store, again(store, next=text(at), next_due=at * 1000)) == [Reply("RETRY")]
    assert not changed(before, store)
    [reply] = register(store, again(store, next=text(at + 1), next_due=(at + 1) * 1000))
    assert reply.code == "MOVED"


def test_of_two_that_register_a_new_schedule_the_second_looks_again(store: Store) -> None:
    item = registration("report", second(store) + SOON)
    assert register(store, item, item) == [Reply("NEW"), Reply("RETRY")]


@pytest.mark.parametrize("counter", ["run_count", "skip_count"])
@shows("register", "BADSTATE")
def test_a_counter_that_is_no_number_waits_for_a_person(counter: str, store: Store) -> None:
    put(store, "report", second(store) + SOON)
    store.client.hset(SCHEDULE, counter, "abc")
    before = everything(store)
    assert register(store, again(store)) == [Reply("BADSTATE", f"{counter} is not a number: abc")]
    assert not changed(before, store)


@shows("register", "BADTYPE")
def test_a_schedule_that_is_no_hash_is_refused_alone(store: Store) -> None:
    store.client.set(SCHEDULE, "garbage")
    before, at = everything(store), second(store) + SOON
    replies = register(store, registration("a", at), registration("report", at), registration("b", at))
    assert replies == [Reply("NEW"), Reply("BADTYPE", f"{SCHEDULE} is a string, not a hash"), Reply("NEW")]
    assert SCHEDULE not in changed(before, store)
    assert score(store) is None
    assert not store.client.exists(JOB)


@shows("register", "BADTYPE")
def test_a_ledger_that_is_none_is_refused_alone(store: Store) -> None:
    store.client.set("beat:runs:report", "garbage")
    before, at = everything(store), second(store) + SOON
    replies = register(store, registration("a", at), registration("report", at), registration("b", at))
    assert replies == [Reply("NEW"), Reply("BADTYPE", "beat:runs:report is a string, not a list"), Reply("NEW")]
    assert not changed(before, store) & {SCHEDULE, JOB, "beat:runs:report"}
    assert score(store) is None
    store.client.delete("beat:runs:report")


@pytest.mark.parametrize("garbage", ["", "garbage", "[]", "{\n}", '{"every":"1m"', None])
def test_a_rule_that_somebody_garbled_is_not_carried_into_the_ledger(garbage: str | None, store: Store) -> None:
    put(store, "report", second(store) + SOON)
    if garbage is None:
        store.client.hdel(SCHEDULE, "rule")
    else:
        store.client.hset(SCHEDULE, "rule", garbage)
    assert register(store, again(store)) == [Reply("UPDATED")]
    assert (ledger(store)[0]["type"], ledger(store)[0]["was"]) == ("updated", None)
    assert hash_of(store)["rule"] == RULE


@pytest.mark.parametrize("name", ['web "2"', "back\\slash", "nul\x00", "é 🎉"])
def test_whatever_a_beat_is_called_the_line_is_json(name: str, store: Store) -> None:
    assert store.register([registration("report", second(store) + SOON)], beat=name) == [Reply("NEW")]
    assert ledger(store)[0]["beat"] == name


@pytest.mark.parametrize(
    ("key", "kind"),
    [("beat:schedules", "set"), ("beat:due", "zset"), ("beat:meta", "hash"), ("beat:events", "stream")],
)
@shows("register", "BADTYPE")
def test_a_key_of_the_wrong_type_refuses_the_page_before_any_write(key: str, kind: str, store: Store) -> None:
    store.client.set(key, "garbage")
    before, at = everything(store), second(store) + SOON
    replies = register(store, registration("report", at), registration("other", at))
    assert replies == [Reply("BADTYPE", f"{key} is a string, not a {kind}")] * 2
    assert not changed(before, store)


def test_a_tick_that_is_held_back_is_not_moved_either(store: Store) -> None:
    """By its jitter, or while others are caught up with: its time has come, and it must have its verdict."""
    at, later = second(store) - 60, second(store) + 600
    put(store, at=at, due_at=text(later))
    known = registration(at=at)
    [reply] = store.register(
        [
            known._replace(
                rev="r2", seen_rev=known.rev, seen_next=text(at), seen_state="active", next=text(later + 60),
                next_due=(later + 60) * 1000,
            )
        ],
        beat="tests",
    )  # fmt: skip
    assert reply.code == "UPDATED"
    assert (hash_of(store)["next_run"], hash_of(store)["due_at"]) == (text(at), text(later))


def test_the_verdicts_of_a_ledger_that_was_left_behind_are_yet_to_be_counted(store: Store) -> None:
    store.client.lpush("beat:runs:report", '{"type":"enqueued"}')
    put(store, at=second(store) + SOON)
    assert "kept" not in hash_of(store)


def test_what_jobs_begin_with_goes_when_they_need_more_than_that(store: Store) -> None:
    put(store, at=second(store) + SOON)
    assert hash_of(store)["job_meta"] == f"{REV} {TEMPLATE['meta'].hex()}"
    changed = again(store, fields=FIELDS, template={**TEMPLATE, "ttl": b"500"})
    assert [reply.code for reply in register(store, changed)] == ["UPDATED"]
    assert "job_meta" not in hash_of(store)
