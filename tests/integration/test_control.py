"""Control by the client, on a real Redis: what operators do, with no beat alive, and with one."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis
from rq import Queue, SimpleWorker
from rq.job import Job

from beat import Client
from beat.client.add import Wanted
from beat.engine.registrar import Sync
from beat.errors import (
    BadArguments,
    BadInstant,
    BadOption,
    BeatError,
    Conflict,
    DuplicateSchedule,
    NoRedis,
    Refused,
    UnknownSchedule,
)
from beat.jobs import job_template
from beat.jobs.run import Run
from beat.policies.reconcile import Placement
from beat.schedule import functions
from beat.storage.registration import Origin, registration
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.resilience.test_commands import SCRIPTS
from tests.support import declared
from tests.support.builders import changed, everything, hash_of, queued, schedule
from tests.support.facts import wait_until
from tests.support.job_functions import Owner
from tests.support.schedulers import Beat, Drain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis
    from beat.engine.events import Event
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store
    from tests.resilience.link import Link

FUNC = "tests.support.job_functions.anything"
HOURLY = Every("1h")


@pytest.fixture
def client(server: PrivateRedis, store: Store) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url, by="ann")


def deploy(store: Store, *schedules: Schedule, **named: Any) -> list[Event]:
    """A beat with this code starts, and registers it; what it says."""
    said: list[Event] = []
    sync = Sync(store, schedules, beat="web-1", emit=said.append, **named)
    sync.announce()
    sync.register()
    return said


def late(store: Store, made: Schedule, *, ticks: int = 3) -> datetime:
    """A schedule whose last ticks are due and not decided; the first of them."""
    now = store.time()
    first = now
    for _ in range(ticks):
        first = made.before(first) or first
    placed = Placement("active", clock.text(first), clock.to_ms(first))
    [reply] = store.register([registration(made, None, placed, Origin("code", "default"))], beat="web-1")
    assert reply.code == "NEW"
    return first


def lines(store: Store, schedule_id: str = "report") -> list[dict[str, Any]]:
    """The ledger, newest first."""
    found: Any = store.client.lrange(store.keys.runs(schedule_id), 0, -1)
    return [json.loads(line) for line in found]


def sound(client: Client, schedule_id: str = "report") -> None:
    [found] = client.verify(schedule_id)
    assert (found.missing, found.double, found.problems) == ((), (), ())


def given(store: Store, job: str) -> Any:
    """The arguments of a job."""
    data: Any = store.client.hget(job_template.job_key(job), "data")
    return job_template.arguments(data, "pickle")


def work(server: PrivateRedis, *queues: str) -> None:
    """A worker does what there is to do."""
    with Redis.from_url(server.url) as client:
        names = [Queue(name, connection=client) for name in queues or ("default",)]
        SimpleWorker(names, connection=client).work(burst=True)


# --- trigger ---------------------------------------------------------------------------------------------------------


def test_a_run_is_enqueued_at_once_and_what_is_next_stays(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY, kwargs={"kind": "daily"}))
    before = client.get("report")
    run = client.trigger("report")
    after = client.get("report")
    assert queued(store) == [run.job_id]
    assert run.job_id.startswith("beat_report_m")
    assert (after.next_run, after.due_at, after.last_run) == (before.next_run, before.due_at, before.last_run)
    assert (after.run_count, after.manual_count, after.last_job) == (1, 1, run.job_id)
    assert (run.tick, run.triggered_by, run.beat, run.state, run.late_ms) == (None, "manual", "ann", "queued", None)
    job = Job.fetch(run.job_id, connection=store.client)
    assert job.kwargs == {"kind": "daily"}
    assert Run.read(job.meta["beat"]) == Run("report", None, "manual")
    sound(client)


def test_arguments_are_laid_over_those_of_the_schedule(client: Client, store: Store) -> None:
    deploy(store, schedule(args=[1], kwargs={"a": 1, "b": 2}))
    assert given(store, client.trigger("report", kwargs={"b": 3}).job_id) == ((1,), {"a": 1, "b": 3})
    assert given(store, client.trigger("report", args=[9, 8]).job_id) == ((9, 8), {"a": 1, "b": 2})
    assert given(store, client.trigger("report").job_id) == ((1,), {"a": 1, "b": 2})


def test_arguments_that_only_the_application_can_read_must_be_given_whole(client: Client, store: Store) -> None:
    deploy(store, schedule(kwargs={"owner": Owner("x")}))
    with pytest.raises(BadArguments, match="of classes that only its application can read: give all of them"):
        client.trigger("report", kwargs={"a": 1})
    assert given(store, client.trigger("report", args=[], kwargs={"a": 1}).job_id) == ((), {"a": 1})
    kept = Job.fetch(client.trigger("report").job_id, connection=store.client)
    assert kept.kwargs == {"owner": Owner("x")}


def kept(schedule_func: Callable[..., Any], path: str = FUNC) -> dict[str, Any]:
    """What a scheduler announces of a function."""
    return {"functions": [path], "signatures": {path: functions.signature(schedule_func)}}


def announces(store: Store, app: str, func: Callable[..., Any]) -> None:
    """A live scheduler of that application exposes the function."""
    sync = Sync(store, [], beat=app, emit=lambda _: None, app=app, **kept(func))
    sync.announce()
    store.heartbeat({"app": app}, name=app, ttl=60_000, digest=sync.digest, announced_ttl=1, judged=0, mark="")


def test_arguments_that_the_function_does_not_take_are_refused(client: Client, store: Store) -> None:
    deploy(store, schedule(kwargs={"kind": "daily"}), **kept(declared.report))
    misspelt = (
        r"the arguments do not fit tests\.support\.job_functions\.anything\(kind, \*, copies=…\), as its scheduler "
        r"declares it: got an unexpected keyword argument 'copie'\. Did you mean 'copies'\?"
    )
    with pytest.raises(BadArguments, match=misspelt) as refused:
        client.trigger("report", kwargs={"copie": 2})
    assert refused.value.exit_code == 2
    with pytest.raises(BadArguments, match="multiple values for argument 'kind'"):
        client.trigger("report", args=["weekly"])
    assert queued(store) == []
    run = client.trigger("report", kwargs={"copies": 2})
    assert given(store, run.job_id) == ((), {"kind": "daily", "copies": 2})


def test_arguments_of_a_schedule_from_data_are_checked_too(client: Client, store: Store) -> None:
    announces(store, "shop", declared.report)
    client.add("data", func=FUNC, cron="@hourly", args=["daily"])
    with pytest.raises(BadArguments, match="unexpected keyword argument 'copie'"):
        client.trigger("data", kwargs={"copie": 2})
    assert given(store, client.trigger("data", kwargs={"copies": 2}).job_id) == (("daily",), {"copies": 2})


def test_arguments_fit_the_function_of_the_schedules_own_application(client: Client, store: Store) -> None:
    deploy(store, schedule(), **kept(declared.report))
    announces(store, "till", declared.plain)
    assert given(store, client.trigger("report", args=["daily"]).job_id) == (("daily",), {})
    with pytest.raises(BadArguments):
        client.trigger("report", kwargs={"copie": 2})


def test_two_applications_that_disagree_about_a_function_leave_the_arguments_to_it(
    client: Client, store: Store
) -> None:
    announces(store, "shop", declared.report)
    announces(store, "till", declared.report)
    client.add("data", func=FUNC, cron="@hourly", args=["daily"])
    with pytest.raises(BadArguments):
        client.trigger("data", kwargs={"copie": 2})
    announces(store, "till", declared.plain)
    assert given(store, client.trigger("data", kwargs={"copie": 2}).job_id) == (("daily",), {"copie": 2})
    store.leave(name="till", digest="", linger=1)
    with pytest.raises(BadArguments):
        client.trigger("data", kwargs={"copie": 2})


@pytest.mark.parametrize("why", ["unannounced", "of another application", "garbled", "of another type"])
def test_arguments_are_not_checked_where_the_parameters_are_unknown(why: str, client: Client, store: Store) -> None:
    deploy(store, schedule(), functions=[FUNC])
    if why == "of another application":
        Sync(store, [], beat="web-2", emit=lambda _: None, app="other", **kept(declared.report)).announce()
    elif why == "garbled":
        store.client.hset("beat:signatures:default", FUNC, b"{\xff")
        store.client.pexpire("beat:signatures:default", 60_000)
    elif why == "of another type":
        store.client.set("beat:signatures:default", "x", px=60_000)
    assert given(store, client.trigger("report", kwargs={"a": 1}).job_id) == ((), {"a": 1})


def test_a_deploy_that_changes_only_the_parameters_changes_what_is_checked(client: Client, store: Store) -> None:
    deploy(store, schedule(), **kept(declared.plain))
    before = hash_of(store)
    with pytest.raises(BadArguments):
        client.trigger("report", args=["daily"])
    said = deploy(store, schedule(), **kept(declared.report))
    assert [event.name for event in said] == ["registered"]
    assert {k: v for k, v in hash_of(store).items() if k in {"rev", "timing_rev", "version", "updated_at"}} == {
        k: v for k, v in before.items() if k in {"rev", "timing_rev", "version", "updated_at"}
    }
    assert client.trigger("report", args=["daily"]).state == "queued"


def test_arguments_that_no_worker_would_get_are_refused(client: Client, store: Store) -> None:
    deploy(store, schedule(serializer="json"))
    with pytest.raises(BadArguments, match=r"kwargs\.a"):
        client.trigger("report", kwargs={"a": (1, 2)})
    assert queued(store) == []


def test_where_runs_may_not_overlap_a_second_one_is_refused_unless_it_is_forced(client: Client, store: Store) -> None:
    deploy(store, schedule(overlap="skip"))
    first = client.trigger("report").job_id
    with pytest.raises(Refused, match=f"report may not overlap, and {first} has not ended: .* anyway with --force"):
        client.trigger("report")
    second_one = client.trigger("report", force=True).job_id
    assert queued(store) == [first, second_one]


def test_when_the_run_in_its_way_has_ended_there_is_room_though_nobody_took_note(
    client: Client, store: Store, server: PrivateRedis
) -> None:
    deploy(store, schedule(overlap="skip"))
    client.trigger("report")
    work(server)
    run = client.trigger("report")
    assert queued(store) == [run.job_id]


@pytest.mark.parametrize("state", ["paused", "disabled", "finished", "retired"])
def test_what_fires_no_more_can_be_run_all_the_same(client: Client, store: Store, state: str) -> None:
    deploy(store, schedule())
    store.client.hset("beat:schedule:report", "state", state)
    run = client.trigger("report")
    assert queued(store) == [run.job_id]
    assert hash_of(store)["state"] == state


def test_a_run_can_take_the_place_of_the_next_tick(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    tick = client.get("report").next_run
    assert tick is not None
    run = client.trigger("report", skip_next=True)
    after = client.get("report")
    assert (after.next_run, after.skip_count, after.run_count) == (tick + timedelta(hours=1), 1, 1)
    [skipped] = [line for line in lines(store) if line["type"] == "skipped"]
    assert (skipped["tick"], skipped["reason"], skipped["behind"]) == (clock.text(tick), "instead", run.job_id)
    assert store.client.zscore("beat:due", "report") == clock.to_ms(tick + timedelta(hours=1))
    sound(client)


def test_what_has_no_next_tick_has_none_to_skip(client: Client, store: Store) -> None:
    deploy(store, schedule())
    client.pause("report")
    with pytest.raises(Refused, match="report is paused: it has no next tick to skip"):
        client.trigger("report", skip_next=True)
    assert queued(store) == []


@pytest.mark.parametrize("fault", [harm.drop_reply, harm.cut], ids=["the reply is lost", "the command is lost"])
@pytest.mark.parametrize("skip_next", [False, True])
def test_a_run_is_never_doubled_by_what_is_lost_on_the_wire(
    store: Store, server: PrivateRedis, fault: Any, *, skip_next: bool
) -> None:
    deploy(store, schedule(timing=HOURLY))
    with Proxy(server.url, SCRIPTS) as proxy:
        lost = proxy.plan("evalsha fire", fault(), times=2)
        run = Client(proxy.url, by="ann").trigger("report", skip_next=skip_next)
        assert lost.done.is_set()
    assert queued(store) == [run.job_id]
    assert (hash_of(store)["run_count"], hash_of(store)["skip_count"]) == ("1", "1" if skip_next else "0")
    sound(Client(server.url))


def test_a_redis_that_stays_away_is_told_in_a_sentence(store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule())
    with Proxy(server.url, SCRIPTS) as proxy:
        client = Client(proxy.url)
        proxy.refuse()
        proxy.cut_all()
        with pytest.raises(NoRedis, match="no Redis answers"):
            client.trigger("report")


def _answer_and_leave(proxy: Proxy) -> harm.Fault:
    def fault(link: Link) -> None:
        reply = link.ask()
        proxy.refuse()
        link.answer(reply)
        link.cut()

    return fault


def test_a_run_that_was_enqueued_is_told_though_redis_is_gone(store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule())
    with Proxy(server.url, SCRIPTS) as proxy:
        proxy.plan("evalsha fire", _answer_and_leave(proxy))
        run = Client(proxy.url, by="ann").trigger("report")
    assert queued(store) == [run.job_id]
    assert (run.state, run.beat, run.triggered_by) == ("open", "ann", "manual")


def test_where_nobody_can_know_whether_it_was_enqueued_it_says_so(store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule())
    with Proxy(server.url, SCRIPTS) as proxy:
        proxy.plan("evalsha fire", harm.after(proxy.refuse))
        with pytest.raises(NoRedis, match=r"; whether beat_report_m\w+ was enqueued is not known: look before you try"):
            Client(proxy.url).trigger("report")
    assert len(queued(store)) == 1


def test_a_run_is_followed_to_its_end_with_no_beat_alive(client: Client, store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule())
    job = client.trigger("report").job_id
    steps = client.follow(job)
    assert next(steps).state == "queued"
    work(server)
    assert [run.state for run in steps][-1] == "succeeded"
    assert client.get("report").success_count == 1
    sound(client)


def test_a_run_that_failed_is_told_with_its_error(client: Client, store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule(func="tests.support.job_functions.fail"))
    job = client.trigger("report").job_id
    work(server)
    run = list(client.follow(job))[-1]
    assert (run.state, run.error and run.error.type) == ("failed", "LookupError")


def test_an_unknown_id_gets_the_nearest_name(client: Client, store: Store) -> None:
    deploy(store, schedule())
    for act in (client.trigger, client.pause, client.resume, client.remove):
        with pytest.raises(UnknownSchedule, match=r"there is no schedule 'reprot'\. Did you mean 'report'\?"):
            act("reprot")
    with pytest.raises(UnknownSchedule, match="Did you mean"):
        client.reschedule("reprot", every="5m")


# --- pause and resume ------------------------------------------------------------------------------------------------


def test_a_pause_says_who_why_and_until_when(client: Client, store: Store) -> None:
    deploy(store, schedule())
    found = client.pause("report", "2h", "the disk is full")
    assert found.pause is not None
    assert (found.state, found.pause.by, found.pause.reason, found.pause.scope) == (
        "paused", "ann", "the disk is full", "one",
    )  # fmt: skip
    assert found.pause.until is not None
    assert timedelta(hours=1, minutes=59) < found.pause.until - client.now() <= timedelta(hours=2, seconds=1)
    again = client.pause("report", None, "a new disk comes")
    assert again.pause is not None
    assert (again.pause.until, again.pause.reason, again.version) == (None, "a new disk comes", found.version + 1)
    assert client.pause("report", None, "a new disk comes").version == again.version  # the same is no change
    assert [line["type"] for line in lines(store)] == ["paused", "paused", "registered"]


def test_a_pause_that_has_ended_is_refused(client: Client, store: Store) -> None:
    deploy(store, schedule())
    before = everything(store)
    with pytest.raises(BadInstant, match="that time is past"):
        client.pause("report", client.now() - timedelta(seconds=1))
    assert changed(before, store) == set()


@pytest.mark.parametrize("reason", ["two\nlines", "x" * 501, "\x1b[31m"])
def test_a_reason_is_one_line(client: Client, store: Store, reason: str) -> None:
    deploy(store, schedule())
    with pytest.raises(BadOption, match="reason must be one line of at most 500 characters"):
        client.pause("report", reason=reason)


def test_what_fires_nothing_cannot_be_paused(client: Client, store: Store) -> None:
    deploy(store, schedule(enabled=False))
    with pytest.raises(Refused, match="report is disabled: nothing was changed"):
        client.pause("report")
    with pytest.raises(Refused, match="report is disabled, not paused: nothing was changed"):
        client.resume("report")


def test_what_a_pause_held_is_one_skip_and_nothing_fires_at_once(client: Client, store: Store) -> None:
    first = late(store, schedule())
    client.pause("report")
    found = client.resume("report")
    assert found.next_run is not None
    assert found.next_run > client.now()
    assert queued(store) == []
    [skipped] = [line for line in lines(store) if line["type"] == "skipped"]
    assert (skipped["tick"], skipped["reason"], found.skip_count) == (clock.text(first), "paused", skipped["count"])
    assert skipped["count"] >= 3
    sound(client)


def test_with_catch_up_what_was_held_is_left_to_the_misfire_policy(client: Client, store: Store) -> None:
    first = late(store, schedule())
    client.pause("report")
    found = client.resume("report", catch_up=True)
    assert (found.state, found.next_run, found.skip_count) == ("active", first, 0)
    assert store.client.zscore("beat:due", "report") == clock.to_ms(first)
    sound(client)


def test_a_whole_namespace_is_paused_and_what_was_paused_by_name_stays_so(client: Client, store: Store) -> None:
    deploy(store, *(schedule(f"s{n}") for n in range(300)), schedule("off", enabled=False))
    client.pause("s7", reason="its own")
    assert client.number_active() == 299
    assert client.pause_all("1h", "moving house") == 299
    assert client.number_active() == 0
    assert client.get("off").state == "disabled"
    store.client.hset("beat:schedule:s8", "state", "active")  # its pause ended by itself, just now
    assert client.resume_all() == 298
    own = client.get("s7").pause
    assert own is not None
    assert own.reason == "its own"
    assert client.resume_all() == 0


def test_a_pause_ends_by_itself(home: Path, server: PrivateRedis, redis: Redis, client: Client) -> None:
    (home / "tasks.py").write_text('from beat import periodic\n\n@periodic(every="1s")\ndef tick(): ...\n')
    with Beat(home, server.url) as beat, Drain(server.url) as drain:
        wait_until(lambda: drain.jobs, what=lambda: beat.log)
        until = client.pause("tick", "3s", "a short one").pause
        assert until is not None
        assert until.until is not None
        wait_until(lambda: client.get("tick").state == "active", what=lambda: beat.log)
        wait_until(lambda: max(drain.ticks("tick")) >= int(clock.to_ms(until.until or clock.EPOCH) / 1000) + 1)
        assert beat.end() == 0
    kept: Any = redis.lrange("beat:runs:tick", 0, -1)
    told = [json.loads(line) for line in reversed(kept)]
    [skipped] = [line for line in told if line["type"] == "skipped"]
    assert skipped["reason"] == "paused"
    end = clock.text(until.until)
    assert [line["until"] for line in told if line["type"] == "resumed"] == [end]
    assert skipped["last"] < end
    assert next(line["tick"] for line in told if line["type"] == "enqueued" and line["at"] >= skipped["at"]) == end
    sound(client, "tick")


# --- versions --------------------------------------------------------------------------------------------------------


def test_what_somebody_else_has_changed_is_left_alone(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    version = client.get("report").version
    at = (client.get("report").next_run or client.now()) + timedelta(minutes=1)
    acts: list[Any] = [
        lambda: client.pause("report", expected_version=version - 1),
        lambda: client.resume("report", expected_version=version - 1),
        lambda: client.reschedule("report", every="5m", expected_version=version - 1),
        lambda: client.reschedule("report", at=at, expected_version=version + 1),
        lambda: client.remove("report", expected_version=version + 1),
    ]
    before = everything(store)
    for act in acts:
        with pytest.raises(Conflict, match=f"report has version {version} by now: another client has changed it"):
            act()
    assert changed(before, store) == set()
    assert client.pause("report", expected_version=version).version == version + 1


def test_a_tick_that_another_client_moves_meanwhile_is_a_conflict(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(store, schedule(timing=HOURLY))
    seen = client.get("report")
    assert seen.next_run
    theirs, ours = seen.next_run + timedelta(minutes=1), seen.next_run + timedelta(minutes=2)
    other, defer = client.named("other"), client._operations.defer  # noqa: SLF001 (between reading and writing)

    def overtaken(**wish: str) -> Any:
        monkeypatch.setattr(client._operations, "defer", defer)  # noqa: SLF001
        other.reschedule("report", at=theirs)
        return defer(**wish)

    monkeypatch.setattr(client._operations, "defer", overtaken)  # noqa: SLF001
    with pytest.raises(Conflict, match=f"report has version {seen.version + 1} by now"):
        client.reschedule("report", at=ours, expected_version=seen.version)
    found = client.get("report")
    assert (found.due_at, found.deferred_by, found.version) == (theirs, "other", seen.version + 1)


# --- reschedule ------------------------------------------------------------------------------------------------------


def nine(hour: int = 9, **more: Any) -> Schedule:
    return schedule(timing=Cron(f"0 {hour} * * *"), **more)


def test_another_rule_outlives_deploys_and_is_taken_back(client: Client, store: Store) -> None:
    deploy(store, nine())
    found = client.reschedule("report", "0 10 * * *", tz="Europe/Berlin")
    assert (found.definition["cron"], found.tz, found.override and found.override.by) == (
        "0 10 * * *", "Europe/Berlin", "ann",
    )  # fmt: skip
    deploy(store, nine(7, kwargs={"a": 1}))  # other code, with another rule and other arguments
    kept = client.get("report")
    assert kept.override is not None
    assert (kept.definition["cron"], kept.tz, kept.override.declared["cron"]) == (
        "0 10 * * *", "Europe/Berlin", "0 7 * * *",
    )  # fmt: skip
    assert given(store, client.trigger("report").job_id) == ((), {"a": 1})
    reset = client.reschedule("report", reset=True)
    assert (reset.definition["cron"], reset.tz, reset.override) == ("0 7 * * *", "UTC", None)
    assert reset.next_run == nine(7).after(client.now())
    assert [line["type"] for line in lines(store)] == ["reset", "enqueued", "updated", "rescheduled", "registered"]
    sound(client)


def test_after_a_reset_a_deploy_changes_nothing(client: Client, store: Store) -> None:
    deploy(store, nine())
    client.reschedule("report", every="5m")
    client.reschedule("report", reset=True)
    before = hash_of(store)
    deploy(store, nine())
    assert hash_of(store) == before


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"expression": "0 10 * * *"}, {"cron": "0 10 * * *"}),
        ({"expression": "30 0 10 * * *", "seconds": True}, {"cron": "30 0 10 * * *", "seconds": True}),
        ({"every": "15m"}, {"every": "15m"}),
        ({"tz": "Asia/Tokyo"}, {"cron": "0 9 * * *", "tz": "Asia/Tokyo"}),
    ],
    ids=["expression", "seconds", "every", "tz"],
)
def test_a_rehearsal_says_where_it_would_stand_and_changes_nothing(
    client: Client, store: Store, wish: dict[str, Any], rule: dict[str, Any]
) -> None:
    deploy(store, nine())
    before = everything(store)
    would_be = client.reschedule("report", **wish, dry_run=True)
    assert changed(before, store) == set()
    real = client.reschedule("report", **wish)
    assert (would_be.next_run, would_be.due_at, would_be.tz) == (real.next_run, real.due_at, real.tz)
    assert would_be.rule == real.rule
    assert {**would_be.definition, **rule} == would_be.definition == real.definition
    sound(client)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, "reschedule takes one of"),
        ({"every": "5m", "reset": True}, "reschedule takes one of"),
        ({"expression": "0 9 * * *", "every": "5m"}, "give one rule"),
        ({"expression": "0 25 * * *"}, "hour 25 is out of range"),
        ({"every": "0s"}, "must lie between 1 second and 366 days"),
        ({"tz": "Europe/Atlantis"}, "is not known"),
        ({"reset": True}, "there is nothing to reset"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_rule_changes_nothing(client: Client, store: Store, wish: dict[str, Any], words: str) -> None:
    deploy(store, nine())
    before = everything(store)
    with pytest.raises(BeatError, match=words):
        client.reschedule("report", **wish)
    assert changed(before, store) == set()


def test_the_rule_that_it_has_is_no_change(client: Client, store: Store) -> None:
    deploy(store, nine())
    client.reschedule("report", "0 10 * * *")
    before = everything(store)
    with pytest.raises(Refused, match="report has that very rule: nothing was changed"):
        client.reschedule("report", "0 10 * * *")
    assert changed(before, store) == set()


def test_a_tick_that_is_due_is_not_moved_by_another_rule(client: Client, store: Store) -> None:
    first = late(store, schedule())
    would_be = client.reschedule("report", every="2h", dry_run=True)
    found = client.reschedule("report", every="2h")
    assert first == found.next_run == would_be.next_run
    sound(client)


def test_what_is_paused_stays_paused_with_another_rule(client: Client, store: Store) -> None:
    deploy(store, nine())
    client.pause("report", "1h", "x")
    found = client.reschedule("report", every="5m")
    assert (found.state, found.pause and found.pause.reason) == ("paused", "x")
    assert found.pause is not None
    assert found.pause.until is not None
    assert store.client.zscore("beat:due", "report") == clock.to_ms(found.pause.until)


@pytest.mark.parametrize("hours", [-1, 1], ids=["earlier", "later"])
def test_the_next_tick_is_moved_once(client: Client, store: Store, hours: int) -> None:
    deploy(store, nine((client.now() + timedelta(hours=6)).hour))
    tick = client.get("report").next_run
    assert tick is not None
    at = tick + timedelta(hours=hours)
    assert client.reschedule("report", at=at, dry_run=True).due_at == at
    found = client.reschedule("report", at=at)
    assert (found.next_run, found.due_at, found.deferred_by) == (tick, at, "ann")
    assert store.client.zscore("beat:due", "report") == clock.to_ms(at)
    deploy(store, nine((client.now() + timedelta(hours=6)).hour, description="other words"))
    assert client.get("report").due_at == at  # a deploy that leaves the rule leaves the tick
    sound(client)


def test_a_tick_moves_neither_into_the_past_nor_behind_the_one_that_follows(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=HOURLY))
    tick = client.get("report").next_run
    assert tick is not None
    with pytest.raises(BadInstant, match="is past: to run it now, trigger it"):
        client.reschedule("report", at=client.now() - timedelta(seconds=1))
    with pytest.raises(BadInstant, match="does not lie before the tick that follows"):
        client.reschedule("report", at=tick + timedelta(hours=1))


def test_a_tick_that_was_moved_fires_then_and_the_next_ones_stay(
    home: Path, server: PrivateRedis, client: Client
) -> None:
    (home / "tasks.py").write_text('from beat import periodic\n\n@periodic("0 0 1 * *")\ndef monthly(): ...\n')
    with Beat(home, server.url) as beat, Drain(server.url) as drain:
        beat.says("registered")
        tick = client.get("monthly").next_run
        assert tick is not None
        at = client.reschedule("monthly", at=client.now() + timedelta(seconds=1)).due_at
        wait_until(lambda: drain.jobs, what=lambda: beat.log)
        assert beat.end() == 0
    assert drain.ticks("monthly") == [clock.floor(tick)]  # the tick is the one that it was
    found = client.get("monthly")
    assert found.next_run == Cron("0 0 1 * *").after(tick)
    assert found.due_at == found.next_run
    [run] = [line for line in client.history("monthly") if hasattr(line, "job_id")]
    assert at is not None
    assert at <= run.at
    sound(client, "monthly")


# --- add and remove --------------------------------------------------------------------------------------------------


@pytest.fixture
def exposed(store: Store) -> None:
    deploy(store, functions=[FUNC])


@pytest.mark.usefixtures("exposed")
def test_a_schedule_is_added_for_a_function_that_an_application_exposes(client: Client, store: Store) -> None:
    found = client.add("c42", func=FUNC, cron="0 9 * * *", tz="Europe/Berlin", kwargs={"n": 42}, queue="low")
    assert (found.state, found.source, found.tz, found.version) == ("active", "api", "Europe/Berlin", 1)
    assert found.next_run == Cron("0 9 * * *", "Europe/Berlin").after(client.now())
    run = client.trigger("c42")
    assert given(store, run.job_id) == ((), {"n": 42})
    assert queued(store, "rq:queue:low") == [run.job_id]
    sound(client, "c42")


@pytest.mark.usefixtures("exposed")
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_no_application_exposes_is_refused(client: Client, store: Store, *, dry_run: bool) -> None:
    before = everything(store)
    for func, hint in (("os.system", ""), ("tests.support.job_functions.anythin", f" Did you mean '{FUNC}'?")):
        [done] = client.add_all([Wanted("x", func, "0 9 * * *", {})], dry_run=dry_run)
        assert done.result == "refused"
        assert str(done.error).startswith(f"no application exposes {func}: decorate the function with @schedulable")
        assert str(done.error).endswith(hint or "imports it")
    assert changed(before, store) - {"beat:meta"} == set()


@pytest.mark.usefixtures("exposed")
def test_the_very_same_again_is_no_second_one(client: Client, store: Store) -> None:
    client.add("c42", func=FUNC, every="5m")
    before = everything(store)
    assert client.add("c42", func=FUNC, every="5m").version == 1
    assert client.add("c42", func=FUNC, every=timedelta(minutes=5), replace=True).version == 1
    assert changed(before, store) == set()


@pytest.mark.usefixtures("exposed")
def test_another_one_of_the_same_id_must_be_meant_to_replace_it(client: Client, store: Store) -> None:
    client.add("c42", func=FUNC, every="5m")
    run = client.trigger("c42")
    with pytest.raises(DuplicateSchedule, match="there is another schedule 'c42': give this one another id, or repl"):
        client.add("c42", func=FUNC, every="5m", kwargs={"a": 1})
    with pytest.raises(Conflict):
        client.add("c42", func=FUNC, every="5m", kwargs={"a": 1}, replace=True, expected_version=7)
    found = client.add("c42", func=FUNC, every="5m", kwargs={"a": 1}, replace=True, expected_version=1)
    assert (found.version, found.run_count, found.last_job) == (2, 1, run.job_id)  # its history stays
    assert given(store, client.trigger("c42").job_id) == ((), {"a": 1})
    sound(client, "c42")


def test_what_the_code_declares_is_left_to_it_and_the_other_way_round(client: Client, store: Store) -> None:
    deploy(store, schedule(), functions=[FUNC])
    for replace in (False, True):
        with pytest.raises(Refused, match="report is a schedule that comes from code: change it there, or give this"):
            client.add("report", func=FUNC, every="1m", replace=replace)
    client.add("c42", func=FUNC, every="5m")
    said = deploy(store, schedule(), schedule("c42"))
    assert [(each.name, each.schedule_id) for each in said if each.name == "refused"] == [("refused", "c42")]
    assert client.get("c42").source == "api"


@pytest.mark.usefixtures("exposed")
def test_many_are_added_by_the_page_and_each_has_its_answer(client: Client, store: Store) -> None:
    def many(queue: str = "default") -> list[Wanted]:
        return [Wanted(f"c{n}", FUNC, None, {"every": "5m", "kwargs": {"n": n}, "queue": queue}) for n in range(600)]

    wrong = [
        Wanted("c599", FUNC, None, {"every": "9m"}),
        Wanted("bad", FUNC, "0 25 * * *", {}),
        Wanted("no id", FUNC, "0 9 * * *", {}),
    ]
    rehearsed = list(client.add_all([*many(), *wrong], dry_run=True))
    assert store.client.scard("beat:schedules") == 0
    done = list(client.add_all([*many(), *wrong]))
    assert [(each.id, each.result) for each in rehearsed] == [(each.id, each.result) for each in done]
    assert [each.result for each in done] == ["added"] * 600 + ["refused"] * 3
    assert "is there twice" in str(done[600].error)
    assert store.client.scard("beat:schedules") == 600
    assert {each.result for each in client.add_all(many())} == {"same"}
    assert {each.result for each in client.add_all(many(queue="low"))} == {"refused"}
    assert {each.result for each in client.add_all(many(queue="low"), replace=True)} == {"replaced"}
    assert all(found.sound for found in client.verify())


def test_what_was_added_is_fired_by_a_beat_that_exposes_the_function(
    home: Path, server: PrivateRedis, redis: Redis, client: Client
) -> None:
    (home / "tasks.py").write_text("from beat import schedulable\n\n@schedulable\ndef customer(n): ...\n")
    with Beat(home, server.url) as beat, Drain(server.url) as drain:
        wait_until(lambda: redis.zcard("beat:functions"), what=lambda: beat.log)
        client.add("c42", func="tasks.customer", every="1s", kwargs={"n": 42})
        wait_until(lambda: len(drain.ticks("c42")) >= 2, what=lambda: beat.log)
        assert beat.end() == 0
    sound(client, "c42")


@pytest.mark.usefixtures("exposed")
def test_what_is_removed_leaves_nothing_but_its_jobs(client: Client, store: Store, redis: Redis) -> None:
    client.add("c42", func=FUNC, every="5m", overlap="skip")
    run = client.trigger("c42")
    client.pause("c42")
    client.remove("c42")
    left = [key for key in redis.scan_iter("beat:*") if "c42" in key and not key.startswith("beat:request:")]
    assert left == []
    assert redis.smembers("beat:in:paused") == set()
    assert queued(store) == [run.job_id]
    with pytest.raises(UnknownSchedule):
        client.get("c42")
    told: Any = redis.xrange("beat:events")
    [event] = [fields for _, fields in told if fields["type"] == "removed"]
    assert (event["schedule"], event["by"]) == ("c42", "ann")


def test_what_a_live_beat_declares_would_come_back(client: Client, store: Store) -> None:
    deploy(store, schedule())
    with pytest.raises(Refused, match="report is declared by a live beat, and would come back at once"):
        client.remove("report")
    store.client.delete("beat:announcements")  # the beat has died
    client.remove("report")
    assert store.is_empty()


@pytest.mark.usefixtures("exposed")
def test_only_what_is_retired_is_removed_with_the_retired(client: Client, store: Store) -> None:
    for n in range(300):
        client.add(f"c{n}", func=FUNC, every="5m")
    retired = sorted(f"c{n}" for n in range(299))
    for each in retired:
        store.client.hset(f"beat:schedule:{each}", "state", "retired")
    store.client.sadd("beat:in:retired", *retired, "c299")  # of which one has come back meanwhile
    assert client.retired() == sorted([*retired, "c299"])
    assert client.remove_retired(client.retired()) == retired
    assert store.client.smembers("beat:schedules") == {b"c299"}
    store.client.srem("beat:in:retired", "c299")


# --- history ---------------------------------------------------------------------------------------------------------


def test_a_change_keeps_as_much_history_as_the_settings_say(store: Store, server: PrivateRedis) -> None:
    deploy(store, schedule())
    client = Client(server.url, history_limit=3)
    for _ in range(10):
        client.trigger("report")
    assert sum(line["type"] == "enqueued" for line in lines(store)) == 3


def test_the_author_is_the_user_unless_another_is_named(server: PrivateRedis, store: Store) -> None:
    deploy(store, schedule())
    run = Client(server.url).trigger("report")
    assert "@" in run.beat
    with pytest.raises(BadOption, match="by must be one line"):
        Client(server.url, by="a\nb")
