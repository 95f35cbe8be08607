"""`beat list` in real processes: piped, on narrow and wide terminals, for programs, and drawn again and again."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from redis import Redis

from beat.dev import embedded
from beat.schedule.options import Options
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.timing import clock
from tests.cli.test_command_line import PYTHON, beat, document, refused, run, without_colours
from tests.process.commands import Terminal, on_a_terminal
from tests.support.lines import MINUTE, Ledger
from tests.support.rq_worker import Steps, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONG_ID = "an_id_of_a_hundred_characters_" + "x" * 70
KEYS = Keys()
OTHERS = {
    "state", "next_run", "due_at", "last_run", "last_enqueued", "last_success", "last_failure", "last_error",
    "last_duration", "run_count", "manual_count", "skip_count", "success_count", "failure_count", "stopped_count",
    "consecutive_failures", "created_at", "updated_at", "version", "source", "app", "deferred_by", "unannounced_at",
    "override", "pause", "last",
}  # fmt: skip
"""What stands beside the definition of a schedule."""


@pytest.fixture(scope="module")
def running() -> Iterator[Path]:
    """A directory in which a private Redis runs, as `beat dev` would have it."""
    directory = Path(tempfile.mkdtemp(prefix="beat-"))
    (directory / "pyproject.toml").write_text("", encoding="utf-8")
    with embedded.start(directory / embedded.DIRECTORY):
        yield directory
    shutil.rmtree(directory)


@pytest.fixture
def redis(running: Path) -> Iterator[Redis]:
    url = embedded.running(running / embedded.DIRECTORY)
    assert url
    with Redis.from_url(url, decode_responses=True) as client:
        client.flushall()
        yield client


def now(redis: Redis) -> datetime:
    return clock.at(int(redis.time()[0]))


def keep(redis: Redis, schedule_id: str, outcomes: str = "", cron: str = "* * * * *", **fields: str) -> None:
    """A schedule with a run a minute: `s` succeeded, `f` failed, `k` was skipped, `o` is open."""
    begin = now(redis).replace(second=0) - (len(outcomes) + 1) * MINUTE
    book = Ledger(schedule_id, {"cron": cron, "tz": fields.get("tz", "UTC")}).registered(begin, begin + MINUTE)
    for n, outcome in enumerate(outcomes, 1):
        tick = begin + n * MINUTE
        if outcome == "k":
            book.skipped(tick, tick, 1)
            continue
        book.fired(tick)
        if outcome != "o":
            book.ended(tick, {"s": "succeeded", "f": "failed"}[outcome])
    book.keep(redis, **{"func": "app.tasks.report", "queue": "default", **fields})
    with Redis.from_url(url_of(redis)) as client:
        Store(client, KEYS).repair([schedule_id])


def url_of(redis: Redis) -> str:
    return f"unix://{redis.connection_pool.connection_kwargs['path']}"


def alive(redis: Redis, name: str, passed: timedelta) -> None:
    redis.zadd(KEYS.instances, {name: clock.to_ms(now(redis)) + 20_000})
    redis.hset(KEYS.instance(name), mapping={"last_pass": clock.text(now(redis) - passed), "host": "here", "pid": "7"})


def at(redis: Redis, away: timedelta) -> dict[str, str]:
    """A next tick so far away, and half a second more."""
    tick = clock.text(now(redis) + away + timedelta(seconds=30))
    return {"next_run": tick, "due_at": tick}


@pytest.fixture
def here(running: Path, redis: Redis) -> Path:
    """Five schedules: each of another kind."""
    keep(redis, "nightly", "s" * 25 + "kf", "0 3 * * *", tz="Europe/Berlin", consecutive_failures="2",
         last_error="KeyError: 'x'", **at(redis, 9 * HOUR))  # fmt: skip
    keep(redis, "poll", "ssso", **at(redis, 2 * HOUR))
    keep(redis, "customer_42", "s", state="paused", pause_until=clock.text(now(redis) + 3 * DAY),
         pause_reason="the warehouse moves", paused_by="ann@ops", paused_at=clock.text(now(redis)))  # fmt: skip
    keep(redis, "search", "ss", override='{"every":"5m"}', overridden_by="bob@ops", **at(redis, HOUR))
    keep(redis, "ended", "s", state="retired")
    return running


def listed(*arguments: str, cwd: Path) -> list[str]:
    done = beat("list", *arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line)


# For people


def test_piped_it_is_plain_and_has_all_columns(here: Path) -> None:
    head, *lines = listed(cwd=here)
    assert cells(head) == ["id", "schedule", "next (UTC)", "last run", "state", "runs", "note"]
    rows = {line.split()[0]: cells(line) for line in lines[:5]}
    assert list(rows) == ["customer_42", "ended", "nightly", "poll", "search"]
    assert re.fullmatch(r"paused until \w{3} \d\d:\d\d(:\d\d)?", rows["customer_42"][2])
    assert rows["customer_42"][-1] == "paused by ann@ops: the warehouse moves"
    assert rows["nightly"][1] == "0 3 * * * Europe/Berlin"
    assert re.fullmatch(r"(\w{3} )?\d\d:\d\d(:\d\d)?, in 9h", rows["nightly"][2])
    assert re.fullmatch(r"failed 3\.1 s, .* ago", rows["nightly"][3])
    assert rows["nightly"][4:] == ["active", "▅" * 18 + "·✗", "2 failed in a row: KeyError: 'x'"]
    assert re.fullmatch(r"open .*", rows["poll"][3])
    assert rows["poll"][5] == "▅▅▅○"
    assert rows["search"][1] == "* * * * * (override)"
    assert rows["ended"][3] == "retired", "and nothing is next"


def test_below_it_stand_how_many_there_are_and_who_is_alive(here: Path, redis: Redis) -> None:
    counted = "5 schedules, 1 failing, 1 paused, 1 overridden, 1 retired"
    *_, sums, rules, warning, no_worker = listed(cwd=here)
    assert no_worker == "warning: no live worker reads the queue default: rq worker default"
    assert (sums, rules) == (counted, "a rule with (override) or ! is not the code's: beat show ID has both")
    assert warning == "warning: no scheduler is running: nothing fires until one runs (beat run MODULE)"
    alive(redis, "web-1", timedelta(seconds=90))
    assert re.fullmatch(rf"{counted}, 1 scheduler, checked 1m3\ds ago, which is late", listed(cwd=here)[-3])
    alive(redis, "web-2", timedelta(milliseconds=-10_000))
    assert listed(cwd=here)[-3] == f"{counted}, 2 schedulers, checked 0 ms ago"
    assert listed("--state", "paused", cwd=here)[-1].startswith("1 of 5 schedules, 1 failing, ")


def test_a_page_says_how_to_go_on(here: Path) -> None:
    for order in ("id", "next", "last", "failures"):
        whole = [line.split()[0] for line in listed("--sort", order, cwd=here)[1:6]]
        found: list[str] = []
        more: list[str] = []
        while True:
            lines = listed("--sort", order, "-n", "2", *more, cwd=here)
            found += [line.split()[0] for line in lines[1 : lines.index("")]]
            if "--after" not in lines[-1]:
                break
            more = lines[-1].split()[-2:]
        assert (sorted(whole), found) == (sorted(found), whole), order


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--failing"], ["nightly"]),
        (["--overridden"], ["search"]),
        (["--state", "retired"], ["ended"]),
        (["--func", "app.*", "--queue", "default", "po"], ["poll"]),
        (["*_42"], ["customer_42"]),
    ],
    ids=" ".join,
)
def test_filters(here: Path, asked: list[str], expected: list[str]) -> None:
    lines = listed(*asked, cwd=here)
    assert [line.split()[0] for line in lines[1 : lines.index("")]] == expected


def test_where_there_is_none_it_says_so(here: Path, redis: Redis) -> None:
    assert listed("nobody", cwd=here)[0].startswith("none of 5 schedules, 1 failing")
    redis.flushall()
    (told,) = listed(cwd=here)
    assert told.startswith("there is no schedule yet: write one with @periodic, and beat run MODULE registers it; ")


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (40, ["id", "next", "last run"]),
        (64, ["id", "schedule", "next", "last run", "runs"]),
        (80, ["id", "schedule", "next", "last run", "note"]),
        (140, ["id", "schedule", "next (UTC)", "last run", "state", "runs", "note"]),
        (200, ["id", "schedule", "next (UTC)", "last run", "state", "runs", "note"]),
    ],
)
def test_a_terminal_has_the_columns_for_which_there_is_room(here: Path, columns: int, headings: list[str]) -> None:
    code, seen = on_a_terminal("list", "l", cwd=here, columns=columns)  # nightly and poll
    shown = without_colours(seen).splitlines()
    assert (code, cells(shown[0])) == (0, headings)
    assert max(map(len, shown)) <= columns
    assert ("\x1b[31m✗" in seen) is ("runs" in headings)


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (140, ["id", "schedule", "next (UTC)", "last run", "note"]),
        (170, ["id", "schedule", "next (UTC)", "last run", "state", "note"]),
        (220, ["id", "schedule", "next (UTC)", "last run", "state", "runs", "note"]),
    ],
)
def test_a_note_stays_longer_than_the_bars(here: Path, redis: Redis, columns: int, headings: list[str]) -> None:
    error = "ConnectionError: the warehouse does not answer"
    keep(redis, "nightly_report_of_the_warehouse", "s" * 20 + "ff", "30 3 * * mon-fri", tz="America/New_York",
         consecutive_failures="2", last_error=error, **at(redis, 9 * HOUR))  # fmt: skip
    keep(redis, "customer_42_report_of_the_week", "s", state="paused", paused_by="ann@ops",
         pause_until=clock.text(now(redis) + 3 * DAY), paused_at=clock.text(now(redis)))  # fmt: skip
    code, seen = on_a_terminal("list", "report", cwd=here, columns=columns)
    shown = without_colours(seen).splitlines()
    assert (code, [re.sub(r"next \(.*\)", "next (UTC)", each) for each in cells(shown[0])]) == (0, headings)
    assert "2 failed in a row:" in without_colours(seen)
    assert max(map(len, shown)) <= columns


@pytest.mark.parametrize(
    ("match", "environment", "zone"),
    [
        ("nightly", {}, "Europe/Berlin"),
        ("nightly", {"BEAT_TZ": "Asia/Tokyo"}, "Europe/Berlin"),
        ("*l*", {}, "UTC"),
        ("*l*", {"BEAT_TZ": "Asia/Tokyo"}, "Asia/Tokyo"),
    ],
)
def test_the_times_of_a_column_are_in_one_zone_which_its_heading_names(
    here: Path, redis: Redis, match: str, environment: dict[str, str], zone: str
) -> None:
    head, *lines = run([*PYTHON, "list", match], here, **environment).stdout.splitlines()
    assert cells(head)[2] == f"next ({zone})"
    row = next(line for line in lines if line.startswith("nightly"))
    tick = clock.read(str(redis.hget(KEYS.schedule("nightly"), "next_run"))).astimezone(ZoneInfo(zone))
    assert f"{tick:%H:%M}" in cells(row)[2]


def queue(redis: Redis, schedule_id: str, **definition: object) -> None:
    """The definition of a schedule says where its jobs go."""
    rule = json.loads(str(redis.hget(KEYS.schedule(schedule_id), "rule")))
    written = json.dumps({"id": schedule_id, "func": "app.tasks.report", **rule, **definition})
    redis.hset(KEYS.schedule(schedule_id), "definition", written)


def test_a_queue_that_no_worker_reads_is_a_warning(here: Path, redis: Redis) -> None:
    with Worker(url_of(redis), Steps(here / "steps.log"), "mail", "b", "default") as worker:
        worker.says("Listening on")
        queue(redis, "nightly", queue="mail")
        queue(redis, "search", queue="a", queues=["a", "b"], route="failover")
        assert listed(cwd=here)[-1].startswith("warning: no scheduler is running")
        queue(redis, "ended", queue="retired")
        queue(redis, "customer_42", queue="paused")
        queue(redis, "poll", queue="some reports")
        redis.rpush("rq:queue:some reports", "x", "y")
        words = "warning: no live worker reads the queue some reports, and 2 jobs wait there: rq worker 'some reports'"
        assert listed(cwd=here)[-1] == words
        assert listed("nightly", cwd=here)[-1].startswith("warning: no scheduler is running")
        queue(redis, "nightly", queue="c", queues=["c", "b"], route="broadcast")
        queue(redis, "search", queue="a", queues=["a", "d"], route="first_idle")
        words = (
            "warning: no live worker reads the queues a, c, d, some reports, and 2 jobs wait there: rq worker a c d "
        )
        assert listed(cwd=here)[-1] == f"{words}'some reports'"


def test_ids_are_never_cut(here: Path, redis: Redis) -> None:
    keep(redis, LONG_ID, "s")
    assert any(line.startswith(f"{LONG_ID} ") for line in listed(cwd=here))
    for columns in (80, 200):
        _, seen = on_a_terminal("list", cwd=here, columns=columns)
        assert LONG_ID in re.sub(r"\n {2,}", "", without_colours(seen)), columns


def test_nothing_in_redis_can_steer_the_terminal(running: Path, redis: Redis) -> None:
    nasty = "\x1b[2J\x07\x9b31m\n\u202e"
    keep(redis, "x", "f", state="paused", pause_reason=nasty, paused_by=nasty, last_error=nasty, override=nasty)
    redis.sadd(KEYS.schedules, nasty)
    redis.hset(KEYS.schedule(nasty), mapping={"state": nasty, "definition": f'{{"cron": "{"#"}"}}'})
    for arguments in ([], ["--json"]):
        code, seen = on_a_terminal("list", *arguments, cwd=running, columns=200)
        assert (code, "\x1b[2J" in seen, "\u202e" in seen, "\x07" in seen) == (0, False, False, False)


def test_where_signs_cannot_be_shown_they_are_typed(here: Path) -> None:
    done = run([*PYTHON, "list", "nightly"], here, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  {'=' * 18}.x  " in done.stdout


# For programs


def test_a_document_has_the_definition_and_where_it_stands(here: Path, redis: Redis) -> None:
    alive(redis, "web-1", timedelta(seconds=1))
    found = document("list", cwd=here)
    assert [each["id"] for each in found["schedules"]] == ["customer_42", "ended", "nightly", "poll", "search"]
    assert (found["counts"]["schedules"], found["counts"]["failing"], found["beats"][0]["name"]) == (5, 1, "web-1")
    nightly, search, paused = (found["schedules"][n] for n in (2, 4, 0))
    assert (nightly["func"], nightly["cron"], nightly["tz"]) == ("app.tasks.report", "0 3 * * *", "Europe/Berlin")
    assert (nightly["last"]["state"], nightly["consecutive_failures"]) == ("failed", 2)
    assert (search["cron"], search["override"]["rule"]) == ("* * * * *", {"every": "5m"})
    assert (paused["pause"]["by"], paused["pause"]["reason"]) == ("ann@ops", "the warehouse moves")
    for each in found["schedules"]:
        assert not each.keys() - OTHERS - Options.__annotations__.keys() - {"func", "cron"}
        assert each.keys() >= OTHERS


def test_a_document_holds_as_many_as_are_asked_for_and_else_all(here: Path, redis: Redis) -> None:
    for n in range(60):
        keep(redis, f"more_{n}")
    assert len(document("list", cwd=here)["schedules"]) == 65
    assert [each["id"] for each in document("list", "-n", "2", "--after", "ended", cwd=here)["schedules"]] == [
        "more_0", "more_1",
    ]  # fmt: skip
    redis.flushall()
    assert document("list", cwd=here)["schedules"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--state", "pausd"], 2, "'pausd' is not one of 'active', 'paused'"),
        (["--sort", "name"], 2, "'name' is not one of 'id', 'next'"),
        (["a b"], 2, "match 'a b' must be an id, with * ? or [a-z]"),
        (["--watch"], 2, "--watch draws on a terminal; for a program, ask again with --json"),
        (["--watch", "--json"], 2, "--watch draws on a terminal"),
        (["--sort", "next", "--after", "nigthly"], 3, "there is no schedule 'nigthly'. Did you mean 'nightly'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_listed_is_refused(here: Path, arguments: list[str], code: int, words: str) -> None:
    ended, said = refused("list", *arguments, cwd=here)
    assert ended == code
    assert words in said.replace("\n", " ")


# Again and again


def test_it_is_drawn_again_until_somebody_ends_it(here: Path, redis: Redis) -> None:
    with Terminal("list", "--watch", cwd=here, columns=120) as terminal:
        terminal.shows("no scheduler is running")
        keep(redis, "a_new_one", "s")
        drawn = terminal.shows("a_new_one")
        terminal.process.send_signal(signal.SIGINT)
        code, seen = terminal.end()
    assert code == 130
    assert "Traceback" not in seen
    assert (drawn.startswith("\x1b[?1049h\x1b[?25l"), "\x1b[?25h\x1b[?1049l" in seen) == (True, True)
    assert "\x1b[2J" not in drawn, "a screen that is cleared flickers"


def test_what_is_drawn_fits_the_height_of_the_terminal(here: Path, redis: Redis) -> None:
    for n in range(60):
        keep(redis, f"more_{n:02}")
    with Terminal("list", "--watch", cwd=here) as terminal:
        seen = terminal.shows("--after")
        terminal.process.send_signal(signal.SIGINT)
    picture = without_colours(seen.split("\x1b[H")[1])
    assert picture.count("\n") < 40
    assert "of 65 schedules" in picture


def test_a_redis_that_goes_away_is_waited_for(home: Path) -> None:
    (home / "pyproject.toml").write_text("", encoding="utf-8")
    directory = home / embedded.DIRECTORY
    with embedded.start(directory) as private:
        terminal = Terminal("list", "--watch", "--redis-url", private.url, cwd=home)
        terminal.shows("there is no schedule yet")
    with terminal:
        terminal.shows("no Redis answers at")
        with embedded.start(directory):
            terminal.shows("there is no schedule yet", 2)
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.end()[0] == 130
