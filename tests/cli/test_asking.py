"""What `beat history`, `why`, `verify`, `show`, `timeline` tell people and programs: real processes and terminals."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from beat.dev import embedded
from beat.history.ledger import Error
from beat.timing import clock
from tests.cli.test_command_line import beat, document, refused, without_colours
from tests.process.commands import on_a_terminal
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.lines import MINUTE, NINE, Ledger
from tests.support.rq_worker import Steps, Worker
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Iterator

NIGHTLY = {"cron": "0 3 * * *", "tz": "Europe/Berlin"}
THREE = clock.read("2026-11-16T02:00:00Z")  # in Berlin
DAY = timedelta(days=1)
TRACEBACK = 'Traceback (most recent call last):\n  File "app.py", line 7, in report\n    users["x"]\nKeyError: \'x\'\n'
ERROR = Error("KeyError", "'x'", TRACEBACK)
REFUSED = Error("RowsRefused", "these rows cannot be read, because they hold neither a name nor a number", "")
COMMANDS = [
    ["list"],
    ["history"],
    ["history", "nightly"],
    ["why", "nightly", "03:00"],
    ["verify"],
    ["show", "nightly"],
    ["timeline"],
]


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """A directory in which a private Redis runs, as `beat dev` would have it."""
    directory = Path(tempfile.mkdtemp(prefix="beat-"))
    (directory / "pyproject.toml").write_text("", encoding="utf-8")
    with embedded.start(directory / embedded.DIRECTORY):
        yield directory
    shutil.rmtree(directory)


@pytest.fixture
def url(running: Path) -> str:
    found = embedded.running(running / embedded.DIRECTORY)
    assert found
    return found


@pytest.fixture
def redis(url: str) -> Iterator[Redis]:
    with Redis.from_url(url, decode_responses=True) as client:
        client.flushall()
        yield client


def nightly() -> Ledger:
    """Three nights in Berlin: the first succeeded, the second was skipped, the third failed."""
    book = Ledger("nightly", NIGHTLY).registered(THREE - 3 * DAY, THREE - 2 * DAY)
    book.fired(THREE - 2 * DAY).ended(THREE - 2 * DAY, message="42 rows copied")
    book.skipped(THREE - DAY, THREE - DAY, 1)
    book.fired(THREE).ended(THREE, "failed", error=ERROR)
    book.next = THREE + DAY
    return book


@pytest.fixture
def here(running: Path, redis: Redis) -> Path:
    """The directory, with the three nights in its Redis."""
    nightly().keep(redis)
    return running


def minutely(redis: Redis, schedule_id: str = "often", runs: int = 3) -> Ledger:
    book = Ledger(schedule_id).registered(NINE - MINUTE, NINE)
    for n in range(runs):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE)
    return book.keep(redis)


def lines(*arguments: str, cwd: Path, **environ: str) -> list[str]:
    done = beat(*arguments, cwd=cwd, **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# beat history


def test_the_history_of_a_schedule_is_a_table_in_its_zone_and_in_utc(here: Path) -> None:
    assert lines("history", "nightly", cwd=here) == [
        "Europe/Berlin     UTC     outcome     late  wait  took   note",
        "2026-11-16 03:00  02:00Z  failed      4 ms  2 s   3.1 s  KeyError: 'x'",
        "2026-11-15 03:00  02:00Z  skipped                        misfire",
        "2026-11-14 03:00  02:00Z  succeeded   4 ms  2 s   3.1 s  42 rows copied",
        "2026-11-13 03:00  02:00Z  registered                     0 3 * * * Europe/Berlin, next 2026-11-14 03:00",
    ]


@pytest.mark.parametrize("split", [True, False])
def test_the_url_and_json_may_stand_before_the_command(here: Path, url: str, tmp_path: Path, *, split: bool) -> None:
    first = ["--redis-url", url] if split else [f"--redis-url={url}"]
    found = document(*first, "--json", "history", "nightly", "-n", "1", cwd=tmp_path)
    assert found == document("history", "nightly", "-n", "1", cwd=here)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--redis-url", "redis://x"], "--redis-url goes with a command, as in beat list --redis-url URL"),
        (["--json"], "--json goes with a command, as in beat list --json"),
        (["--redis-url"], "--redis-url goes with a command"),
        (["--redis-url", "redis://x", "check", "tasks"], "No such option"),
        (["--redis-url", "redis://x", "lst"], "there is no command 'lst'. Did you mean 'list'?"),
    ],
)
def test_an_option_before_no_command_that_takes_it_is_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    code, said = refused(*arguments, cwd=tmp_path)
    assert code == 2
    assert words in said


def test_columns_that_say_nothing_are_left_out(here: Path, redis: Redis) -> None:
    Ledger("often").registered(NINE - MINUTE, NINE).fired(NINE).keep(redis)
    assert lines("history", "often", "-n", "1", cwd=here) == [
        "UTC               outcome  late",
        "2026-11-16 09:00  open     4 ms",
    ]


def test_the_history_of_all_says_whose_each_line_is(here: Path, redis: Redis) -> None:
    minutely(redis, runs=1)
    assert lines("history", "-n", "4", cwd=here) == [
        "UTC               local      schedule  outcome     note",
        "2026-11-16 09:00             often     succeeded",
        "2026-11-16 08:59             often     registered  * * * * *, next 2026-11-16 09:00",
        "2026-11-16 02:00  03:00 CET  nightly   failed      KeyError: 'x'",
        "2026-11-15 02:00  03:00 CET  nightly   skipped     misfire",
    ]


def test_only_what_failed_or_was_lost(here: Path, redis: Redis) -> None:
    book = Ledger("often").registered(NINE - MINUTE, NINE).fired(NINE)
    book.ended(NINE, "lost", reason="RQ has no record of it").keep(redis)
    found = document("history", "--failed", cwd=here)["lines"]
    assert [(line["schedule"], line["state"]) for line in found] == [("often", "lost"), ("nightly", "failed")]


def test_since_counts_in_the_zone_of_the_schedule(here: Path) -> None:
    found = document("history", "nightly", "--since", "2026-11-16", cwd=here)["lines"]
    assert [line["tick"] for line in found] == ["2026-11-16T02:00:00Z"]


def test_at_length_a_line_says_all_that_is_known(here: Path) -> None:
    told = lines("history", "nightly", "-v", "-n", "2", cwd=here)
    assert told[0] == (
        "nightly, Mon 2026-11-16 03:00 Berlin = 02:00Z: enqueued by web-2 4 ms late, started 2 s later by worker x, "
        "failed after 3.1 s: KeyError: 'x'"
    )
    assert told[1] == "job           beat_nightly_1794794400"
    assert told[told.index("Traceback (most recent call last):") + 3] == "KeyError: 'x'"
    assert told[-1].startswith("nightly, Sun 2026-11-15 03:00 Berlin = 02:00Z: skipped by web-2: misfire")


def test_long_errors_are_for_those_who_ask(here: Path) -> None:
    assert not any("Traceback" in line for line in lines("history", "nightly", cwd=here))


def test_where_there_is_nothing_it_says_so_and_ends_well(here: Path) -> None:
    for arguments, words in (
        (["--since", "1s"], "the ledger holds no line since then"),
        (["nightly", "--since", "1s", "--failed"], "the ledger holds no failed run of nightly since then"),
    ):
        done = beat("history", *arguments, cwd=here)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{words}\n")
    assert document("history", "--since", "1s", cwd=here)["lines"] == []


# beat why


def test_why_says_what_became_of_a_tick(here: Path) -> None:
    for time in (["2026-11-16", "03:00"], ["2026-11-16 03:00"], ["2026-11-16T02:00Z"]):
        told = lines("why", "nightly", *time, cwd=here)
        assert told[0] == (
            "Mon 2026-11-16 03:00 Berlin = 02:00Z: enqueued by web-2 4 ms late, started 2 s later by worker x, "
            "failed after 3.1 s: KeyError: 'x'"
        )
        assert told[-1] == "KeyError: 'x'"


def test_why_says_which_ticks_are_near(here: Path) -> None:
    (told,) = lines("why", "nightly", "2026-11-16", "03:10", cwd=here)
    assert told == (
        "Mon 2026-11-16 03:10 Berlin = 02:10Z: not a tick of this schedule: "
        "the nearest are 03:00 Berlin = 02:00Z and Tue 2026-11-17 03:00 Berlin = 02:00Z"
    )


def test_why_says_what_nobody_knows(here: Path) -> None:
    (told,) = lines("why", "nightly", "2026-11-01", "03:00", cwd=here)
    assert told.endswith("the schedule was not there yet: it was registered at Fri 2026-11-13 03:00 Berlin = 02:00Z")


def test_why_says_which_of_two_times_is_meant(here: Path) -> None:
    done = beat("why", "nightly", "2026-10-25", "02:30", cwd=here)
    assert done.stderr.startswith("02:30 comes twice on 2026-10-25 in Europe/Berlin")
    assert done.stdout.startswith("Sun 2026-10-25 02:30 Berlin = 00:30Z: ")


def test_why_for_programs(here: Path) -> None:
    found = document("why", "nightly", "2026-11-16T02:00Z", cwd=here)
    assert (found["answer"], found["instant"], found["tz"]) == ("enqueued", "2026-11-16T02:00:00Z", "Europe/Berlin")
    assert found["runs"][0]["error"]["type"] == "KeyError"
    assert document("why", "nightly", "2026-11-15T02:00Z", cwd=here)["skipped"]["reason"] == "misfire"
    nothing = document("why", "nightly", "2026-11-15T03:00Z", cwd=here)
    assert (nothing["answer"], nothing["before"], nothing["after"]) == (
        "not_a_tick", "2026-11-15T02:00:00Z", "2026-11-16T02:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-11-16", "error: '2026-11-16' is a day, and a tick has a time: write '2026-11-16 03:00'\n"),
        ("soon", "error: 'soon' is not a time: write 03:00, '2026-11-16 03:00' (both in Europe/Berlin)"),
    ],
)
def test_why_refuses_what_is_no_time(here: Path, time: str, words: str) -> None:
    code, said = refused("why", "nightly", time, cwd=here)
    assert code == 2
    assert said.startswith(words)


@pytest.mark.parametrize("time", [[], ["last"], ["Last"]])
def test_why_without_a_time_explains_the_latest_tick(here: Path, redis: Redis, time: list[str]) -> None:
    redis.hset("beat:schedule:nightly", "next_run", clock.text(clock.now().replace(microsecond=0) + DAY))
    told = lines("why", "nightly", *time, cwd=here)
    assert told[0].startswith("Mon 2026-11-16 03:00 Berlin = 02:00Z: enqueued by web-2 4 ms late")


def test_why_without_a_time_explains_a_tick_that_is_due_or_held(here: Path, redis: Redis) -> None:
    tick = (clock.now() - DAY).replace(microsecond=0, hour=2, minute=0, second=0)
    redis.hset("beat:schedule:nightly", mapping={"next_run": clock.text(tick), "state": "paused", "paused_by": "ann"})
    found = document("why", "nightly", cwd=here)
    assert found["answer"] == "held"
    assert clock.now() - DAY < datetime.fromisoformat(found["instant"]) <= clock.now()
    assert "paused by ann" in found["sentence"]


def test_why_now_explains_this_minute(here: Path, redis: Redis) -> None:
    minutely(redis)
    redis.hset("beat:schedule:often", "next_run", clock.text(clock.now().replace(second=0, microsecond=0)))
    assert document("why", "often", "now", cwd=here)["answer"] == "due"
    assert document("why", "nightly", "now", cwd=here)["answer"] in {"not_a_tick", "due"}


def test_why_of_a_schedule_that_has_not_ticked_names_the_first_tick(here: Path, redis: Redis) -> None:
    first = clock.now().replace(microsecond=0) + DAY
    Ledger("young").registered(clock.now(), first).keep(redis)
    (told,) = lines("why", "young", cwd=here)
    assert told.startswith("no tick of young is past; its first is ")
    assert document("why", "young", cwd=here)["next_run"] == clock.text(first)


# beat next


def test_next_of_an_id_shows_the_ticks_of_that_schedule(here: Path, redis: Redis) -> None:
    redis.hset("beat:schedule:nightly", "next_run", "2027-11-16T02:00:00Z")
    done = beat("next", "nightly", "-n", "2", cwd=here)
    assert (done.returncode, done.stderr) == (0, "no scheduler is running: nothing fires until one runs\n")
    head, _, columns, *ticks = done.stdout.splitlines()
    assert head == "nightly: at 03:00, every day, Europe/Berlin time"
    assert columns.split("  ")[0] == "Europe/Berlin"
    assert [tick[:24] for tick in ticks] == ["Tue 2027-11-16 03:00 CET", "Wed 2027-11-17 03:00 CET"]
    found = document("next", "nightly", "-n", "1", "--from", "2028-01-01", cwd=here)
    assert (found["schedule"], found["tz"], found["note"]) == ("nightly", "Europe/Berlin", None)
    assert [tick["utc"] for tick in found["ticks"]] == ["2028-01-01T02:00:00Z"]


def test_next_of_a_paused_schedule_says_so(here: Path, redis: Redis) -> None:
    redis.hset("beat:schedule:nightly", mapping={"state": "paused", "paused_by": "ann"})
    done = beat("next", "nightly", cwd=here)
    assert done.stdout == "nightly: at 03:00, every day, Europe/Berlin time\n"
    assert done.stderr == "the schedule is paused by ann, until an operator resumes it\n"


def test_next_of_an_unknown_id_says_that_it_is_neither(here: Path) -> None:
    code, said = refused("next", "nightli", cwd=here)
    assert code == 2
    assert "is neither five fields nor the name of a preset" in said
    assert "Nor is it the id of a schedule in Redis: there is no schedule 'nightli'. Did you mean 'nightly'?" in said
    code, said = refused("next", "nightly", "--redis-url", "redis://127.0.0.1:1/0", cwd=here)
    assert code == 2
    assert "Nor can Redis tell whether it is the id of a schedule" in said


@pytest.mark.parametrize("word", ["15m", "1h30m", "90"])
def test_next_of_a_length_of_time_suggests_every(here: Path, word: str) -> None:
    code, said = refused("next", word, cwd=here)
    assert (code, said.splitlines()[0]) == (
        2, f"error: {word} is a length of time, not an expression: beat next --every {word}",
    )  # fmt: skip


# beat verify


@pytest.fixture
def at_rest(here: Path, redis: Redis) -> Path:
    """The same, and nothing is pending, whatever day it is."""
    redis.hset("beat:schedule:nightly", "state", "disabled")
    return here


def test_every_tick_is_accounted_for(at_rest: Path) -> None:
    assert lines("verify", "nightly", cwd=at_rest) == ["3 expected, 3 accounted, 0 missing, 0 double"]


def test_all_schedules_are_a_table_and_a_sum(at_rest: Path, redis: Redis) -> None:
    minutely(redis, runs=10).keep(redis, state="disabled")  # so that nothing is pending
    assert lines("verify", cwd=at_rest) == [
        "schedule  expected  accounted  missing  double",
        "nightly   3         3          0        0",
        "often     10        10         0        0",
        "13 expected, 13 accounted, 0 missing, 0 double",
    ]


def test_what_is_missing_is_named_and_ends_with_1(here: Path, redis: Redis) -> None:
    book = minutely(redis, runs=5)
    del book.entries[3:7]  # 9:01 and 9:02, with their outcomes
    book.keep(redis, success_count="3", state="disabled")
    done = beat("verify", "often", cwd=here)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "often: problem: missing: 2 ticks from 2026-11-16T09:01:00Z to 2026-11-16T09:02:00Z",
        "often: problem: run 4 of 2026-11-16T09:03:00.004Z follows run 1",
        "5 expected, 3 accounted, 2 missing, 0 double",
    ]


def test_what_was_trimmed_is_not_claimed(at_rest: Path, redis: Redis) -> None:
    redis.ltrim("beat:runs:nightly", 0, 1)
    assert lines("verify", "nightly", cwd=at_rest) == [
        "1 expected, 1 accounted, 0 missing, 0 double",
        "trimmed before 2026-11-16T02:00:00Z: earlier ticks are not claimed",
    ]


def test_verify_for_programs(here: Path, redis: Redis) -> None:
    found = document("verify", "--since", "2026-11-16", cwd=here)
    assert (found["sound"], found["schedules"][0]["expected"]) == (True, 1)
    redis.hset("beat:schedule:nightly", "run_count", 7)
    found = document("verify", cwd=here)
    assert not found["sound"]
    assert len(found["schedules"][0]["problems"]) == 1
    assert beat("verify", "--json", cwd=here).returncode == 1


@pytest.mark.parametrize("unsound", ["nightly", "often"])
def test_verify_of_one_sound_and_one_unsound_schedule_is_not_sound(here: Path, redis: Redis, unsound: str) -> None:
    minutely(redis)
    assert document("verify", "--since", "2026-11-16", cwd=here)["sound"]
    redis.hset(f"beat:schedule:{unsound}", "run_count", 7)
    found = document("verify", cwd=here)
    assert {each["schedule"]: each["sound"] for each in found["schedules"]} == {
        "nightly": unsound != "nightly",
        "often": unsound != "often",
    }
    assert found["sound"] is False
    assert beat("verify", "--json", cwd=here).returncode == 1


def test_an_empty_redis_is_sound(running: Path, redis: Redis) -> None:
    assert redis.dbsize() == 0
    assert lines("verify", cwd=running) == ["0 expected, 0 accounted, 0 missing, 0 double"]


# beat show


def test_a_schedule_is_shown_with_its_statistics(here: Path) -> None:
    told = dict(line.split("  ", 1) for line in lines("show", "nightly", cwd=here) if line)
    shown = {name: value.strip() for name, value in told.items()}
    assert shown["schedule"] == "nightly"
    assert shown["state"] == "active"
    assert shown["when"] == "at 03:00, every day, Europe/Berlin time"
    assert shown["next"].startswith("Tue 2026-11-17 03:00 Berlin = 02:00Z (")
    assert shown["of the ledger"] == "since Fri 2026-11-13 03:00 Berlin = 02:00Z"
    assert shown["success rate"] == "50.0%"
    assert shown["duration"] == "p50 3.1 s, p95 3.1 s, max 3.1 s"
    assert shown["lateness"] == "p50 4 ms, p95 4 ms, max 4 ms"
    assert shown["queue wait"] == "p50 2 s, p95 2 s, max 2 s"
    assert shown["skipped"] == "1 misfire"


def test_show_for_programs(here: Path) -> None:
    found = document("show", "nightly", cwd=here)
    assert (found["schedule"]["id"], found["schedule"]["next_run"]) == ("nightly", "2026-11-17T02:00:00Z")
    assert found["schedule"]["definition"]["func"] == "app.tasks.report"
    assert found["statistics"]["late"] == {"count": 2, "p50": 0.004, "p95": 0.004, "max": 0.004}
    assert found["statistics"]["skipped"] == {"misfire": 1}


# beat timeline


def just_now(redis: Redis, *ids: str, ended: str = "succeeded") -> datetime:
    """Hourly schedules that ran two minutes ago; the next full hour comes back."""
    then = clock.now().replace(microsecond=0) - 2 * MINUTE
    following = then.replace(minute=0, second=0) + timedelta(hours=1, minutes=0 if then.minute < 57 else 60)
    for each in ids:
        book = Ledger(each, {"cron": "0 * * * *", "tz": "UTC"}).registered(then - DAY, then).fired(then, following)
        book.ended(then, ended).keep(redis)
    return following


def test_a_timeline_draws_past_and_future_and_names_the_pile_ups(running: Path, redis: Redis) -> None:
    following = just_now(redis, *(f"hourly{n:02}" for n in range(12)))
    just_now(redis, "bad", ended="failed")
    shown = lines("timeline", cwd=running)
    assert shown[0].startswith("jobs per hour ")
    assert shown[0].endswith(" UTC")
    assert shown[1].startswith("    13 ┤")
    assert next(line for line in shown if line.startswith("failed")).split() == ["failed", "1"]
    assert "past: 13 jobs (12 succeeded, 1 failed)" in shown
    place = next(n for n, line in enumerate(shown) if line.endswith("schedules that pile up"))
    assert shown[place].split()[:5] == ["UTC", "from", "now", "due", "times"]
    assert shown[place + 1].startswith(f"{following:%Y-%m-%d %H:%M}  in ")
    assert shown[place + 1].endswith("  bad, hourly00, hourly01 and 10 more")
    assert shown[-1].startswith("To spread schedules, write H for the minute, as in 'H 3 * * *', or give them jitter=")


def test_a_timeline_fits_the_terminal_and_has_colours_there_alone(running: Path, redis: Redis) -> None:
    just_now(redis, "good")
    for columns, step in ((80, "hour"), (200, "20 minutes")):
        _, seen = on_a_terminal("timeline", cwd=running, columns=columns)
        assert without_colours(seen).startswith(f"jobs per {step} ")
        assert "\x1b[32m" in seen
        assert max(map(len, without_colours(seen).splitlines())) <= columns
    assert "\x1b" not in beat("timeline", cwd=running).stdout
    assert "\x1b" not in on_a_terminal("timeline", cwd=running, NO_COLOR="1")[1]


def test_a_timeline_is_drawn_in_the_zone_that_is_asked_for(running: Path, redis: Redis) -> None:
    just_now(redis, "good")
    assert lines("timeline", "--tz", "Asia/Kolkata", cwd=running)[0].endswith(" IST")
    assert lines("timeline", cwd=running, BEAT_TZ="Asia/Tokyo")[0].endswith(" JST")
    code, said = refused("timeline", "--tz", "Tokyo", cwd=running)
    assert (code, said.startswith("error: time zone 'Tokyo' is not known")) == (2, True)


def test_a_timeline_for_programs(running: Path, redis: Redis) -> None:
    following = just_now(redis, *(f"hourly{n:02}" for n in range(12)))
    found = document("timeline", "--hours", "2", cwd=running)
    assert (found["schedules"], found["active"], found["step"]) == (12, 12, 300)
    assert sum(each["succeeded"] for each in found["slices"]) == 12
    assert {"start", "end", "failed", "stopped", "lost", "open", "skipped", "coming"} < set(found["slices"][0])
    [pile] = found["pile_ups"]
    assert (pile["at"], pile["schedules"], pile["names"][0]) == (clock.text(following), 12, "hourly00")


@pytest.mark.parametrize("hours", ["0", "169", "1.5", "a day"])
def test_hours_beyond_a_week_are_refused(running: Path, hours: str) -> None:
    code, said = refused("timeline", "--hours", hours, cwd=running)
    assert code == 2
    assert said.startswith("error: Invalid value for '--hours': ")


def test_without_a_schedule_a_timeline_says_what_to_do(running: Path, redis: Redis) -> None:
    assert not redis.keys()
    done = beat("timeline", cwd=running)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "there is no schedule yet: beat run MODULE registers those of your code\n"
    assert document("timeline", cwd=running)["schedules"] == 0


# Terminals


@pytest.mark.parametrize(("columns", "command"), [*((80, each) for each in COMMANDS), (120, ["history"])])
def test_nothing_runs_over_the_edge_of_a_terminal(here: Path, redis: Redis, columns: int, command: list[str]) -> None:
    book = Ledger("a-schedule-with-quite-a-long-name", NIGHTLY).registered(THREE - DAY, THREE).fired(THREE)
    book.ended(THREE, "failed", error=REFUSED).keep(redis)
    _, seen = on_a_terminal(*command, cwd=here, columns=columns)
    shown = without_colours(seen).splitlines()
    assert max(map(len, shown)) <= columns
    if command == ["history"]:
        assert any("a-schedule-with-quite-a-long-name" in line for line in shown), "ids are never cut"


def test_the_history_of_one_schedule_is_a_table_on_80_columns(here: Path) -> None:
    _, seen = on_a_terminal("history", "nightly", cwd=here, columns=80)
    assert without_colours(seen).splitlines()[0].split() == [
        "Europe/Berlin", "UTC", "outcome", "late", "wait", "took", "note",
    ]  # fmt: skip


def test_nothing_in_a_ledger_can_steer_the_terminal(running: Path, redis: Redis) -> None:
    nasty = "\x1b[2J\x07\x9b31m\n\u202e"
    book = Ledger("nightly", NIGHTLY, beat=nasty).registered(THREE - DAY, THREE).fired(THREE)
    book.ended(THREE, "failed", error=Error(nasty, nasty, nasty), worker=nasty, message=nasty, details={nasty: nasty})
    book.skipped(THREE + DAY, THREE + DAY, 1, reason=nasty)
    book.keep(redis, last_error=nasty, state=nasty)
    for command in (
        ["history", "-v"],
        ["history"],
        ["why", "nightly", "2026-11-16T02:00Z"],
        ["verify"],
        ["show", "nightly"],
        ["timeline"],
    ):
        _, seen = on_a_terminal(*command, cwd=running)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"}.intersection(without_colours(seen)), command


# Which Redis


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_a_redis_there_is_a_sentence(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    nowhere = f"unix://joe:hunter2@{tmp_path}/none.sock"
    code, said = refused(*command, "--redis-url", nowhere, cwd=tmp_path)
    assert code == 69
    assert said.startswith(f"error: no Redis answers at unix://joe:***@{tmp_path}/none.sock: ")
    assert said.count("\n") == 1


def test_a_url_that_is_set_wins_over_the_private_redis(here: Path) -> None:
    code, said = refused("history", cwd=here, BEAT_REDIS_URL=f"unix://{here}/none.sock")
    assert code == 69
    assert f"{here}/none.sock" in said


def test_a_url_that_redis_py_cannot_use_is_configuration(here: Path, url: str) -> None:
    code, said = refused("history", "--redis-url", f"{url}&colour=red", cwd=here)
    assert code == 78
    assert "colour" in said


def test_the_prefix_is_that_of_the_settings(here: Path, redis: Redis) -> None:
    nightly().keep(redis, "app:")
    redis.hset("app:schedule:nightly", "state", "paused")
    assert document("show", "nightly", cwd=here, BEAT_PREFIX="app:")["schedule"]["state"] == "paused"


@pytest.mark.parametrize("command", ["history", "why", "verify", "show"])
def test_an_unknown_schedule_is_not_found(here: Path, command: str) -> None:
    time = ["03:00"] if command == "why" else []
    code, said = refused(command, "nightl", *time, cwd=here)
    assert (code, said) == (3, "error: there is no schedule 'nightl'. Did you mean 'nightly'?\n")


# With a real beat and a real worker


def test_that_nobody_works_at_a_queue_is_told(home: Path) -> None:
    lay_out(home, {"pyproject.toml": "", "tasks.py": TASKS})
    with (
        embedded.start(home / embedded.DIRECTORY) as private,
        Redis.from_url(private.url, decode_responses=True) as redis,
    ):
        with Beat(home, private.url) as running:
            wait_until(lambda: redis.hget("beat:schedule:well", "last_run"), what=lambda: running.log)
        alone = "no live worker reads default"
        assert alone in beat("show", "well", cwd=home).stdout
        (queue,) = document("show", "well", cwd=home)["queues"]
        assert (queue["name"], queue["workers"], queue["queued"] > 0) == ("default", 0, True)
        tick = str(redis.hget("beat:schedule:well", "last_run"))
        assert f", and waits in its queue; {alone}" in beat("why", "well", tick, cwd=home).stdout
        assert [each["name"] for each in document("why", "well", tick, cwd=home)["unread"]] == ["default"]
        with Worker(private.url, Steps(home / "steps.log"), "default", "other") as worker:
            wait_until(lambda: document("show", "well", cwd=home)["queues"][0]["workers"], what=lambda: worker.log)
            assert alone not in beat("show", "well", cwd=home).stdout


def test_what_a_beat_and_a_worker_did_is_told(home: Path) -> None:
    lay_out(home, {"pyproject.toml": "", "tasks.py": TASKS})
    with (
        embedded.start(home / embedded.DIRECTORY) as private,
        Redis.from_url(private.url, decode_responses=True) as redis,
    ):
        with Beat(home, private.url), Worker(private.url, Steps(home / "steps.log")) as worker:
            wait_until(lambda: int(redis.hget("beat:schedule:well", "success_count") or 0) >= 2)
            wait_until(lambda: int(redis.hget("beat:schedule:badly", "failure_count") or 0) >= 1)
            worker.kill()
        fired = document("history", "badly", "--failed", "-n", "1", cwd=home)["lines"][0]
        assert (fired["state"], fired["error"]["type"]) == ("failed", "KeyError")
        told = beat("why", "badly", fired["tick"], cwd=home).stdout
        assert f"enqueued by {fired['beat']} " in told
        assert f"by worker {fired['worker']}, failed after " in told
        assert told.rstrip().endswith("KeyError: 'x'")
        assert "0 missing, 0 double" in lines("verify", cwd=home)[-1]
        assert document("show", "well", cwd=home)["statistics"]["success_rate"] == 1.0
        assert document("history", "well", "-n", "1", cwd=home)["lines"][0]["type"] == "run"


TASKS = """
from beat import periodic

@periodic(every="1s")
def well():
    return {"success": True, "message": "42 rows copied"}

@periodic(every="2s")
def badly():
    raise KeyError("x")
"""
