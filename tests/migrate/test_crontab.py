"""crontab tables: which lines become functions, how these run, and when."""

from __future__ import annotations

import io
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from beat.errors import BadSource, NoSource
from beat.migrate import crontab, files, timezone
from tests.migrate.house import House, only, why

if TYPE_CHECKING:
    from beat.migrate import Reading

TABLE = """
# m h  dom mon dow   command
SHELL = /bin/bash
MAILTO="ops@example.com"

0 5 * * 1   tar -zcf /var/backups/home.tgz /home/
@daily      /opt/app/clean.sh --older two-days
"""


def read(house: House, text: str, **options: Any) -> Reading:
    return crontab.read(house.write("table", text), **{"tz": "UTC", **options})


def test_a_line_becomes_a_schedule_of_its_command(house: House) -> None:
    tar, clean = read(house, TABLE, tz="Europe/Paris").found
    assert (tar.id, tar.cron, tar.tz, tar.where) == ("tar", "0 5 * * 1", "Europe/Paris", "table:6")
    assert (clean.id, clean.cron, clean.tz) == ("clean", "@daily", "Europe/Paris")
    assert tar.command is not None
    assert (tar.command.line, tar.command.shell) == ("tar -zcf /var/backups/home.tgz /home/", "/bin/bash")


def test_comments_empty_lines_and_variables_are_no_schedules(house: House) -> None:
    reading = read(house, "# 0 5 * * * no\n\n  # nor this\nA=1\n 'B C' = 2\nD_1 = 'x y'\n")
    assert (reading.found, len(reading.left)) == ((), 1)  # 'B C' is no name


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("A=1", {"A": "1"}),
        ("A = 1 ", {"A": "1"}),
        ('A="  two words "', {"A": "  two words "}),
        ("A=$HOME/bin:$PATH", {"A": "$HOME/bin:$PATH"}),
        ("A=", {"A": ""}),
        ("A=1\nA=2", {"A": "2"}),
        ("MAILTO=root\nSHELL=/bin/zsh\nHOME=/srv", {}),
    ],
)
def test_variables_above_a_line_are_the_environment_of_its_command(
    house: House, written: str, given: dict[str, str]
) -> None:
    found = only(read(house, f"{written}\n* * * * * true\nA=9\n"))
    assert found.command is not None
    assert found.command.environ == given


def test_cron_tz_is_the_zone_of_the_lines_below_it(house: House) -> None:
    text = "0 9 * * * a\nCRON_TZ=America/New_York\n0 9 * * * b\nCRON_TZ=\n0 9 * * * c\n"
    assert [each.tz for each in read(house, text, tz="Asia/Tokyo").found] == [
        "Asia/Tokyo",
        "America/New_York",
        "Asia/Tokyo",
    ]


def test_tz_is_for_the_command_alone(house: House) -> None:
    found = only(read(house, "TZ=Asia/Tokyo\n0 9 * * * date\n"))
    assert found.tz == "UTC"
    assert found.command is not None
    assert found.command.environ == {"TZ": "Asia/Tokyo"}
    assert "never moved when it runs" in found.notes[0]


@pytest.mark.parametrize(
    ("written", "line", "stdin"),
    [
        ("date +\\%F", "date +%F", None),
        ("mail a@b.c%Hello,%100\\% yours", "mail a@b.c", "Hello,\n100% yours\n"),
        ("cat%", "cat", "\n"),
        ("echo a\\\\b", "echo a\\\\b", None),
    ],
)
def test_a_percent_sign_begins_the_input(house: House, written: str, line: str, stdin: str | None) -> None:
    command = only(read(house, f"0 1 * * * {written}\n")).command
    assert command is not None
    assert (command.line, command.stdin) == (line, stdin)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup.sh --all", "backup"),
        ("cd /srv/app && ./run-reports.py", "run-reports"),
        ("cd /srv/app && /usr/bin/python3 -m app.report >/dev/null 2>&1", "app-report"),
        ("A=1 nice -n 10 rsync a b", "rsync"),
        ("(sleep 5; true)", "sleep"),
        ("echo 'unbalanced", "echo"),
        ("1 2 3", "command"),
        ("日本語", "schedule"),
    ],
)
def test_a_schedule_is_named_for_its_program(house: House, command: str, name: str) -> None:
    assert only(read(house, f"0 1 * * * {command}\n")).id == name


def test_two_lines_of_one_program_get_two_names(house: House) -> None:
    found = read(house, "0 1 * * * true a\n0 2 * * * true b\n0 3 * * * true\n").found
    assert [each.id for each in found] == ["true", "true-2", "true-3"]


@pytest.mark.parametrize("place", ["table", "/etc/crontab"])
def test_a_system_table_has_a_user_before_each_command(
    house: House, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "17 * * * *\troot    cd / && run-parts --report /etc/cron.hourly\n@daily www-data true\n"
    if place == "table":
        reading = read(house, text, system=True)
    else:
        monkeypatch.setattr(files, "read", lambda place: files.File(place, None, text))
        reading = crontab.read(place, tz="UTC")
    hourly, daily = reading.found
    assert (hourly.id, hourly.notes[0]) == ("run-parts", "it ran as root, and runs now as whoever runs the worker")
    assert hourly.command is not None
    assert hourly.command.line == "cd / && run-parts --report /etc/cron.hourly"
    assert (daily.id, daily.cron) == ("true", "@daily")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@reboot true", "a schedule is about time, not about starts"),
        ("0 25 * * * true", "hour 25 is out of range"),
        ("0 0 30 2 * true", "never fires"),
        ("0~30 1 * * * true", "minute"),
        ("CRON_TZ=Europe/Atlantis\n0 1 * * * true", "Europe/Atlantis"),
        ("0 1 * * *", "neither five fields and a command"),
        ("hello", "neither five fields and a command"),
        ("@daily", "neither five fields and a command"),
    ],
)
def test_a_line_that_cannot_move_in_is_left_with_the_reason(house: House, line: str, reason: str) -> None:
    assert reason in why(read(house, f"{line}\n"))


def test_one_bad_line_leaves_the_others(house: House) -> None:
    reading = read(house, "0 1 * * * a\n@reboot b\n0 2 * * * c\n")
    assert [each.id for each in reading.found] == ["a", "c"]
    assert [(each.name, each.where) for each in reading.left] == [("line 2", "table:2")]


def test_a_system_line_with_a_user_alone_is_left(house: House) -> None:
    assert "a user, then a command" in why(read(house, "0 1 * * * root\n", system=True))


def test_a_table_can_be_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"0 1 * * * true\n")))
    assert only(crontab.read("-", tz="UTC")).where == "stdin:1"


def test_nothing_can_be_read_where_nothing_is_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(NoSource, match="nothing is piped in"):
        crontab.read("-")


def test_a_missing_table_is_said_in_one_sentence(house: House) -> None:  # noqa: ARG001 (its directory is current)
    with pytest.raises(NoSource, match="there is no file 'nowhere'"):
        crontab.read("nowhere")


@pytest.mark.parametrize("raw", [b"0 1 * * * \xff\n", b"x" * 10_000_001])
def test_what_is_no_text_or_too_long_is_refused(house: House, raw: bytes) -> None:
    (house.folder / "table").write_bytes(raw)
    with pytest.raises(BadSource, match="'table'"):
        crontab.read("table")


def test_a_directory_is_refused(house: House) -> None:
    with pytest.raises(BadSource, match="cannot be read: Is a directory"):
        crontab.read(str(house.folder))


def test_without_a_zone_the_one_of_this_host_is_taken_and_said(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    reading = read(house, "0 1 * * * true\n", tz=None)
    assert only(reading).tz == "Europe/Paris"
    assert "here taken to be in Europe/Paris" in reading.notes[0]


@pytest.mark.parametrize(
    ("environ", "link", "text", "zone"),
    [
        ({"TZ": ":Europe/Rome"}, None, None, "Europe/Rome"),
        ({"TZ": "CET-1CEST"}, "Europe/Paris", None, "UTC"),
        ({}, "Europe/Paris", "Asia/Tokyo\n", "Europe/Paris"),
        ({}, None, "Asia/Tokyo\n", "Asia/Tokyo"),
        ({}, "Etc/UTC", None, "UTC"),
        ({}, None, None, "UTC"),
    ],
)
def test_the_zone_of_a_host_is_found_by_its_name(
    tmp_path: Path, environ: dict[str, str], link: str | None, text: str | None, zone: str
) -> None:
    if link:
        target = tmp_path / "zoneinfo" / link
        target.parent.mkdir(parents=True)
        target.touch()
        (tmp_path / "localtime").symlink_to(target)
    if text:
        (tmp_path / "timezone").write_text(text)
    assert timezone.zone_name(environ, tmp_path) == zone


# --- the printed Python --------------------------------------------------------------------------------------------


def test_the_printed_function_runs_the_command_as_cron_would(house: House) -> None:
    home = house.folder / "home"
    home.mkdir()
    text = f"""
        SHELL=/bin/bash
        HOME={home}
        GREETING="it's a \\"day\\""
        0 1 * * * read line; echo "$GREETING: $line $((1 + 1))" > out.txt%hello%rest
    """
    registry, module = house.run_printed(read(house, text))
    [schedule] = registry
    assert (schedule.func, schedule.job_timeout) == ("moved.read", -1)
    module.read()
    assert (home / "out.txt").read_text() == 'it\'s a \\"day\\": hello 2\n'


def test_a_command_that_fails_is_a_failed_run(house: House) -> None:
    _, module = house.run_printed(read(house, "0 1 * * * /bin/false\n"))
    with pytest.raises(subprocess.CalledProcessError):
        module.false()


def test_a_plain_program_needs_no_shell(house: House) -> None:
    _, module = house.run_printed(read(house, f"0 1 * * * /usr/bin/touch {house.folder}/made\n"))
    module.touch()
    assert (house.folder / "made").exists()
    assert "/bin/sh" not in Path(module.__file__ or "").read_text()


@pytest.mark.parametrize("name", ["subprocess", "beat", "os", "class", "match", "7zip"])
def test_a_program_with_an_awkward_name_hides_nothing(house: House, name: str) -> None:
    text = f"0 1 * * * echo one > {house.folder}/one\n0 2 * * * A=1 {name} || echo two > {house.folder}/two\n"
    registry, module = house.run_printed(read(house, f"X=1\n{text}"))
    for schedule in registry:
        getattr(module, schedule.func.rpartition(".")[2])()
    assert (house.folder / "two").read_text() == "two\n"


RULES = [
    "*/20 * * * *",
    "30 2 * * *",
    "0 */6 * * *",
    "15 3 1,29 * *",
    "0 12 25-31 * mon",
    "5 4 */2 * sun",
    "@hourly",
    "@weekly",
    "30 1-4 * 3,10 sat,7",
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("week", ["2026-03-26", "2026-10-22"])
def test_the_printed_python_ticks_as_debian_s_cron_does(house: House, rule: str, week: str) -> None:
    [schedule] = house.declared(read(house, f"{rule} true\n", tz="Europe/Paris")).values()
    start = datetime.fromisoformat(week).replace(tzinfo=UTC)
    end = start + timedelta(days=7)
    five = {"@hourly": "0 * * * *", "@weekly": "0 0 * * 0"}.get(rule, rule)
    oracle = CronSim(five, start.astimezone(ZoneInfo("Europe/Paris")) - timedelta(seconds=1))
    expected = []
    while (tick := next(oracle).astimezone(UTC)) < end:
        expected.append(tick)
    assert list(schedule.ticks(start, end)) == expected
