"""The command line as people and programs meet it: real processes, real pipes, real terminals."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from beat._version import __version__
from beat.cli import COMMANDS
from tests.process.commands import called, environment, on_a_terminal
from tests.support.files import lay_out
from tests.support.process_pool import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Write = Callable[[Mapping[str, str]], Path]

SCRIPT = Path(sys.executable).parent / "beat"
PYTHON = [sys.executable, "-m", "beat"]
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DAILY = 'from beat import periodic\n\n\n@periodic("0 9 * * *")\ndef daily(): ...\n'
MOVED = "02:30 does not exist on 8 March: the clock jumps forward, and this runs right after"
SURPRISING = 'from beat import periodic\n\n\n@periodic("*/7 * * * *")\ndef often(): ...\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty directory, with no pyproject.toml above it that beat would read."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    return tmp_path


@pytest.fixture
def write(here: Path) -> Write:
    return functools.partial(lay_out, here)


def run(command: list[str], cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=environment(**environ), capture_output=True, text=True, check=False, timeout=60
    )


def beat(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    done = called(*arguments, cwd=cwd, **environ)
    assert b"Traceback" not in done.stderr
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(*arguments: str, cwd: Path, **environ: str) -> tuple[int, str]:
    """The exit code and the words of a command that has nothing to give."""
    done = beat(*arguments, cwd=cwd, **environ)
    assert done.stdout == ""
    return done.returncode, done.stderr


def document(*arguments: str, cwd: Path, **environ: str) -> dict[str, Any]:
    done = beat(*arguments, "--json", cwd=cwd, **environ)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema_version"] == 1
    return found


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def first_ticks(*arguments: str, cwd: Path, **environ: str) -> list[str]:
    return [tick["utc"] for tick in document("next", *arguments, cwd=cwd, **environ)["ticks"]]


# Help, version, unknown commands


@pytest.mark.parametrize("command", [PYTHON, [str(SCRIPT)]], ids=["python -m beat", "beat"])
def test_help_lists_every_command_in_its_group_and_no_other(command: list[str], here: Path) -> None:
    done = run([*command, "--help"], here)
    listed = {
        group: re.findall(r"^  (\w+)  ", lines, re.MULTILINE)
        for group, lines in re.findall(r"^(\w+):\n((?:  .*\n)+)", done.stdout, re.MULTILINE)
        if group != "Options"
    }
    assert listed == {group: list(commands) for group, commands in COMMANDS.items()}
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_that_help_lists_has_help_of_its_own(name: str, here: Path) -> None:
    done = beat(name, "-h", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: beat {name} ")
    assert f"\n  beat {name}" in done.stdout, "an example to copy"


def test_the_version_is_told(here: Path) -> None:
    done = beat("--version", cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"beat, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nxt"], "error: there is no command 'nxt'. Did you mean 'next'?\n  Try 'beat --help'.\n"),
        (["frobnicate"], "error: there is no command 'frobnicate'.\n  Try 'beat --help'.\n"),
        (["--nope"], "error: No such option"),
        (["next", "--tzz", "UTC"], "error: No such option"),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest_that_there_is(
    arguments: list[str], words: str, here: Path
) -> None:
    code, said = refused(*arguments, cwd=here)
    assert code == 2
    assert said.startswith(words)
    assert "--help'.\n" in said


# Start-up


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], {"rq", "redis", "pydantic", "rich", "croniter"}),
        (["next", "0 9 * * *"], {"rq", "redis", "pydantic", "rich", "croniter"}),
        (["next", "*/5 9,17 * * *"], {"rq", "redis", "pydantic", "rich"}),
    ],
)
def test_what_a_command_does_not_need_it_does_not_import(arguments: list[str], unwanted: set[str], here: Path) -> None:
    code = f"""
import sys
from beat.cli import main
try:
    main({arguments!r})
finally:
    print(sorted(sys.modules.keys() & {unwanted!r}), file=sys.stderr)
"""
    done = run([sys.executable, "-c", code], here)
    assert (done.returncode, done.stderr) == (0, "[]\n")


# beat next: what it answers


def without_distance(printed: str) -> list[str]:
    """The lines, with `*` for how far from now a tick is."""
    distance = re.compile(r"(?:in [\ddhms]+|[\ddhms]+ ago)( +)?")  # of any width, so is the space after it
    return [distance.sub(lambda found: "*  " if found[1] else "*", line) for line in printed.splitlines()]


def test_next_says_the_expression_in_words_and_its_ticks(here: Path) -> None:
    done = beat("next", "0 9 * * mon-fri", "--tz", "Europe/Paris", "--from", "2026-03-27T12:00", "-n", "2", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert without_distance(done.stdout) == [
        "0 9 * * mon-fri  (normalised: 0 9 * * 1-5)",
        "at 09:00, Monday to Friday, Europe/Paris time",
        "",
        "Europe/Paris               UTC                   from now",
        "Mon 2026-03-30 09:00 CEST  2026-03-30T07:00:00Z  *",
        "Tue 2026-03-31 09:00 CEST  2026-03-31T07:00:00Z  *",
    ]


def test_next_notes_what_a_change_of_the_clocks_does(here: Path) -> None:
    done = beat("next", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07", "-n", "2", cwd=here)
    assert without_distance(done.stdout)[4:] == [
        "Sat 2026-03-07 02:30 EST  2026-03-07T07:30:00Z  *",
        f"Sun 2026-03-08 03:00 EDT  2026-03-08T07:00:00Z  *  {MOVED}",
    ]


def test_next_counts_from_now_and_says_how_far_each_tick_is(here: Path) -> None:
    done = beat("next", "* * * * *", cwd=here)
    heading, *ticks = done.stdout.splitlines()[3:]
    assert heading.split() == ["UTC", "from", "now"]
    assert len(ticks) == 5
    assert all(re.fullmatch(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d UTC  in \d+[ms0-9]*", tick) for tick in ticks)


def test_next_takes_an_interval(here: Path) -> None:
    done = beat("next", "--every", "1h30m", "--from", "2026-01-01T00:00Z", "-n", "2", cwd=here)
    first, words, _, _, *ticks = without_distance(done.stdout)
    assert (first, words) == ("every 1h30m", "every 1 hour 30 minutes")
    assert ticks == ["Thu 2026-01-01 01:30 UTC  *", "Thu 2026-01-01 03:00 UTC  *"]


def test_next_starts_at_the_beginning_of_yesterday(here: Path) -> None:
    days = [
        datetime.fromisoformat(first_ticks("0 9 * * *", "--from", day, "-n", "1", cwd=here)[0])
        for day in ("yesterday", "today")
    ]
    assert days[1] - days[0] in (timedelta(days=1), timedelta(days=2))  # midnight may lie between the two calls


def test_next_warns_of_a_zone_that_is_an_abbreviation(here: Path) -> None:
    done = beat("next", "0 9 * * *", "--tz", "EST", cwd=here)
    assert done.stderr.startswith("warning: tz='EST' is UTC-05:00 all year: write 'America/New_York'")
    assert (done.returncode, beat("next", "0 9 * * *", cwd=here).stderr) == (0, "")


def test_next_takes_seconds_and_shows_them_on_every_line(here: Path) -> None:
    done = beat("next", "*/30 * * * * *", "--seconds", "--from", "2026-01-01T00:00Z", "-n", "2", cwd=here)
    assert without_distance(done.stdout)[4:] == ["Thu 2026-01-01 00:00:30 UTC  *", "Thu 2026-01-01 00:01:00 UTC  *"]


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("2026-07-01T12:00", "2026-07-01T10:15:00Z"),  # in the zone
        ("2026-07-01", "2026-06-30T22:15:00Z"),  # midnight in the zone
        ("2026-07-01T12:00Z", "2026-07-01T12:15:00Z"),
        ("2026-07-01T12:00:00.5+05:30", "2026-07-01T06:45:00Z"),
        ("1890-01-01T00:00Z", "1890-01-01T00:05:39Z"),  # Paris kept its own time then, 9 minutes 21 seconds ahead
        ("9989-01-01T00:00Z", "9989-01-01T00:15:00Z"),
    ],
)
def test_next_starts_where_it_is_told(start: str, first: str, here: Path) -> None:
    assert first_ticks("*/15 * * * *", "--tz", "Europe/Paris", "--from", start, "-n", "1", cwd=here) == [first]


def test_next_shows_what_the_id_of_a_schedule_chooses(write: Write) -> None:
    cwd = write({"pyproject.toml": '[tool.beat.presets]\nnightly = "H H * * *"\n'})
    shown = [beat("next", rule, "--id", "report", "-n", "1", cwd=cwd).stdout for rule in ("H H * * *", "nightly")]
    assert shown[0].splitlines()[:2] == ["H H * * *  (normalised: 16 21 * * *)", "at 21:16, every day, UTC"]
    assert " 21:16 UTC" in shown[0].splitlines()[-1]
    assert without_distance(shown[1]) == without_distance(shown[0])


def test_next_knows_the_presets_and_the_zone_of_the_project(write: Write) -> None:
    cwd = write({
        "pyproject.toml": """
            [tool.beat]
            tz = "Asia/Tokyo"
            [tool.beat.presets]
            nightly = "30 3 * * *"
        """
    })  # fmt: skip
    nightly = ["nightly", "--from", "2026-01-01", "-n", "1"]
    assert first_ticks(*nightly, cwd=cwd) == ["2025-12-31T18:30:00Z"]
    assert first_ticks(*nightly, cwd=cwd, BEAT_TZ="America/New_York") == ["2026-01-01T08:30:00Z"]
    assert first_ticks(*nightly, "--tz", "UTC", cwd=cwd, BEAT_TZ="America/New_York") == ["2026-01-01T03:30:00Z"]


@pytest.mark.parametrize(("number", "ticks"), [("1", 1), ("1000", 1000)])
def test_next_shows_from_one_to_a_thousand_ticks(number: str, ticks: int, here: Path) -> None:
    assert len(first_ticks("* * * * *", "-n", number, cwd=here)) == ticks


def test_next_as_json_is_one_document_of_known_shape(here: Path) -> None:
    found = document("next", "0 2 * * 1-7", "--tz", "Europe/Paris", "--from", "2026-03-28", cwd=here)
    ticks = found.pop("ticks")
    assert found == {
        "schema_version": 1,
        "expression": "0 2 * * 1-7",
        "normalised": "0 2 * * 0-6",
        "description": "at 02:00, every day, Europe/Paris time",
        "tz": "Europe/Paris",
    }
    assert len(ticks) == 5
    assert {name: type(value) for name, value in ticks[1].items()} == {
        "utc": str,
        "local": str,
        "from_now": float,
        "note": str,
    }
    assert (ticks[1]["utc"], ticks[1]["local"]) == ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00")
    assert "02:00 does not exist on 29 March" in ticks[1]["note"]
    assert ticks[0]["note"] is None


def test_next_as_json_says_an_interval_in_the_same_shape(here: Path) -> None:
    found = document("next", "--every", "90m", cwd=here)
    assert (found["expression"], found["normalised"], found["tz"]) == ("every 1h30m", "1h30m", "UTC")
    assert all(INSTANT.fullmatch(tick["utc"]) and tick["note"] is None for tick in found["ticks"])


# beat next: what it refuses


def test_a_bad_expression_is_shown_with_a_caret_and_nothing_else_is_printed(here: Path) -> None:
    code, said = refused("next", "0 24 * * *", cwd=here)
    assert code == 2
    assert said == (
        "error: cron '0 24 * * *': hour 24 is out of range 0-23\n"
        "      0 24 * * *\n"
        "        ^^\n"
        "  The hour after 23 is 0.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "there is no rule to look at: beat next '0 9 * * *' or beat next --every 15m"),
        (["0 9 * * *", "--every", "5m"], "an expression and --every are two rules; give one: beat next"),
        (["0", "9", "*", "*", "mon"], "that is 5 words; put the expression in quotes: beat next '0 9 * * *'"),
        (["0 9 * *"], "cron '0 9 * *': has 4 fields, needs five (six with --seconds)"),
        (["0 0 9 * * *"], "with seconds first, say --seconds"),
        (["0 9 * * *", "--seconds"], "has 5 fields, needs six with --seconds"),
        (["--every", "5m", "--seconds"], "--seconds is for expressions of six fields; --every 10s needs no such word"),
        (["--every", "0"], "--every '0' must lie between 1 second and 366 days, as in --every '15m'"),
        (["@every 5m"], "Write --every '5m' instead."),
        (["--every", "soon"], "'soon' is not a length of time"),
        (["nightly"], "is neither five fields nor the name of a preset (no presets are set)"),
        (["H H * * *"], "H needs a schedule's id: beat next 'H H * * *' --id report"),
        (["H H * * *", "--id", "a b"], "id 'a b' must be 1 to 100 of the characters"),
        (["H(29-0) * * * *", "--id", "report"], "Write 'H(0-29)'."),
        (["0 9 * * *", "-n", "0"], "0 is not in the range 1<=x<=1000"),
        (["0 9 * * *", "-n", "1001"], "1001 is not in the range 1<=x<=1000"),
        (["0 9 * * *", "--tz", "Europe/Pariss"], "Did you mean 'Europe/Paris'?"),
        (["0 9 * * *", "--tz", ""], "time zone '' is not known"),
        (["0 9 * * *", "--from", "soon"], "--from 'soon' is not a time: write 2026-03-28T12:00"),
        (["0 9 * * *", "--from", ""], "--from '' is not a time"),
        (["0 9 * * *", "--from", "9999-12-31T23:59"], "there are no ticks before the year 1800 or after 9990"),
        (["0 9 * * *", "--from", "0001-01-01"], "there are no ticks before the year 1800 or after 9990"),
        (["0 9 * * *", "--from", "0001-01-01", "--tz", "Asia/Tokyo"], "is outside the calendar"),
        (["--every", "366d", "--from", "9999-01-01"], "there are no ticks after the year 9999"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_ends_with_2_and_one_clear_sentence(arguments: list[str], words: str, here: Path) -> None:
    code, said = refused("next", *arguments, cwd=here)
    assert code == 2
    assert said.startswith("error: ")
    assert words in said


def test_control_characters_in_an_expression_do_not_reach_the_terminal(here: Path) -> None:
    code, said = on_a_terminal("next", "\x1b[2J * * * *", cwd=here)
    assert code == 2
    assert "\x1b[2J" not in said


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"BEAT_TZ": "Europe/Pariss"}, "BEAT_TZ: time zone 'Europe/Pariss' is not known"),
        ({"BEAT_PRESETS": "nonsense"}, "BEAT_PRESETS must be a table"),
    ],
)
def test_a_bad_setting_ends_with_78_and_names_its_place(environ: dict[str, str], words: str, here: Path) -> None:
    code, said = refused("next", "0 9 * * *", cwd=here, **environ)
    assert code == 78
    assert words in said


# Pipes and terminals


def test_a_pipe_gets_plain_text(here: Path) -> None:
    done = beat("next", "0 9 * * *", cwd=here)
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert "\x1b" not in refused("next", "0 24 * * *", cwd=here)[1]


def test_a_terminal_gets_a_table_and_colours(here: Path) -> None:
    code, shown = on_a_terminal("next", "0 9 * * *", cwd=here)
    assert code == 0
    assert "\x1b[1mUTC" in shown
    assert "───" in shown
    assert "\x1b[31m\x1b[1merror\x1b[0m: " in on_a_terminal("next", "0 24 * * *", cwd=here)[1]


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_without_colours_gets_none(environ: dict[str, Any], here: Path) -> None:
    good, bad = (on_a_terminal("next", expression, cwd=here, **environ) for expression in ("0 9 * * *", "0 24 * * *"))
    assert "───" in good[1]
    assert "\x1b" not in good[1] + bad[1]


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_terminal_of_any_width_shows_all_and_breaks_no_word(columns: int, here: Path) -> None:
    arguments = ["next", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07", "-n", "3"]
    code, shown = on_a_terminal(*arguments, cwd=here, columns=columns)
    lines = without_colours(shown).splitlines()
    assert code == 0
    assert max(map(len, lines)) <= columns
    assert "2026-03-08T07:00:00Z" in shown
    assert set(MOVED.split()) <= set(" ".join(lines).split())


def test_a_long_sentence_is_wrapped_between_words_on_a_terminal_alone(here: Path) -> None:
    arguments = ["next", "0 9 * * mon-foo"]
    _, shown = on_a_terminal(*arguments, cwd=here, columns=60)
    assert max(map(len, without_colours(shown).splitlines())) <= 60
    first = refused(*arguments, cwd=here)[1].splitlines()[0]
    assert len(first) > 100
    assert first in " ".join(without_colours(shown).split())


def unread(*arguments: str, cwd: Path) -> tuple[int, str]:
    """The exit code and stderr of a command whose stdout is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PYTHON, *arguments],
        cwd=cwd,
        env=environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["next", "* * * * *", "-n", "1000"], ["next", "@daily", "--json"]])
def test_a_reader_who_leaves_early_is_no_error(arguments: list[str], here: Path) -> None:
    assert unread(*arguments, cwd=here) == (0, "")


def test_a_reader_who_leaves_early_does_not_turn_problems_into_success(write: Write) -> None:
    code, said = unread("check", "tasks", cwd=write({"tasks.py": DAILY.replace("9", "99")}))
    assert (code, said) == (1, "0 schedules: 1 problem, 0 warnings\n")


@pytest.mark.parametrize("arguments", [["next", "@daily"], ["next", "@daily", "--json"], ["--help"]])
def test_a_closed_stdout_is_no_error(arguments: list[str], here: Path) -> None:
    done = run(["sh", "-c", 'exec "$@" >&-', "sh", *PYTHON, *arguments], here)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_said_and_is_not_called_a_bug(here: Path) -> None:
    done = run(["sh", "-c", 'exec "$@" >/dev/full', "sh", *PYTHON, "next", "@daily"], here)
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


# beat check: what it finds

REST = """
from beat import periodic

@periodic("0 9 * * *", exclude="rest.is_holliday")
def misspelt(): ...

@periodic("0 9 * * *", exclude="rest.is_holiday")
def well(): ...
"""

MISTAKES = """
    from beat import periodic


    @periodic("0 24 * * *")
    def one(): ...


    @periodic("0 9 * * *", tz="Europe/Pariss")
    def two(): ...


    @periodic("*/7 * * * *")
    def three(): ...


    @periodic(every="15m", kwargs={"kind": 1})
    def four(): ...
"""


def test_check_reports_all_that_is_wrong_at_once_with_its_place(write: Write) -> None:
    done = beat("check", "tasks.py", cwd=write({"tasks.py": MISTAKES}))
    assert done.returncode == 1
    assert done.stdout == (
        "tasks.py:5: problem: cron '0 24 * * *': hour 24 is out of range 0-23\n"
        "      0 24 * * *\n"
        "        ^^\n"
        "  The hour after 23 is 0.\n"
        "tasks.py:9: problem: time zone 'Europe/Pariss' is not known: use an IANA name such as 'Europe/Paris'. "
        "Did you mean 'Europe/Paris'?\n"
        "tasks.py:17: problem: the arguments do not fit four(): got an unexpected keyword argument 'kind'; "
        "pass them as args=[…] or kwargs={…}\n"
        "tasks.py:13: warning: three: minute '*/7' is uneven: from 56 on to 0 it takes 4, not 7\n"
    )
    assert done.stderr == "1 schedule: 3 problems, 1 warning\n"


STRANGERS = """
    from beat import Requires, periodic


    @periodic("0 9 * * *", requires=Requires("load", within="1h"))
    def extract(): ...


    @periodic(follows="extract", group="exports")
    def load(): ...


    @periodic(follows="extrat")
    def report(): ...
"""


def test_check_tells_what_schedules_say_wrongly_about_each_other(write: Write) -> None:
    done = beat("check", "tasks.py", cwd=write({"tasks.py": STRANGERS}))
    assert done.returncode == 1
    assert done.stdout == (
        "tasks.py:13: problem: schedule 'report' follows 'extrat', and there is no such schedule. "
        "Did you mean 'extract'?\n"
        "tasks.py:5: problem: extract requires load, load follows extract: each waits for the other, and none would "
        "ever run: leave one of these out\n"
        "tasks.py:9: problem: schedule 'load' is of the group 'exports', which has no limit: "
        "write beat.group('exports', max_running=5), or exports = 5 under [tool.beat.groups].\n"
    )
    limited = beat("check", "tasks.py", cwd=write({"tasks.py": STRANGERS}), BEAT_GROUPS="exports=5")
    assert "of the group" not in limited.stdout


def test_check_imports_the_functions_of_days_of_rest(write: Write) -> None:
    files = {
        "tasks.py": REST,
        "rest.py": "print('hello')\ndef is_holiday(day):\n    raise LookupError\n",
    }
    found = document("check", "tasks.py", cwd=write(files))
    assert [problem["message"] for problem in found["problems"]] == [
        "exclude 'rest.is_holliday' cannot be called: there is no such function: no tick could be decided"
    ]


def test_check_of_good_schedules_says_so_and_ends_with_0(write: Write) -> None:
    done = beat("check", "tasks", cwd=write({"tasks.py": DAILY}))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "1 schedule: 0 problems, 0 warnings\n")


def test_warnings_alone_are_no_failure_unless_strict(write: Write) -> None:
    cwd = write({"tasks.py": SURPRISING})
    lenient, strict = beat("check", "tasks", cwd=cwd), beat("check", "--strict", "tasks", cwd=cwd)
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert lenient.stdout == strict.stdout != ""
    assert strict.stderr == "1 schedule: 0 problems, 1 warning (which count as problems)\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "problem: no module named 'tasks'"),
        ({"tasks.py": "1 / 0\n"}, "problem: tasks: ZeroDivisionError: division by zero (tasks.py:1: 1 / 0)"),
        ({"tasks.py": "import sys\nsys.exit(3)\n"}, "problem: tasks called sys.exit(3)"),
        ({"tasks.py": "def broken(:\n"}, "problem: tasks: SyntaxError: "),
        ({"tasks.py": "import nowhere\n"}, "No module named 'nowhere'"),
    ],
    ids=["missing", "raises", "exits", "syntax", "imports what is missing"],
)
def test_a_module_that_cannot_be_imported_is_a_problem(files: dict[str, str], words: str, write: Write) -> None:
    done = beat("check", "tasks", cwd=write(files))
    assert done.returncode == 1
    assert words in done.stdout
    assert done.stdout.count("\n") == 1
    assert done.stderr == "0 schedules: 1 problem, 0 warnings\n"


def test_a_module_that_fails_does_not_hide_the_others(write: Write) -> None:
    cwd = write({"app/__init__.py": "", "app/bad.py": "1 / 0\n", "app/good.py": SURPRISING})
    done = beat("check", "app", cwd=cwd)
    assert done.returncode == 1
    assert done.stdout.startswith("problem: app.bad: ZeroDivisionError")
    assert "app/good.py:4: warning: often: minute '*/7' is uneven" in done.stdout


def test_a_module_that_declares_nothing_is_a_warning(write: Write) -> None:
    done = beat("check", "tasks", cwd=write({"tasks.py": "x = 1\n"}))
    assert (done.returncode, done.stderr) == (0, "0 schedules: 0 problems, 1 warning\n")
    assert done.stdout == "warning: tasks declares no schedule with beat.periodic: is it missing, or the name wrong?\n"


def test_no_modules_at_all_is_a_mistake_in_the_command_with_the_remedy(here: Path) -> None:
    code, said = refused("check", cwd=here)
    assert code == 2
    assert all(remedy in said for remedy in ("beat check app.tasks", "BEAT_MODULES", "[tool.beat]"))


def test_the_modules_come_from_the_arguments_the_environment_or_the_project(write: Write) -> None:
    cwd = write({
        "pyproject.toml": '[tool.beat]\nmodules = ["one"]\n',
        **{f"{name}.py": DAILY.replace("daily", name) for name in ("one", "two", "three")},
    })  # fmt: skip
    found = [
        document("check", cwd=cwd),
        document("check", cwd=cwd, BEAT_MODULES="two"),
        document("check", "three", cwd=cwd, BEAT_MODULES="two"),
    ]
    assert [[schedule["id"] for schedule in each["schedules"]] for each in found] == [["one"], ["two"], ["three"]]


def test_setup_is_called_before_the_modules_are_imported(write: Write) -> None:
    cwd = write({
        "boot.py": "ready = False\n\n\ndef setup():\n    global ready\n    ready = True\n",
        "tasks.py": f"import boot\nassert boot.ready\n{DAILY}",
    })  # fmt: skip
    assert beat("check", "tasks", cwd=cwd).returncode == 1
    assert beat("check", "--setup", "boot:setup", "tasks", cwd=cwd).returncode == 0
    failed = beat("check", "--setup", "boot:start", "tasks", cwd=cwd)
    assert (failed.returncode, failed.stdout) == (1, "problem: setup 'boot:start': boot has no 'start'.\n")


def test_a_wrong_preset_is_reported_even_if_nothing_uses_it(write: Write) -> None:
    cwd = write({"pyproject.toml": '[tool.beat.presets]\nnightly = "0 24 * * *"\n', "tasks.py": DAILY})
    done = beat("check", "tasks", cwd=cwd)
    assert done.returncode == 1
    assert done.stdout.startswith("preset nightly: problem: cron '0 24 * * *': hour 24 is out of range 0-23\n")


def test_a_preset_may_have_six_fields(write: Write) -> None:
    cwd = write({"pyproject.toml": '[tool.beat.presets]\nquick = "*/10 * * * * *"\n', "tasks.py": DAILY})
    done = beat("check", "tasks", cwd=cwd)
    assert (done.returncode, done.stdout) == (0, "")


def test_verbose_lists_the_schedules(write: Write) -> None:
    done = beat("check", "-v", "tasks", cwd=write({"tasks.py": DAILY}))
    heading, row, blank = done.stdout.splitlines()
    assert re.split(" {2,}", heading) == ["schedule", "next tick", "declared", "when"]
    name, tick, declared, when = re.split(" {2,}", row)
    assert (name, declared, when) == ("daily", "tasks.py:4", "at 09:00, every day, UTC")
    assert INSTANT.fullmatch(tick)
    assert blank == ""


def test_check_shows_what_the_id_of_a_schedule_chooses(write: Write) -> None:
    cwd = write({"tasks.py": DAILY.replace("0 9 * * *", "H H * * *").replace("daily", "report")})
    (found,) = document("check", "tasks", cwd=cwd)["schedules"]
    assert (found["timing"], found["when"]) == ("H H * * *", "at 21:16, every day, UTC")
    assert found["next_tick"].endswith("T21:16:00Z")


@pytest.mark.parametrize("columns", [60, 120])
def test_the_id_of_a_schedule_is_never_cut_short(columns: int, write: Write) -> None:
    name = "a_function_with_a_name_that_says_all"
    cwd = write({"tasks.py": DAILY.replace("daily", name).replace("0 9 * * *", "1,2,3,5,8,13,21,34,55 4 1,15 * *")})
    code, shown = on_a_terminal("check", "-v", "tasks", cwd=cwd, columns=columns)
    lines = without_colours(shown).splitlines()
    assert code == 0
    assert name in shown
    assert max(map(len, lines)) <= columns
    words = "at 04:01 to 04:03, 04:05, 04:08, 04:13, 04:21, 04:34 and 04:55, on days 1 and 15 of the month, UTC"
    assert set(words.split()) <= set(" ".join(lines).split())


# beat check: for programs


def test_check_as_json_is_one_document_of_known_shape(write: Write) -> None:
    found = document("check", "tasks", cwd=write({"tasks.py": MISTAKES}))
    assert found.keys() == {"schema_version", "schedules", "problems", "warnings"}
    (schedule,) = found["schedules"]
    assert INSTANT.fullmatch(schedule.pop("next_tick"))
    assert re.fullmatch(r"[0-9a-f]{16}", schedule.pop("rev"))
    assert schedule == {
        "id": "three",
        "func": "tasks.three",
        "when": "every 7 minutes from :00 to :56 of every hour, UTC",
        "timing": "*/7 * * * *",
        "tz": "UTC",
        "queue": "default",
        "enabled": True,
        "declared": "tasks.py:13",
    }
    assert [problem["where"] for problem in found["problems"]] == ["tasks.py:5", "tasks.py:9", "tasks.py:17"]
    assert found["warnings"] == [
        {
            "level": "warning",
            "where": "tasks.py:13",
            "schedule": "three",
            "message": "minute '*/7' is uneven: from 56 on to 0 it takes 4, not 7",
        }
    ]


def test_what_modules_print_does_not_get_into_the_document(write: Write) -> None:
    noise = """
        import os, subprocess, sys
        print("by python")
        sys.stdout.write("by stdout\\n")
        os.write(1, b"by number\\n")
        subprocess.run(["echo", "by a program"])
    """
    cwd = write({"tasks.py": textwrap.dedent(noise) + DAILY})
    done = beat("check", "--json", "tasks", cwd=cwd)
    assert [schedule["id"] for schedule in json.loads(done.stdout)["schedules"]] == ["daily"]
    assert all(f"by {what}\n" in done.stderr for what in ("python", "stdout", "number", "a program"))


def test_the_document_is_ascii_whatever_a_project_holds(write: Write) -> None:
    cwd = write({"tasks.py": DAILY.replace('"0 9 * * *"', '"0 9 * * *", queue="été"')})
    done = beat("check", "--json", "tasks", cwd=cwd, PYTHONIOENCODING="ascii")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["schedules"][0]["queue"] == "été"


# beat check: what it must survive

RUDE = r"""
    from beat import periodic

    ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"


    class Rude:
        def __repr__(self):
            return ESCAPES


    @periodic("0 9 * * *", args=[1, 2])
    def one(x=Rude()): ...


    @periodic("0 9 * * *", description=ESCAPES)
    def two(): ...


    @periodic("0 9 * * *", queue=ESCAPES)
    def three(): ...


    @periodic(ESCAPES)
    def four(): ...


    raise ValueError(ESCAPES)
"""


def test_control_characters_in_what_users_write_do_not_reach_the_terminal(write: Write) -> None:
    cwd = write({"tasks.py": RUDE})
    code, shown = on_a_terminal("check", "-v", "tasks", cwd=cwd, columns=200)
    assert code == 1
    plain = without_colours(shown)
    assert plain.count("problem: ") == 5
    assert [c for c in plain if not c.isprintable() and c != "\n"] == []
    assert beat("check", "--json", "tasks", cwd=cwd).stdout.isascii()


def test_control_characters_in_the_name_of_a_directory_do_not_reach_the_terminal(here: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd\x1b[2J"
    odd.mkdir()
    (odd / "tasks.py").write_text(SURPRISING, encoding="utf-8")
    code, shown = on_a_terminal("check", "tasks", cwd=here, PYTHONPATH=f"{ROOT}{os.pathsep}{odd}")
    assert code == 0
    assert "\x1b[2J" not in shown
    assert "odd\\x1b[2J" in "".join(shown.split())


def test_an_interrupt_during_a_slow_import_ends_with_130_and_without_a_traceback(write: Write) -> None:
    cwd = write({"tasks.py": "import signal\nprint('importing', flush=True)\nsignal.pause()\n"})
    with subprocess.Popen(
        [*PYTHON, "check", "tasks"],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        assert process.stderr.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed, said) == (130, "", "\n")


def test_a_bug_of_beat_ends_with_70_and_asks_to_be_reported(here: Path) -> None:
    code = "import beat.cli, beat.cli.next as n\nn.clocked = lambda *_, **__: 1 / 0\nbeat.cli.main(['next', '@daily'])"
    done = run([sys.executable, "-c", code], here)
    assert (done.returncode, done.stdout) == (70, "")
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.endswith(
        "error: this is a bug in beat, not in what you did; please report it with the lines above\n"
    )


# Which modules are loaded


@pytest.fixture
def sub(write: Write) -> Path:
    """A directory of a project whose pyproject.toml, above it, names a module beside itself."""
    root = write({
        "pyproject.toml": '[tool.beat]\nmodules = ["tasks"]\n', "tasks.py": DAILY, "sub/tasks.py": "raise ValueError",
    })  # fmt: skip
    return root / "sub"


@pytest.mark.parametrize("command", [PYTHON, [str(SCRIPT)]], ids=["python -m beat", "beat"])
def test_modules_are_found_beside_the_pyproject_that_names_them(command: list[str], sub: Path) -> None:
    done = run([*command, "check", "-v"], sub, PYTHONPATH=f"{ROOT}{os.pathsep}{sub.parent}")
    assert done.returncode == 0, done
    assert "tasks.py:4" in done.stdout
    assert done.stderr.splitlines() == [
        f"loading tasks, named by ../pyproject.toml [tool.beat] modules, in {sub.parent}",
        "1 schedule: 0 problems, 0 warnings",
    ]


def test_setup_is_found_beside_the_pyproject_that_names_it(write: Write) -> None:
    root = write({
        "pyproject.toml": '[tool.beat]\nsetup = "boot:setup"\n', "boot.py": "def setup(): ...", "sub/work.py": DAILY,
    })  # fmt: skip
    assert beat("check", "work.py", cwd=root / "sub").stderr == "1 schedule: 0 problems, 0 warnings\n"


def test_check_loads_a_tasks_file_if_nothing_names_modules_and_says_why(write: Write) -> None:
    done = beat("check", cwd=write({"tasks.py": DAILY}))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "loading tasks.py from this directory: neither the command nor a setting names modules\n"
        "1 schedule: 0 problems, 0 warnings\n"
    )


def test_check_says_which_setting_names_the_modules(write: Write) -> None:
    done = beat("check", cwd=write({"tasks.py": "", "work.py": DAILY}), BEAT_MODULES="work")
    assert done.stderr.startswith("loading work, named by BEAT_MODULES\n")


@pytest.mark.parametrize("modules", ["", 'tz = "UTC"', "modules = []"])
def test_bare_beat_without_modules_in_the_settings_prints_the_help(write: Write, modules: str) -> None:
    done = beat(cwd=write({"pyproject.toml": f"[tool.beat]\n{modules}\n", "tasks.py": DAILY}))
    assert done.returncode == 2
    assert done.stdout.startswith("Usage: beat [OPTIONS] [COMMAND]")
    assert done.stderr.startswith("error: there is no command. To start a scheduler, name its modules")
