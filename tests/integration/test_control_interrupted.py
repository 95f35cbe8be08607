"""What operators do is done whole or not at all, and no tick is forgotten on the way: on a real Redis."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis, exceptions

from beat import Client
from beat.errors import Conflict, Refused
from beat.storage import connection, scripts
from beat.storage.keys import Keys
from beat.storage.messages import Item
from beat.storage.operations import Operations, Stretch
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.interval import Every
from tests.integration.test_control import FUNC, HOURLY, deploy, late, lines, sound
from tests.support.builders import (
    REV,
    TOKEN,
    changed,
    claim,
    everything,
    hash_of,
    put,
    put_and_claim,
    queued,
    registration,
    schedule,
    second,
    shows,
    text,
    verdict,
)
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from beat.dev.embedded import PrivateRedis


@pytest.fixture
def client(server: PrivateRedis, store: Store) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url, by="ann")


# --- no error after the first write ----------------------------------------------------------------------------------


def ended(at: int, schedule_id: str) -> Item:
    """A pause is over, and the one tick that it held passes."""
    return Item("resume", schedule_id, REV, text(at), 0, text(at + 60), (at + 60) * 1000, number=1, last=text(at))


def test_a_version_that_is_no_number_tears_no_page(store: Store) -> None:
    at = second(store) - 10
    put(store, "first", at)
    put(store, "paused", at, state="paused", version="many")
    claim(store)
    store.fire([verdict(at, "first"), ended(at, "paused")], token=TOKEN)
    assert queued(store) == [f"beat_first_{at}"]
    assert (hash_of(store, "paused")["state"], hash_of(store, "paused")["version"]) == ("active", "1")


@pytest.mark.parametrize("name", ["paused", "disabled", "finished", "retired", "broken"])
def test_an_index_that_is_no_set_tears_no_page(store: Store, name: str) -> None:
    at = second(store) - 10
    put(store, "first", at)
    put(store, "last", at)
    claim(store)
    store.client.set(store.keys.index(name), "strange")
    store.fire([verdict(at, "first"), verdict(at, "last", following=None)], token=TOKEN)
    assert len(queued(store)) == 2
    assert hash_of(store, "last")["state"] == "finished"
    store.repair(["first", "last"])
    assert store.client.type(store.keys.index(name)) in {b"set", b"none"}


def test_a_version_that_is_no_number_keeps_nothing_from_being_retired(store: Store) -> None:
    put(store, at=second(store) - 10, version="many")
    tick = hash_of(store)["next_run"]
    item = Stretch("report", tick, tick, 1, text(second(store) + 50))
    [reply] = Operations(store).retire([item], beat="web-1", app="", retire_after=0)
    assert reply.code == "OK"
    assert (hash_of(store)["state"], hash_of(store)["version"]) == ("retired", "1")


FIRST, FAR = "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
READS = {"type", "time", "hget", "hmget", "exists", "zrangebyscore", "zscore", "lrange", "hexists", "zrange"}
STEPS: dict[str, Callable[[Store], Any]] = {
    "pause": lambda store: Operations(store).pause([("report", "")], by="ann", untl=FAR, reason="x"),
    "remove": lambda store: Operations(store).remove([("report", "")], by="ann"),
    "retire": lambda store: Operations(store).retire(
        [Stretch("report", FIRST, FIRST, 1, FAR)],
        beat="web-1",
        app="",
        retire_after=0,
    ),
    "defer": lambda store: Operations(store).defer(
        schedule_id="report",
        rev=REV,
        tick=FIRST,
        due_at=FAR,
        version="",
        by="ann",
    ),
    "register": lambda store: store.register(
        [
            registration("report", seen_rev=REV, seen_state="active", next="keep", seen_next=FIRST),
            registration("other", 4_000_000_000),
        ],
        beat="web-1",
    ),
}  # fmt: skip
UNUSED = {
    "pause": {"del"},
    "remove": {"hset", "lpush", "ltrim", "rpop", "sadd", "zadd"},
    "retire": {"zadd", "del"},
}
"""What stands in the parts that a script includes, and is not called there."""
BARRED = [
    (name, each)
    for name, each in itertools.chain.from_iterable(
        ((name, each) for each in sorted(scripts.script(name).commands - READS)) for name in STEPS
    )
]


@pytest.mark.parametrize(("name", "command"), BARRED)
def test_who_may_not_do_all_of_a_step_does_none_of_it(
    server: PrivateRedis, store: Store, name: str, command: str
) -> None:
    at = clock.to_ms(clock.read(FIRST)) // 1000
    put(store, at=at)
    store.client.zadd(store.keys.waiting("report"), {f"report {text(at - 60)} scheduler": at})
    admin: Any = store.client
    admin.execute_command("ACL", "SETUSER", "less", "reset", "on", "nopass", "~*", "&*", "+@all", f"-{command}")
    before = everything(store)
    with Redis.from_url(server.url, username="less", password="any") as barred:  # noqa: S106 (it has none)
        try:
            STEPS[name](Store(barred, Keys()))
        except (*connection.Errors, exceptions.ResponseError):
            assert changed(before, store) == set()
        else:
            assert command in UNUSED.get(name, ())
        finally:
            admin.acl_deluser("less")


# --- no tick is forgotten, and none comes too early ------------------------------------------------------------------


def test_what_a_pause_holds_is_told_though_the_rule_changes_meanwhile(client: Client, store: Store) -> None:
    first = late(store, schedule(timing=Every("1m")))
    client.pause("report")
    assert client.reschedule("report", every="2h", dry_run=True).next_run == first
    assert client.reschedule("report", every="2h").next_run == first
    following = client.resume("report").next_run
    assert following
    assert following > store.time()
    [skipped] = [line for line in lines(store) if line["type"] == "skipped"]
    assert (skipped["tick"], skipped["reason"]) == (clock.text(first), "paused")
    sound(client)


def test_what_a_pause_holds_is_told_though_a_deploy_changes_the_rule(client: Client, store: Store) -> None:
    first = late(store, schedule(timing=Every("1m")))
    client.pause("report")
    deploy(store, schedule(timing=Every("2h")))
    client.resume("report")
    [skipped] = [line for line in lines(store) if line["type"] == "skipped"]
    assert (skipped["tick"], skipped["reason"]) == (clock.text(first), "paused")


def test_a_tick_that_is_put_off_while_a_beat_has_it_fires_when_the_operator_said(store: Store, client: Client) -> None:
    at = put_and_claim(store)
    later = clock.from_ms(int(clock.to_ms(store.time())) + 20_000)
    deferred = Operations(store).defer(
        schedule_id="report", rev=REV, tick=text(at), due_at=clock.text(later), version="", by="ann"
    )
    assert deferred.code == "OK"
    [reply] = store.fire([verdict(at)], token=TOKEN).replies
    assert (reply.code, queued(store)) == ("CHANGED", [])
    assert store.client.zscore(store.keys.due, "report") == clock.to_ms(later)
    assert client.get("report").due_at == later


def test_what_its_code_has_switched_off_meanwhile_is_not_resumed(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    client.pause("report")
    deploy(store, schedule(timing=HOURLY, enabled=False))
    assert client.resume("report").state == "disabled"
    assert store.client.zscore(store.keys.due, "report") is None
    assert store.client.smembers(store.keys.index("disabled")) == {b"report"}


@pytest.mark.parametrize("by", ["repair", "deploy"])
def test_what_was_paused_before_it_broke_is_paused_when_it_is_mended(client: Client, store: Store, by: str) -> None:
    deploy(store, schedule(timing=HOURLY))
    client.pause("report")
    for count, code in (("x", "BROKEN"), ("0", "MENDED")):
        store.client.hset(store.keys.schedule("report"), "run_count", count)
        if by == "deploy" and code == "MENDED":
            deploy(store, schedule(timing=HOURLY))
        else:
            assert [reply.code for reply in store.repair(["report"])] == [code]
    assert client.get("report").state == "paused"
    assert store.client.smembers(store.keys.index("paused")) == {b"report"}
    assert store.client.zscore(store.keys.due, "report") is None


def test_what_an_operator_laid_over_it_is_in_force_again_though_an_older_beat_wrote_the_codes_own(
    client: Client, store: Store
) -> None:
    made = schedule(timing=HOURLY)
    deploy(store, made)
    code = hash_of(store)
    client.reschedule("report", every="2h")
    names = ("rev", "timing_rev", "every", "rule", "definition", "next_run", "due_at")
    store.client.hset(store.keys.schedule("report"), mapping={name: code[name] for name in names})
    deploy(store, made)
    assert (hash_of(store)["every"], hash_of(store)["rev"] == made.rev) == ("2h", False)


def test_an_operator_does_not_end_a_hold(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    store.client.hset(store.keys.schedule("report"), "unannounced_at", clock.text(store.time()))
    assert client.reschedule("report", every="2h").unannounced_at
    deploy(store, schedule(timing=HOURLY))
    assert client.get("report").unannounced_at is None


def test_what_an_application_declares_is_found_again_by_repair(store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    store.client.delete(store.keys.app("default"))
    store.repair(["report"])
    assert store.client.smembers(store.keys.app("default")) == {b"report"}


@shows("fire", "CONFLICT")
def test_a_pause_that_somebody_made_longer_meanwhile_is_not_ended(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(store, schedule(timing=HOURLY))
    seen = client.pause("report").version
    time = client._store.time  # noqa: SLF001 (just before the step is taken)

    def meanwhile() -> datetime:
        assert Operations(store).pause([("report", "")], by="bob", reason="not yet")[0].code == "OK"
        return time()

    monkeypatch.setattr(client._store, "time", meanwhile)  # noqa: SLF001
    with pytest.raises(Conflict):
        client.resume("report", expected_version=seen)
    pause = client.get("report").pause
    assert pause
    assert (pause.by, pause.reason) == ("bob", "not yet")


def test_who_loses_the_reply_to_resume_is_not_told_that_nothing_happened(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    late(store, schedule(timing=Every("1m")))
    client.pause("report")
    fire, lost = client._store.fire, iter([True])  # noqa: SLF001

    def silent(*given: Any, **named: Any) -> Any:
        said = fire(*given, **named)
        if next(lost, False):
            raise exceptions.ConnectionError
        return said

    monkeypatch.setattr(client._store, "fire", silent)  # noqa: SLF001
    assert client.resume("report").state == "active"
    assert [line["type"] for line in lines(store)].count("skipped") == 1


def test_a_tick_that_was_moved_into_a_pause_does_not_fire_at_once_when_it_ends(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=Every("7d")))
    tick = client.get("report").next_run
    soon = store.time() + timedelta(milliseconds=300)
    client.reschedule("report", at=soon)
    client.pause("report")
    wait_until(lambda: store.time() > soon)
    resumed = client.resume("report")
    assert (resumed.next_run, resumed.due_at, resumed.deferred_by) == (tick, tick, "")


# --- nobody runs what is not exposed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["on_success", "on_failure", "on_stopped"])
def test_a_callback_from_data_must_be_exposed_as_functions_are(client: Client, store: Store, name: str) -> None:
    deploy(store, schedule("other"), functions=[FUNC, "tests.support.job_functions.told"])
    add: Any = client.add
    with pytest.raises(Refused, match=r"no application exposes os\.system"):
        add("evil", func=FUNC, every="1h", **{name: "os.system"})
    assert add("good", func=FUNC, every="1h", **{name: "tests.support.job_functions.told"}).state == "active"
