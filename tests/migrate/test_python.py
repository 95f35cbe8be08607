"""The Python that is printed: whatever a predecessor wrote stays data, and comes back as it was."""

from __future__ import annotations

import ast
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.migrate import cron_fields, crontab, python_source, writer
from beat.migrate.result import Command, Draft, Found, Left, NotCarried, Reading, _Ids, gathered, identifier, slug
from beat.timing.cron.fields import DAY, MINUTE
from tests.support.facts import in_time

if TYPE_CHECKING:
    from tests.migrate.house import House

NASTY = ['"""', "'", '"', "\\", "\n", "\r", "\x1b[31m", "\u2028", "é", "\ud800", "#", "{x}", "\x9b", "\0", "\t"]
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from(NASTY) | st.binary(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
)  # fmt: skip


def reading(*found: Found, left: tuple[Left, ...] = (), notes: tuple[str, ...] = (), place: str = "x") -> Reading:
    return Reading("celery", place, found, left, notes)


def made(**more: Any) -> Found:
    return Found(**{"name": "it", "where": "x:1", "id": "it", "func": "app.tasks.add", "every": "5s", **more})


@given(plain)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    written = writer.written(value)
    assert ast.literal_eval(written) == value
    assert repr(ast.literal_eval(written)) == repr(value)
    assert all(c.isprintable() for c in written)


def test_an_instant_comes_back_as_it_was() -> None:
    at = datetime(2026, 11, 17, 9, 30, 1, tzinfo=UTC)
    assert eval(writer.written(at), {"datetime": __import__("datetime")}) == at  # noqa: S307 (our own)


@pytest.mark.parametrize("text", [*NASTY, "x\nimport os\nos.abort()", 'x"""\nimport os\nos.abort()\n"""'])
def test_nothing_of_what_a_predecessor_wrote_is_run(text: str) -> None:
    printed = writer.module(
        reading(
            made(name=text, where=text, notes=(text,), args=(text,), kwargs={text: text}, queue=text),
            made(func="", command=Command(text, stdin=text, shell=text, home=text, environ={text: text}), id="c"),
            left=(Left(text, text, text),),
            notes=(text,),
            place=text,
        )
    )
    tree = ast.parse(printed.encode(errors="backslashreplace"))
    kinds = [type(node).__name__ for node in tree.body]
    assert kinds == ["Expr", "Import", "Import", "Import", "Import", "Expr", "FunctionDef"]
    assert all(c.isprintable() or c == "\n" for c in printed)


def test_a_line_that_is_too_long_is_laid_out(house: House) -> None:
    found = made(kwargs={f"name_{n}": n for n in range(20)})
    printed = writer.module(reading(found))
    assert "beat.register(\n    app.tasks.add,\n" in printed
    [declared] = house.declared(reading(found)).values()
    assert declared.kwargs == found.kwargs


def test_a_comment_is_laid_out_and_a_caret_stays_below_its_field() -> None:
    printed = writer.module(reading(left=(Left("x", "y", f"{'word ' * 40}\n    0 25 * * *\n      ^^"),)))
    assert all(len(line) <= 100 for line in printed.split("\n"))
    assert "#       0 25 * * *\n#         ^^" in printed


@pytest.mark.parametrize(
    ("name", "id_", "function"),
    [
        ("daily", "daily", "daily"),
        ("Every day: at 9", "Every-day-at-9", "every_day_at_9"),
        ("7zip", "7zip", "run_7zip"),
        ("class", "class", "run_class"),
        ("", "schedule", "schedule"),
        ("--", "schedule", "schedule"),
        ("ﬁle", "file", "file"),
    ],
)
def test_a_name_becomes_an_id_and_a_function(name: str, id_: str, function: str) -> None:
    assert slug(name) == id_
    assert identifier(id_) == function


@given(st.text(max_size=300))
def test_any_name_becomes_an_id_that_beat_takes(name: str) -> None:
    drafts = [Draft(name, "x", lambda: made(id=name)) for _ in range(3)]
    found = gathered("celery", "x", drafts).found
    assert len({each.id for each in found}) == 3
    assert all(each.schedule().id == each.id for each in found)


def test_fifty_thousand_schedules_of_one_name_are_named_in_a_moment() -> None:
    ids, started = _Ids(), time.monotonic()
    assert len({ids.free("x" * 100) for _ in range(50_000)}) == 50_000
    in_time(time.monotonic() - started, 30)  # looked for from the first number on, it would be minutes


# --- a file that is read and not run -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 5", 5),
        ("x = -5.5", -5.5),
        ("x = 'a' 'b'", "ab"),
        ("x = (1, [2], {'a': {3}})", (1, [2], {"a": frozenset({3})})),
        ("Y = 60\nx = Y * 60 // 7 - 1", 513),
        ("Y = Z\nZ = 3\nx = Y + 1 / 2", 3.5),
        ("D = {'a': 1}\nx = {**D, 'b': 2}", {"a": 1, "b": 2}),
        ("Y: int = 5\nx = Y", 5),
        ("x = None", None),
    ],
)
def test_a_literal_is_known_without_running_the_file(text: str, value: object) -> None:
    read = python_source.parsed("f.py", "f", text)
    assert read.value(read.constants["x"]) == value


@pytest.mark.parametrize(
    "text",
    [
        "x = y",
        "x = x",
        "Y = 1\nY = 2\nx = Y",
        "Y = 1\nY += 1\nx = Y",
        "Y = []\nY[0] = 1\nx = Y",
        "Y = []\ndel Y[0]\nx = Y",
        "for Y in z: pass\nx = Y",
        "if z:\n    Y = 1\nx = Y",
        "Y, Z = 1, 2\nx = Y",
        "x = f'{1}'",
        "x = 1j",
        "x = ...",
        "x = 'a' * 3",
        "x = 9**9**9",
        "x = 99999999999999999999 * 2",
        "x = open('f')",
        "x = __import__('os')",
        "x = y.z",
        "x = [1][0]",
        "x = lambda: 1",
        "x = {[]: 1}",
        "x = {{}}",
        "x = {**5}",
        "x = -'a'",
        "x = " + "[" * 80 + "]" * 80,
    ],
)
def test_what_is_no_literal_is_known_only_when_the_file_runs(text: str) -> None:
    read = python_source.parsed("f.py", "f", text)
    with pytest.raises(NotCarried, match="known only when the file runs"):
        read.value(read.constants.get("x") or ast.Name("x", lineno=1))


def test_days_and_ranges_are_written_as_people_would() -> None:
    assert cron_fields.written({0, 15, 30, 45}, MINUTE) == "0,15,30,45"
    assert cron_fields.written(range(1, 32), DAY) == "*"
    assert cron_fields.written({1, 3, 5, 7, 9}, DAY) == "1-9/2"
    assert cron_fields.written({1, 2, 4, 5, 6}, DAY) == "1,2,4-6"


def test_a_crontab_is_printed_and_read_again(house: House) -> None:
    read = crontab.read(house.write("table", "0 1 * * * echo 'it''s' \"$HOME\"\n"), tz="UTC")
    assert [each.id for each in house.declared(read).values()] == ["echo"]
