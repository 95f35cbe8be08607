"""The commands that change: trigger, pause, resume, reschedule, add, remove, backfill; real processes and terminals."""

from __future__ import annotations

import functools
import json
import re
import signal
import subprocess
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.jobs import job_template
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.cli import test_command_line
from tests.cli.test_command_line import beat as beat_command
from tests.cli.test_command_line import without_colours
from tests.integration.test_control import FUNC, deploy, late
from tests.process import commands
from tests.resilience.proxy import Proxy
from tests.support.builders import queued, schedule
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.process_pool import logged
from tests.support.rq_worker import Steps, Worker, environment
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

BERLIN = "Europe/Berlin"
INSTANT = r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? Berlin = (\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?Z"


@pytest.fixture
def here(home: Path, store: Store) -> Path:
    """A directory, and a Redis with the report of the night, in Berlin, and a poll that may not overlap."""
    lay_out(home, {"pyproject.toml": ""})
    nightly = schedule("report", timing=Cron("0 3 * * *", BERLIN), tz=BERLIN, kwargs={"kind": "daily"})
    deploy(store, nightly, schedule("poll", overlap="skip"), functions=[FUNC])
    return home


@pytest.fixture
def url(server: PrivateRedis) -> str:
    return server.url


@pytest.fixture
def client(url: str, store: Store) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(url)


@pytest.fixture
def beat(here: Path, url: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    return functools.partial(test_command_line.beat, cwd=here, BEAT_REDIS_URL=url)


def url_of(store: Store) -> str:
    return f"unix://{store.client.connection_pool.connection_kwargs['path']}"


@pytest.fixture
def refused(here: Path, url: str) -> Callable[..., tuple[int, str]]:
    return functools.partial(test_command_line.refused, cwd=here, BEAT_REDIS_URL=url)


@pytest.fixture
def document(here: Path, url: str) -> Callable[..., dict[str, Any]]:
    return functools.partial(test_command_line.document, cwd=here, BEAT_REDIS_URL=url)


@pytest.fixture
def terminal(here: Path, url: str) -> Callable[..., tuple[int, str]]:
    def on_a_terminal(*arguments: str, **more: Any) -> tuple[int, str]:
        code, told = commands.on_a_terminal(*arguments, cwd=here, BEAT_REDIS_URL=url, **more)
        return code, without_colours(told)

    return on_a_terminal


# --- what all of them have in common ---------------------------------------------------------------------------------

ALL = [
    ["trigger", "reprot"],
    ["pause", "reprot"],
    ["pause", "report", "reprot"],
    ["resume", "reprot"],
    ["reschedule", "reprot", "--every", "5m"],
    ["remove", "reprot", "--yes"],
    ["backfill", "reprot", "--from", "2026-11-01", "--to", "2026-11-02"],
]


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_an_unknown_id_gets_the_nearest_name_and_nothing_is_changed(
    refused: Any, client: Client, command: list[str]
) -> None:
    assert refused(*command) == (3, "error: there is no schedule 'reprot'. Did you mean 'report'?\n")
    assert client.get("report").version == 1


@pytest.mark.parametrize("command", [*ALL, ["add", "x", "--func", FUNC, "--every", "5m"]], ids=" ".join)
def test_without_redis_it_says_so(here: Path, command: list[str]) -> None:
    code, said = test_command_line.refused(*command, cwd=here, BEAT_REDIS_URL=f"unix://{here}/none.sock")
    assert code == 69
    assert f"{here}/none.sock" in said


@pytest.mark.parametrize(
    "command",
    [
        ["pause", "report"],
        ["resume", "report"],
        ["reschedule", "report", "--every", "5m"],
        ["remove", "report", "--yes"],
    ],
    ids=" ".join,
)
def test_what_somebody_else_has_changed_is_refused(refused: Any, command: list[str]) -> None:
    code, said = refused(*command, "--expected-version", "7")
    assert (code, said) == (
        4, "error: report has version 1 by now: another client has changed it; look again, then try again\n",
    )  # fmt: skip


def test_what_was_done_stands_in_the_history_with_who_did_it(beat: Any) -> None:
    for command in (
        ["trigger", "report"],
        ["reschedule", "report", "0 4 * * *"],
        ["reschedule", "report", "--reset"],
        ["pause", "report", "--until", "2h", "--reason", "the disk is full"],
        ["resume", "report"],
    ):
        assert beat(*command, "--by", "ann@night").returncode == 0
    told = beat("history", "report").stdout.splitlines()
    assert len(told) == 7
    assert all("by ann@night" in line for line in told[1:6])
    assert "the disk is full" in told[2]


@pytest.mark.parametrize(("ids", "code"), [(("over", "report"), 4), (("report", "over"), 2)])
def test_the_first_refusal_of_several_decides_the_exit_code(
    beat: Any, store: Store, ids: tuple[str, str], code: int
) -> None:
    deploy(store, schedule("over", timing=Cron("0 3 * * *", "Etc/GMT+12"), tz="Etc/GMT+12", end=store.time()))
    until = f"{store.time() + timedelta(minutes=30):%Y-%m-%d %H:%M}"  # past in Berlin, to come in UTC and the far west
    assert store.client.hget("beat:schedule:over", "state") == b"finished"
    done = beat("pause", *ids, "poll", "--until", until)
    assert (done.returncode, done.stderr.count("error: ")) == (code, 2), done.stderr
    assert done.stdout.startswith("poll: paused until")


# --- trigger ---------------------------------------------------------------------------------------------------------


def test_a_run_is_told_with_its_job_and_how_to_watch_it(beat: Any, store: Store) -> None:
    done = beat("trigger", "report", "--by", "ann")
    [job] = queued(store)
    assert done.returncode == 0
    assert re.fullmatch(rf"\d\d:\d\d:\d\d CES?T  queued    on default: {job}, by ann\n", done.stdout)
    assert done.stderr == "To see how it ends: beat history report -n 1\n"


def test_arguments_are_json_where_they_can_be(beat: Any, client: Client, store: Store) -> None:
    arguments = ["--arg", "n=2", "--arg", "day=2026-11-16", "--arg", 'code="007"', "--args", "[1, true]"]
    assert beat("trigger", "report", *arguments).returncode == 0
    [job] = queued(store)
    written: Any = store.client.hget(f"rq:job:{job}", "data")
    assert job_template.arguments(written, "pickle") == (
        (1, True), {"kind": "daily", "n": 2, "day": "2026-11-16", "code": "007"},
    )  # fmt: skip
    assert client.get("report").manual_count == 1


def test_a_run_for_programs(document: Any, store: Store) -> None:
    found = document("trigger", "report", "--skip-next")["run"]
    assert [found["job"]] == queued(store)
    assert (found["type"], found["schedule"], found["tick"], found["triggered_by"]) == ("run", "report", None, "manual")


def test_arguments_that_the_function_does_not_take_are_refused(refused: Any, here: Path, url: str) -> None:
    tasks = """
from beat import periodic

@periodic("@daily", kwargs={"kind": "weekly"})
def invoice(kind, copies=1): ...
"""
    lay_out(here, {"tasks.py": tasks})
    with Beat(here, url) as scheduler:
        scheduler.says("1 new")
    code, said = refused("trigger", "invoice", "--arg", "copie=2")
    assert code == 2
    assert said == (
        "error: the arguments do not fit tasks.invoice(kind, copies=…), as its scheduler declares it: "
        "got an unexpected keyword argument 'copie'. Did you mean 'copies'?\n"
    )
    assert beat_command("trigger", "invoice", "--arg", "copies=2", cwd=here, BEAT_REDIS_URL=url).returncode == 0


def test_trigger_says_that_the_schedule_is_paused(beat: Any) -> None:
    assert beat("pause", "report", "--by", "ann", "--reason", "the disk is full").returncode == 0
    done = beat("trigger", "report")
    assert done.returncode == 0
    assert re.match(
        rf"the schedule is paused by ann since {INSTANT}, until an operator resumes it \(the disk is full\); "
        r"only this run is enqueued\n",
        done.stderr,
    )


def test_where_there_is_no_room_it_is_refused_with_what_is_in_the_way(refused: Any, beat: Any, store: Store) -> None:
    assert beat("trigger", "poll").returncode == 0
    [job] = queued(store)
    anyway = "wait for that run to end, or run it anyway with --force (`force` in Python and the API)"
    assert refused("trigger", "poll") == (4, f"error: poll may not overlap, and {job} has not ended: {anyway}\n")
    assert beat("trigger", "poll", "--force").returncode == 0


def test_the_tick_that_passes_instead_is_named(beat: Any) -> None:
    said = beat("trigger", "report", "--skip-next").stderr
    assert re.match(rf"instead of it the tick of {INSTANT} passes\n", said)


JOBS = """
import time
from tests.support.rq_worker import say

def good(): say("start"); time.sleep(0.3)
def bad(): raise KeyError("user")
def slow(): say("start"); time.sleep(600)
"""


@pytest.fixture
def worked(here: Path, url: str, store: Store) -> Iterator[Worker]:
    """Three schedules, and a worker for them."""
    lay_out(here, {"jobs.py": JOBS})
    deploy(store, *(schedule(name, func=f"jobs.{name}", queue="jobs") for name in ("good", "bad", "slow")))
    with Worker(url, Steps(here / "steps.log"), "jobs") as worker:
        yield worker


@pytest.mark.usefixtures("worked")
def test_who_waits_sees_each_step_and_the_end(beat: Any) -> None:
    done = beat("trigger", "good", "--wait")
    steps = [line.split()[2] for line in done.stdout.splitlines()]
    assert (done.returncode, steps, done.stderr) == (0, ["queued", "started", "succeeded"], "")
    assert re.search(r"UTC  succeeded after \d", done.stdout)


@pytest.mark.usefixtures("worked")
def test_who_waits_for_a_run_that_fails_gets_the_error_and_the_way_to_its_traceback(beat: Any, document: Any) -> None:
    done = beat("trigger", "bad", "--wait")
    steps = [line.split()[2] for line in done.stdout.splitlines()]
    assert (done.returncode, steps) == (1, ["queued", "started", "failed"])
    assert done.stdout.endswith(": KeyError: 'user'\n")
    assert done.stderr == "For the traceback: beat history bad --failed -n 1 -v\n"
    assert "Traceback (most recent call last)" in beat("history", "bad", "--failed", "-n", "1", "-v").stdout
    assert document("trigger", "bad", "--wait")["run"]["error"]["type"] == "KeyError"


@pytest.mark.usefixtures("worked")
def test_who_leaves_while_waiting_is_told_that_the_run_goes_on(here: Path, url: str, client: Client) -> None:
    log = here / "trigger.log"
    process = logged(log, ["beat", "trigger", "slow", "--wait"], here, commands.environment(BEAT_REDIS_URL=url))
    wait_until(lambda: "started" in log.read_text(), what=log.read_text)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert log.read_text().endswith("the run goes on; to see how it ends: beat history slow -n 1\n")
    [run] = client.history("slow", outcome="open")
    assert getattr(run, "state", "") == "started"


def waiting(here: Path, url: str, *arguments: str) -> tuple[Any, Path]:
    """A process that waits for a run, and its log."""
    log = here / "trigger.log"
    command = ["beat", "trigger", *arguments, "--wait"]
    return logged(log, command, here, commands.environment(BEAT_REDIS_URL=url)), log


def test_trigger_wait_says_that_no_worker_and_no_scheduler_is_there(here: Path, url: str, client: Client) -> None:
    process, log = waiting(here, url, "report")
    says = functools.partial(wait_until, what=log.read_text)
    says(lambda: "waiting for a worker of default; no live worker reads default: rq worker default" in log.read_text())
    assert "no scheduler is running, so this command records the outcome itself" in log.read_text()
    with Beat(lay_out(here, {"tasks.py": ""}), url):
        says(lambda: log.read_text().endswith("no live worker reads default: rq worker default\n"))
    says(lambda: log.read_text().count("so this command records the outcome itself") > 1)
    assert log.read_text().count("waiting for") == 3  # each time that something changed, and never in between
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert client.history("report", outcome="open")


@pytest.mark.usefixtures("worked")
def test_trigger_wait_says_for_which_worker_it_waits(here: Path, url: str) -> None:
    process, log = waiting(here, url, "slow")
    wait_until(
        lambda: re.search("waiting for worker .* to end the run; no scheduler", log.read_text()), what=log.read_text
    )
    process.kill()
    process.wait(20)


def test_trigger_wait_gives_up_after_its_timeout(beat: Any, document: Any) -> None:
    done = beat("trigger", "report", "--wait", "--timeout", "1s")
    assert done.returncode == 124
    words = "gave up after 1 s (--timeout): the run goes on; to see how it ends: beat history report -n 1\n"
    assert done.stderr.endswith(words)
    assert document("trigger", "report", "--wait", "--timeout", "0.2")["run"]["state"] == "queued"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--timeout", "1s"], "error: --timeout is how long --wait waits"),
        (["--wait", "--timeout", "soon"], "error: --timeout 'soon' is not a length of time"),
    ],
)
def test_a_wrong_timeout_is_refused_before_anything_runs(
    refused: Any, store: Store, arguments: list[str], words: str
) -> None:
    code, said = refused("trigger", "report", *arguments)
    assert (code, queued(store)) == (2, [])
    assert said.startswith(words)


@pytest.mark.usefixtures("worked")
def test_every_attempt_of_a_run_is_told(beat: Any, store: Store) -> None:
    deploy(store, schedule("bad", func="jobs.bad", queue="jobs", retry=1))
    steps = [line.split()[2] for line in beat("trigger", "bad", "--wait").stdout.splitlines()]
    assert (steps[0], steps[-1]) == ("queued", "failed")
    assert 1 <= steps.count("started") <= 2  # the second follows on the first's heels


def test_a_run_of_which_nothing_is_known_any_more_is_no_success(here: Path, url: str, redis: Redis) -> None:
    log = here / "trigger.log"
    process = logged(log, ["beat", "trigger", "report", "--wait"], here, commands.environment(BEAT_REDIS_URL=url))
    wait_until(lambda: "queued" in log.read_text(), what=log.read_text)
    redis.delete("beat:runs:report", "beat:records", "beat:schedule:report")
    assert process.wait(20) == 1
    assert "nothing is known of the run any more" in log.read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["trigger", "report", "--wait"], "the run goes on; to see how it ends: beat history report -n 1"),
        (
            ["backfill", "report", "--from", "2026-10-24", "--to", "2026-10-26"],
            "those that were enqueued go on; the same command goes on with the others",
        ),
    ],
    ids=["trigger", "backfill"],
)
def test_when_redis_goes_away_what_was_enqueued_goes_on(
    here: Path, url: str, store: Store, command: list[str], words: str
) -> None:
    log = here / "away.log"
    with Proxy(url) as proxy:
        process = logged(log, ["beat", *command], here, commands.environment(BEAT_REDIS_URL=proxy.url))
        wait_until(lambda: queued(store) and log.read_text(), what=log.read_text)  # it knows that it was enqueued
        proxy.refuse()
        proxy.cut_all()
        assert process.wait(60) == 69
    assert f"{words}\nerror: no Redis answers at " in log.read_text()


# --- pause, resume ---------------------------------------------------------------------------------------------------


def test_a_pause_is_told_as_it_was_understood(beat: Any, client: Client) -> None:
    done = beat("pause", "report", "--until", "monday 09:00", "--reason", "the disk is full")
    until = client.get("report").pause
    assert until is not None
    assert until.until is not None
    assert until.until == Cron("0 9 * * mon", BERLIN).after(client.now())
    first, second = done.stdout.splitlines()
    assert re.fullmatch(rf"report: paused until {INSTANT}, in \d.*\(the disk is full\)", first)
    passing = Cron("0 3 * * *", BERLIN).count(client.now(), until.until)
    assert second.startswith(f"  {passing} tick{'s' * (passing != 1)} will pass, the first ")
    assert re.search(rf"; it goes on with {INSTANT}$", second)
    assert done.stderr == "To end it: beat resume report\n"


def test_a_pause_without_an_end(beat: Any) -> None:
    told = beat("pause", "report").stdout
    assert re.fullmatch(rf"report: paused until an operator resumes it; its next tick, {INSTANT}, is held\n", told)


def test_pauses_for_programs(document: Any) -> None:
    [report, poll] = document("pause", "report", "poll", "--until", "2h", "--reason", "x")["schedules"]
    assert (report["state"], report["version"], report["pause"]["reason"]) == ("paused", 2, "x")
    assert 119 <= poll["passing"]["count"] <= 121
    assert poll["passing"]["next"] >= poll["pause"]["until"]


def test_one_that_is_refused_does_not_keep_the_others(beat: Any, client: Client) -> None:
    client.pause("poll")
    done = beat("resume", "report", "poll")
    assert (done.returncode, done.stderr) == (4, "error: report is active, not paused: nothing was changed\n")
    assert done.stdout.startswith("poll: goes on with ")
    assert client.get("poll").state == "active"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["pause"], "which schedule? Name it, or say --all"),
        (["resume"], "which schedule? Name it, or say --all"),
        (["pause", "report", "--all"], "name schedules, or say --all, not both"),
        (["pause", "report", "poll", "--expected-version", "1"], "--expected-version is the version of one schedule"),
        (["pause", "report", "--until", "soon"], "--until 'soon' is not a time to come: write 2h, 09:00, monday,"),
        (["pause", "report", "--until", "2020-01-01"], "--until '2020-01-01' is past: that is Wed 2020-01-01 00:00"),
        (["pause", "report", "--reason", "a\nb"], "reason must be one line of at most 500 characters"),
        (["pause", "--all"], "Pause all 2 active schedules, until an operator resumes them? There is no terminal"),
        (["resume", "--all"], "There is no terminal on which to answer: say --yes."),
        (["remove"], "which schedule? Name it, or say --retired"),
        (["remove", "report"], "Remove report, with 1 line of history? There is no terminal on which to answer"),
        (["remove", "report", "--retired"], "name schedules, or say --retired, not both"),
        (["trigger", "report", "--arg", "x"], "--arg 'x' has no value: write --arg name=value"),
        (["trigger", "report", "--args", "5"], "--args '5' is neither a list nor an object of JSON"),
        (["reschedule", "report"], "when is it to tick? Give an expression or --every"),
        (["reschedule", "report", "--every", "5m", "--reset"], "that is more than one wish: give an expression"),
        (["reschedule", "report", "0 9 * * *", "--every", "5m"], "an expression and --every are two rules: give one"),
        (["reschedule", "report", "0", "9", "*", "*", "*"], "that is 5 words; put the expression in quotes"),
        (["reschedule", "report", "--tz", "UTC", "--seconds"], "--seconds is for expressions of six fields"),
        (["reschedule", "report", "0 25 * * *"], "hour 25 is out of range 0-23"),
        (["reschedule", "report", "--every", "0s"], "--every '0s' must lie between 1 second and 366 days"),
        (["reschedule", "report", "--at", "soon"], "--at 'soon' is not a time to come"),
        (["backfill", "report", "--from", "2026-11-01"], "Missing option '--to'"),
        (["backfill", "report", "--from", "x", "--to", "1h"], "--from 'x' is neither a length of time nor a time"),
        (["backfill", "report", "--from", "1h", "--to", "2h"], "and lies after --to '2h'"),
        (["backfill", "report", "--from", "2999-01-01", "--to", "2999-01-02"], "lies ahead: a backfill is for the"),
        (["backfill", "poll", "--from", "2026-01-01", "--to", "2026-02-01"], "ticks, more than 10,000: take a shorter"),
        (["add"], "add one schedule (beat add ID --func app.tasks.report --every 15m), or those of --file"),
        (["add", "x"], "which function? Say --func app.tasks.report"),
        (
            ["add", "x", "--func", FUNC],
            "when is it to tick? Give one of --cron '0 9 * * *', --every 15m and --follows ID",
        ),
        (["add", "x", "--func", FUNC, "--every", "5m", "--cron", "* * * * *"], "Give one of --cron"),
        (["add", "x", "--func", FUNC, "--every", "5m", "--option", "jiter=5m"], "Did you mean 'jitter'?"),
        (
            ["add", "x", "--func", FUNC, "--every", "5m", "--option", "crontab=@daily"],
            "The expression is --cron, as in",
        ),
        (
            ["add", "x", "--func", FUNC, "--cron", "60 * * * *", "--tz", "CEST"],
            "2 mistakes: - time zone 'CEST' is not known: use an IANA name: for CEST, 'Europe/Berlin'",
        ),
        (["add", "x", "--func", FUNC, "--every", "5m", "--option", "every=6m"], "--option every says what was said"),
        (["add", "a b", "--func", FUNC, "--every", "5m"], "id 'a b' must be 1 to 100 of the characters"),
        (["add", "x", "--file", "-"], "--file brings what it says itself: leave out the id"),
        (["add", "--file", "-"], "the file is no JSON"),
        (["add", "--file", "none.json"], "'none.json': No such file or directory"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused_with_a_way_out(
    refused: Any, client: Client, command: list[str], words: str
) -> None:
    code, said = refused(*command)
    assert code == 2
    assert words in said.replace("\n  ", " ")
    assert client.get("report").version == 1


def test_a_terminal_asks_before_all_are_paused(terminal: Any, client: Client) -> None:
    code, told = terminal("pause", "--all", "--until", "2h", typed=b"n\n")
    assert code == 1
    assert "Pause all 2 active schedules, until " in told
    assert told.endswith("nothing was changed\n")
    assert client.get("report").state == "active"
    code, told = terminal("pause", "--all", "--until", "2h", typed=b"y\n")
    assert code == 0
    assert "2 schedules are paused, until " in told
    assert terminal("resume", "--all", typed=b"y\n")[0] == 0
    assert client.get("report").state == "active"


def test_with_yes_nobody_is_asked(beat: Any, document: Any) -> None:
    assert beat("pause", "--all", "--yes").stdout == "2 schedules are paused, until an operator resumes them\n"
    assert beat("pause", "--all", "--yes").stdout == "no schedule is active: there was nothing to pause\n"
    assert document("resume", "--all", "--yes")["resumed"] == 2
    assert beat("resume", "--all", "--yes").stdout.startswith("no schedule was paused with --all")


def test_what_passed_while_it_was_paused_is_told(beat: Any, document: Any, store: Store, client: Client) -> None:
    late(store, schedule("often", timing=Every("1m")), ticks=3)
    client.pause("often")
    told = beat("resume", "often").stdout
    assert re.fullmatch(r"often: goes on with .*, in .*; [34] ticks passed while it was paused\n", told)
    client.pause("often")
    assert document("resume", "often")["schedules"][0]["passed"] in {0, 1}  # a minute may begin meanwhile


def test_catching_up_is_told_with_the_policy(beat: Any, store: Store, client: Client) -> None:
    late(store, schedule("often", timing=Every("1m"), misfire="all"), ticks=3)
    client.pause("often")
    assert re.fullmatch(
        r"often: catches up from .* UTC on \(misfire='all'\)\n", beat("resume", "often", "--catch-up").stdout
    )


# --- reschedule ------------------------------------------------------------------------------------------------------


def test_the_ticks_before_and_after_are_shown(beat: Any, client: Client) -> None:
    rehearsal = beat("reschedule", "report", "0 4 * * *", "--dry-run")
    assert rehearsal.stderr == "nothing was changed: this was a rehearsal (--dry-run)\n"
    assert client.get("report").version == 1
    done = beat("reschedule", "report", "0 4 * * *")
    assert done.stdout == rehearsal.stdout
    head, columns, *rows = done.stdout.splitlines()
    assert head == f"report: 0 3 * * * {BERLIN} → 0 4 * * * {BERLIN}"
    assert columns.split() == ["before", "after"]
    assert len(rows) == 3
    assert all(re.fullmatch(rf"{INSTANT} +{INSTANT}", row) for row in rows)
    assert all(row.count(" 03:00 ") == row.count(" 04:00 ") == 1 for row in rows)
    assert "beat reschedule report --reset" in done.stderr


def test_a_tick_that_is_moved_is_named_with_its_new_time(beat: Any, document: Any, client: Client) -> None:
    tick = client.get("report").next_run
    assert tick is not None
    at = clock.text(tick + timedelta(minutes=5))
    found = document("reschedule", "report", "--at", at, "--dry-run")
    assert (found["before"][0], found["after"][0], found["dry_run"]) == (clock.text(tick), at, True)
    told = beat("reschedule", "report", "--at", at).stdout
    assert re.match(rf"report: the tick of {INSTANT} fires at {INSTANT}, once\n", told)
    assert document("reschedule", "report", "--every", "1h")["schedule"]["overridden"] is True


def test_ticks_of_what_is_paused_are_shown_with_a_warning(beat: Any, client: Client) -> None:
    client.pause("report")
    assert "it is paused: none of these fires" in beat("reschedule", "report", "--every", "1h", "--dry-run").stderr


@pytest.mark.parametrize("columns", [80, 200])
def test_on_a_terminal_no_line_is_longer_than_it(terminal: Any, columns: int) -> None:
    for command in (
        ["reschedule", "report", "0 4 * * *", "--tz", "America/Argentina/Buenos_Aires", "--dry-run"],
        ["pause", "report", "--until", "monday 09:00", "--reason", "the disk of the warehouse is full, and a new one"],
        ["why", "report", "2030-01-01 03:00"],
        ["trigger", "report"],
        ["backfill", "report", "--from", "2026-10-01", "--to", "2026-10-31", "--dry-run"],
    ):
        code, told = terminal(*command, columns=columns)
        assert code == 0, told
        assert max(map(len, told.splitlines())) <= columns


# --- add, remove -----------------------------------------------------------------------------------------------------


def test_one_is_added_with_its_next_ticks(beat: Any, client: Client) -> None:
    arguments = ["c42", "--func", FUNC, "--cron", "0 9 * * *", "--tz", BERLIN, "--arg", "customer=42"]
    assert beat("add", *arguments, "--dry-run").stdout == "c42: would be added\n"
    head, rule, *ticks = beat("add", *arguments).stdout.splitlines()
    assert (head, rule) == ("c42: added", f"0 9 * * * {BERLIN}")
    assert all(re.fullmatch(rf"{INSTANT}, in .*", tick) for tick in ticks)
    assert client.get("c42").definition["kwargs"] == {"customer": 42}
    assert beat("add", *arguments).stdout.startswith("c42: the same\n")


def test_one_that_stands_in_the_way_is_refused(refused: Any, beat: Any) -> None:
    one = ["c42", "--func", FUNC, "--every", "5m"]
    assert beat("add", *one).returncode == 0
    code, said = refused("add", *one, "--queue", "low")
    assert (code, said) == (
        4, "error: there is another schedule 'c42': give this one another id, or replace it (--replace)\n",
    )  # fmt: skip
    assert beat("add", *one, "--queue", "low", "--replace").stdout.startswith("c42: replaced\n")
    assert refused("add", "report", "--func", FUNC, "--every", "5m")[0] == 4
    code, said = refused("add", "c43", "--func", "os.system", "--every", "5m")
    assert code == 4
    assert "no application exposes os.system" in said


def test_a_file_is_added_line_by_line(beat: Any, here: Path, document: Any, client: Client) -> None:
    entries = [
        {"id": "c1", "func": FUNC, "cron": "0 9 * * *", "tz": BERLIN, "kwargs": {"n": 1}, "state": "active"},
        {"id": "c2", "func": "os.system", "every": "5m"},
        {"id": "report", "func": FUNC, "cron": "0 3 * * *", "source": "code"},
        {"func": FUNC, "every": "5m"},
        {"id": "c3", "func": FUNC, "every": "5m", "jiter": "1m"},
    ]
    (here / "all.json").write_text(json.dumps({"schema_version": 1, "schedules": entries}))
    rehearsal = beat("add", "--file", "all.json", "--dry-run")
    assert (rehearsal.returncode, rehearsal.stdout.splitlines()[0]) == (4, "c1: would be added")
    done = beat("add", "--file", "all.json")
    told = done.stdout.splitlines()
    assert [line.split(":")[1].strip() for line in told] == [
        "added", "refused", "left to the code", "refused", "added",
    ]  # fmt: skip
    assert "entry 4: refused: it has no id: write " in told[3]
    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "warning: 'jiter' is no option, and is left out. Did you mean 'jitter'?",
        "2 added, 2 refused, 1 left to the code",
    ]
    assert client.get("c1").tz == BERLIN
    found = document("add", "--file", "all.json")["schedules"]
    assert [each["result"] for each in found] == ["same", "refused", "left", "refused", "same"]


def test_all_mistakes_of_an_entry_are_told_in_its_line(beat: Any, here: Path) -> None:
    entry = {"id": "c1", "func": FUNC, "cron": "60 9 * * *", "tz": "CEST"}
    (here / "all.json").write_text(json.dumps([entry]))
    [line] = beat("add", "--file", "all.json").stdout.splitlines()
    assert line.startswith("c1: refused: time zone 'CEST' is not known: use an IANA name: for CEST, ")
    assert line.endswith("; cron '60 9 * * *': minute 60 is out of range 0-59. The minute after 59 is 0")


def test_a_file_may_come_through_a_pipe(here: Path, url: str, client: Client) -> None:
    entries = json.dumps([{"id": "c1", "func": FUNC, "every": "5m"}])
    done = subprocess.run(
        [*test_command_line.PYTHON, "add", "--file", "-"],
        input=entries,
        cwd=here,
        env=commands.environment(BEAT_REDIS_URL=url),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("c1: added\n", "1 added\n")
    assert client.get("c1").source == "api"


def test_what_is_removed_is_asked_about_first(terminal: Any, beat: Any, redis: Redis) -> None:
    assert beat("add", "c42", "--func", FUNC, "--every", "5m").returncode == 0
    code, told = terminal("remove", "c42", typed=b"n\n")
    assert code == 1
    assert "Remove c42, with 1 line of history? [y/N]: " in told
    assert redis.exists("beat:schedule:c42")
    code, told = terminal("remove", "c42", typed=b"y\n")
    assert code == 0
    assert told.endswith("c42: removed, with 1 line of history\n")
    assert not redis.exists("beat:schedule:c42")


def test_what_a_live_beat_declares_is_refused(refused: Any) -> None:
    code, said = refused("remove", "report", "--yes")
    assert code == 4
    assert said.startswith("error: report is declared by a live beat, and would come back at once: take it out of the")


def test_the_retired_are_removed_together(beat: Any, document: Any, redis: Redis) -> None:
    for name in ("c1", "c2", "c3"):
        assert beat("add", name, "--func", FUNC, "--every", "5m").returncode == 0
    done = beat("remove", "--retired", "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        "no schedule is retired: there is nothing to remove\n",
    )
    for name in ("c1", "c2"):
        redis.hset(f"beat:schedule:{name}", "state", "retired")
        redis.sadd("beat:in:retired", name)
    assert document("remove", "--retired", "--yes")["removed"] == ["c1", "c2"]
    assert redis.smembers("beat:schedules") == {"report", "poll", "c3"}


# --- backfill --------------------------------------------------------------------------------------------------------


def test_a_backfill_is_rehearsed(beat: Any, document: Any) -> None:
    ends = ["--from", "2026-10-24", "--to", "2026-10-26"]  # on the 25th there are two hours from two to three
    told = beat("backfill", "report", *ends, "--dry-run").stdout.splitlines()
    stretch = "from Sat 2026-10-24 03:00 Berlin = 01:00Z to Mon 2026-10-26 03:00 Berlin = 02:00Z"
    assert told == [
        f"report: 3 ticks {stretch}, 2 at a time",
        "  Sat 2026-10-24 03:00 Berlin = 01:00Z",
        "  Sun 2026-10-25 03:00 Berlin = 02:00Z",
        "  Mon 2026-10-26 03:00 Berlin = 02:00Z",
    ]
    found = document("backfill", "report", *ends, "--dry-run")
    assert found["backfill"]["ticks"] == ["2026-10-24T01:00:00Z", "2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"]
    assert (found["dry_run"], found["runs"]) == (True, [])


BACKFILL = ["backfill", "report", "--from", "2026-10-25", "--to", "2026-10-26"]


def test_a_backfill_under_an_override_says_so_and_asks_on_a_terminal(
    beat: Any, terminal: Any, client: Client, store: Store
) -> None:
    client.named("bob").reschedule("report", "0 4 * * *")
    words = (
        "these are ticks of the rule that bob has put in the place of the code's: "
        "0 4 * * * Europe/Berlin, not 0 3 * * * Europe/Berlin\n"
    )
    assert beat(*BACKFILL, "--dry-run").stderr.startswith(words)
    code, told = terminal(*BACKFILL, typed=b"n\n", columns=200)
    assert (code, words in told) == (1, True)
    assert "Backfill the ticks of that rule? [y/N]: " in told
    assert queued(store) == []


@pytest.mark.parametrize(("more", "answer"), [([], b"y\n"), (["--yes"], b"")])
def test_a_backfill_under_an_override_runs_when_the_operator_agrees(
    more: list[str], answer: bytes, here: Path, client: Client, store: Store
) -> None:
    client.reschedule("report", "0 4 * * *")
    with commands.Terminal(*BACKFILL, *more, cwd=here, BEAT_REDIS_URL=url_of(store)) as asked:
        asked.type(answer)
        wait_until(lambda: len(queued(store)) == 2)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_backfill_under_an_override_asks_nobody_in_a_pipe(
    more: list[str], here: Path, client: Client, store: Store
) -> None:
    client.reschedule("report", "0 4 * * *")
    log = here / "backfill.log"
    process = logged(log, ["beat", *BACKFILL, *more], here, commands.environment(BEAT_REDIS_URL=url_of(store)))
    wait_until(lambda: len(queued(store)) == 2)
    process.kill()
    process.wait(60)
    assert ("these are ticks of the rule" in log.read_text()) is (not more)


@pytest.mark.usefixtures("worked")
def test_a_backfill_tells_each_run_as_it_ends(beat: Any, document: Any, store: Store) -> None:
    deploy(store, schedule("good", func="jobs.good", queue="jobs", timing=Cron("0 3 * * *")))
    done = beat("backfill", "good", "--from", "2026-10-24", "--to", "2026-10-26")
    first, *runs, last = done.stdout.splitlines()
    assert first.startswith("good: 3 ticks from Sat 2026-10-24 03:00 UTC to ")
    assert [run.split()[1] for run in runs] == ["2026-10-24", "2026-10-25", "2026-10-26"]
    assert all(re.search(r"  succeeded after \d.* beat_good_b[0-9a-f]{12}_\d+$", run) for run in runs)
    assert (last, done.stderr, done.returncode) == ("good: 3 runs: 3 succeeded", "", 0)
    again = beat("backfill", "good", "--from", "2026-10-24", "--to", "2026-10-26")
    assert (again.stdout, again.stderr) == (
        "good: no tick is left to make up for\n", "left out: 3 done by this backfill before\n",
    )  # fmt: skip
    wider = document("backfill", "good", "--from", "2026-10-23", "--to", "2026-10-26")
    assert (wider["backfill"]["ran"], [run["tick"] for run in wider["runs"]]) == (3, ["2026-10-23T03:00:00Z"])


@pytest.mark.usefixtures("worked")
def test_a_backfill_with_a_run_that_failed_ends_with_1(beat: Any, terminal: Any, store: Store) -> None:
    deploy(store, schedule("bad", func="jobs.bad", queue="jobs", timing=Cron("0 3 * * *")))
    done = beat("backfill", "bad", "--from", "2026-10-24", "--to", "2026-10-24")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "bad: 1 run: 1 failed")
    code, told = terminal("backfill", "bad", "--from", "2026-10-24", "--to", "2026-10-25", "--again")
    assert code == 1
    assert "█" in told
    assert "1 of 2" in told
    assert told.endswith("bad: 2 runs: 2 failed\n")


def _has_said(steps: Steps, number: int) -> bool:
    return len(steps.all()) >= number


def test_killed_at_any_moment_a_backfill_goes_on_and_every_tick_is_run_once(
    here: Path, url: str, store: Store, client: Client
) -> None:
    """The jobs themselves say that they ran, in a file that nobody can undo."""
    lay_out(here, {"jobs.py": "from tests.support.rq_worker import say\n\ndef tick(): say('start')\n"})
    deploy(store, schedule("tick", func="jobs.tick", queue="jobs", timing=Cron("0 * * * *")))
    steps = Steps(here / "steps.log")
    command = ["beat", "backfill", "tick", "--from", "2026-10-24", "--to", "2026-10-25", "--max-parallel", "3"]
    with Worker(url, steps, "jobs", options=["--worker-class", "rq.worker.SimpleWorker"]):
        for kills in range(1, 6):
            process = logged(here / f"b{kills}.log", command, here, {**environment(steps), "BEAT_REDIS_URL": url})
            wait_until(functools.partial(_has_said, steps, 7 * kills))
            process.kill()
            process.wait()
        last = logged(here / "last.log", command, here, {**environment(steps), "BEAT_REDIS_URL": url})
        assert last.wait(60) == 0
    ran = sorted(int(step.job.rpartition("_")[2]) for step in steps.all() if step.word == "start")
    first = clock.floor(clock.read("2026-10-24T00:00:00Z"))
    assert ran == [first + 3600 * n for n in range(48)]
    assert "left out: " in (here / "last.log").read_text()
    found = client.get("tick")
    assert (found.run_count, found.success_count) == (48, 48)
    [verified] = client.verify("tick")
    assert verified.sound
