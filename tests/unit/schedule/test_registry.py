from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import shutil
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rq.utils import import_attribute

import beat
from beat import Registry
from beat.config.sources import Defaults
from beat.errors import (
    BadArguments,
    BadCron,
    BadDuration,
    BadFunction,
    BadInstant,
    BadOption,
    BadZone,
    DeclarationError,
    DuplicateSchedule,
    LoadError,
    UnknownSchedule,
)
from beat.schedule import options
from beat.schedule.registry import default_registry
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support import declared
from tests.support.chance import examples
from tests.support.declared import Number, Reports
from tests.support.files import lay_out
from tests.support.refusals import HOSTILE, BadRepr, Proxy, accepted, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    Write = Callable[[str], ModuleType]

PROJECT = Path(beat.__file__).parent.parent
MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
numbers = itertools.count()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Imports a text as a module that has a registry of its own, and its decorator on the first line."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(text: str) -> ModuleType:
        name = f"declared_{next(numbers)}"
        head = "from beat import Registry; registry = Registry(); periodic = registry.periodic\n"
        (tmp_path / f"{name}.py").write_text(head + textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refused_at(kind: type[DeclarationError], declare: Callable[[], object]) -> tuple[str, str]:
    """Where and why a declaration is refused."""
    with pytest.raises(kind) as caught:
        declare()
    assert type(caught.value) is kind
    assert caught.value.where is not None
    assert str(caught.value) == f"{caught.value.where}: {caught.value.message}"
    return caught.value.where, caught.value.message


# --- the decorator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("func", [declared.plain, declared.poll, declared.wrapped, Reports.static])
def test_the_decorator_returns_the_very_same_function(registry: Registry, func: Any) -> None:
    before = dict(vars(func))
    assert registry.periodic("@daily", args=["daily"] if func is declared.wrapped else [])(func) is func
    assert vars(func) == before


def test_a_decorated_function_can_be_called(registry: Registry) -> None:
    assert registry.periodic("@daily")(declared.plain)() == "plain"


def test_a_decorated_coroutine_function_can_be_awaited(registry: Registry) -> None:
    assert asyncio.run(registry.periodic(every="15m")(declared.poll)()) == "polled"


def test_a_schedule_is_named_and_described_after_its_function(registry: Registry) -> None:
    registry.periodic("@daily")(declared.plain)
    assert (registry.get("plain").id, registry.get("plain").description) == ("plain", "Says plain.")


def test_what_is_said_wins_over_the_functions_own(registry: Registry) -> None:
    registry.periodic("@daily", id="other", description="")(declared.plain)
    assert registry.get("other").description == ""


def test_a_very_long_first_line_is_cut_to_a_description(module: Write) -> None:
    made = module(f'@periodic("@daily")\ndef f():\n    """{"x" * 900}"""\n').registry.get("f")
    assert made.description == "x" * 500


def test_a_function_without_documentation_has_no_description(registry: Registry) -> None:
    registry.periodic("@daily", args=["daily"])(declared.report)
    assert registry.get("report").description == ""


def test_a_name_that_is_no_id_is_refused_and_an_id_helps(registry: Registry) -> None:
    _, message = refused_at(BadOption, lambda: registry.periodic("@daily")(declared.größe))
    assert "id 'größe' must be" in message
    registry.periodic("@daily", id="groesse")(declared.größe)
    assert registry.get("groesse").func == "tests.support.declared.größe"


def test_schedules_are_kept_in_the_order_of_their_declaration(registry: Registry) -> None:
    names = ["c", "a", "b", "z", "d"]
    for name in names:
        registry.register(declared.plain, "@daily", id=name)
    assert [schedule.id for schedule in registry] == names


def test_one_function_has_several_schedules_when_they_have_ids(module: Write) -> None:
    made = module("""
        @periodic("@daily", id="daily-report", args=["daily"])
        @periodic("@weekly", id="weekly-report", args=["weekly"])
        def report(kind): ...
    """)
    assert {schedule.id: schedule.args for schedule in made.registry} == {
        "daily-report": ("daily",),
        "weekly-report": ("weekly",),
    }


def test_one_function_with_two_schedules_and_no_ids_is_refused(registry: Registry) -> None:
    registry.register(declared.plain, "@daily")
    _, message = refused_at(DuplicateSchedule, lambda: registry.register(declared.plain, "@weekly"))
    assert "as in id='plain-2'" in message


def test_every_accepted_function_is_the_one_that_a_stock_worker_imports(module: Write) -> None:
    made = module("""
        import functools

        def decorator(func):
            @functools.wraps(func)
            def wrapper(*args, **kwargs):
                return func(*args, **kwargs)
            return wrapper

        @periodic("@daily")
        def plain(): ...

        @periodic("@daily")
        async def poll(): ...

        @periodic("@daily")
        @decorator
        def inside(): ...

        @decorator
        @periodic("@daily")
        def outside(): ...

        class Reports:
            @staticmethod
            @periodic("@daily")
            def static(): ...
    """)
    functions = [made.plain, made.poll, made.inside, made.outside, made.Reports.static]
    assert [import_attribute(schedule.func) for schedule in made.registry] == functions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class A:\n    @periodic('@daily')\n    @staticmethod\n    def f(): ...", "put @staticmethod above @periodic"),
        (
            "class A:\n    @periodic('@daily')\n    @classmethod\n    def f(cls): ...",
            "it is a class method",
        ),
        ("class A:\n    @periodic('@daily')\n    def f(self): ...", "it is a method, and a worker has no object"),
        ("class A:\n    @periodic('@daily', args=[1])\n    def f(self): ...", "it is a method"),
        ("class A:\n    @classmethod\n    @periodic('@daily')\n    def f(cls): ...", "it is a class method"),
        ("@periodic('@daily')\nclass A: ...", "it is a class"),
        ("def g():\n    @periodic('@daily')\n    def f(): ...\ng()", "it is defined inside another function"),
        ("@periodic('@daily')\ndef f():\n    yield 1", "it is a generator"),
        ("f = periodic('@daily')(lambda: 1)", "it is a lambda"),
        ("f = periodic('@daily')(print)", "it is a builtin"),
    ],
)
def test_what_no_worker_could_import_is_refused_where_it_is_declared(module: Write, text: str, words: str) -> None:
    where, message = refused_at(BadFunction, lambda: module(text))
    assert words in message
    assert ".py:" in where


@pytest.mark.parametrize("ids", [("", ""), ("id='a'", "id='b'")])
def test_two_functions_of_one_name_are_refused(module: Write, ids: tuple[str, str]) -> None:
    text = "".join(f"@periodic('@daily', {given})\ndef f(): ...\n" for given in ids)
    where, message = refused_at(BadFunction, lambda: module(text))
    assert ".f is defined twice, and a worker would find only the later" in message
    assert where.endswith(".py:4")


def test_a_declaration_that_was_refused_can_be_made_again(module: Write) -> None:
    made = module("""
        try:
            @periodic("61 * * * *")
            def f(): ...
        except ValueError:
            @periodic("1 * * * *")
            def f(): ...
    """)
    assert [schedule.id for schedule in made.registry] == ["f"]


# --- places ----------------------------------------------------------------------------------------------------------


def test_a_schedule_knows_where_it_was_declared(module: Write) -> None:
    made = module('\n\n@periodic(\n    "@daily",\n)\ndef f(): ...\n')
    place = made.registry.get("f").declared
    assert (place.file, place.module) == (made.__file__, made.__name__)
    assert 4 <= place.line <= 6


def test_a_place_below_the_current_directory_is_relative(
    module: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = module("@periodic('@daily')\ndef f(): ...\n")
    assert str(made.registry.get("f").declared) == f"{made.__name__}.py:2"


def test_a_duplicate_names_both_places(module: Write) -> None:
    made = module("@periodic('@daily', id='twice')\ndef f(): ...\n\ndef g(): ...\n")
    where, message = refused_at(DuplicateSchedule, lambda: made.registry.register(made.g, "@daily", id="twice"))
    assert "test_registry.py:" in where
    assert f"schedule 'twice' is declared twice, first at {made.__file__}:2 for {made.__name__}.f" in message


def test_a_refusal_names_the_line_of_the_declaration(module: Write) -> None:
    where, _ = refused_at(BadCron, lambda: module("\n\n@periodic('61 * * * *')\ndef f(): ...\n"))
    assert where.endswith(".py:4")


# --- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "needs five (six with seconds=True)"),
        ("* * * *", "has 4 fields, needs five"),
        ("0 0 9 * * *", "with seconds first, say seconds=True"),
        ("* * * * * * *", "has 7 fields, needs five"),
        ("60 * * * *", "minute 60 is out of range 0-59"),
        ("0 24 * * *", "hour 24 is out of range 0-23"),
        ("* * * * 8", "day-of-week 8 is out of range 0-7"),
        ("0 9 * * MON-FOO", "day-of-week 'FOO'"),
        ("5-1 * * * *", "runs backwards"),
        ("*/61 * * * *", "step 61 is larger than its range"),
        ("*/0 * * * *", "step '0' is not a number"),
        ("0 0 30 2 *", "never fires"),
        ("R * * * *", "a random time would differ"),
        ("٣ * * * *", "ARABIC-INDIC DIGIT THREE"),
        ("\uff13 * * * *", "FULLWIDTH DIGIT THREE"),
        ("0 9 * * *\0", "character 10 is U+0000"),
        ("0 9 * * *\n", "character 10 is U+000A"),
        pytest.param("*" * 1_000_000, "1,000,000 characters are too many", id="a megabyte of stars"),
        ("@dailyy", "Did you mean '@daily'?"),
        ("@reboot", "about time, not about starts"),
        ("@every 5m", "Write every='5m' instead."),
        (5, "an expression is text, not int"),
        (["0 9 * * *"], "an expression is text, not list"),
        (timedelta(minutes=5), "an expression is text, not timedelta"),
    ],
)
def test_an_expression_that_cannot_be_is_refused(registry: Registry, expression: Any, words: str) -> None:
    assert words in refused_at(BadCron, lambda: registry.register(declared.plain, expression))[1]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"every": 0}, BadDuration, "every=0 must lie between 1 second and 366 days"),
        ({"every": -5}, BadDuration, "every=-5 must lie between"),
        ({"every": float("nan")}, BadDuration, "every must be finite"),
        ({"every": True}, BadDuration, "every must be a length of time, not True"),
        ({"every": 0.3}, BadDuration, "every=0.3 must be whole seconds"),
        ({"every": 10**12}, BadDuration, "every=1000000000000 must lie between"),
        ({"every": "15m", "phase": "1h"}, BadDuration, "phase='1h' must lie between 0 and every='15m'"),
        ({"every": "15m", "phase": "1m", "start": MONDAY}, BadDuration, "give one of the two"),
        ({"every": "15m", "seconds": True}, BadOption, "every='10s' needs no such word"),
        ({"every": "15m", "seconds": "yes"}, BadOption, "seconds must be True or False, not 'yes'"),
        ({"every": "15m", "tz": ""}, BadZone, "time zone '' is not known"),
        ({"every": "15m", "tz": "+02:00"}, BadZone, "'Etc/GMT-2'"),
        ({"every": "15m", "start": MONDAY.replace(tzinfo=None)}, BadInstant, "has no time zone"),
        ({"every": "15m", "start": MONDAY.replace(microsecond=5)}, BadInstant, "must be a whole second"),
        ({"every": "15m", "start": MONDAY, "end": MONDAY}, BadInstant, "must lie before end"),
        ({"every": "15m", "end": ""}, BadInstant, "end must be a datetime, not str"),
        ({}, BadOption, "needs one rule, this has neither an expression nor every="),
        ({"every": None}, BadOption, "needs one rule, this has neither an expression nor every="),
        ({"tz": "UTC"}, BadOption, "write @periodic('0 9 * * *') or @periodic(every='15m')"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(
    registry: Registry, given: dict[str, Any], kind: type[DeclarationError], words: str
) -> None:
    assert words in refused_at(kind, lambda: registry.register(declared.plain, **given))[1]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"every": "15m"}, BadOption, "needs one rule, this has both an expression and every="),
        ({"phase": "5m"}, BadDuration, "phase shifts an interval; an expression says its own minutes"),
        ({"tz": "europe/paris"}, BadZone, "Did you mean 'Europe/Paris'?"),
        ({"tz": None}, BadZone, "as in tz='Europe/Paris'"),
        ({"start": ""}, BadInstant, "start must be a datetime, not str"),
        ({"start": MONDAY.replace(tzinfo=None)}, BadInstant, "start 2026-11-16T09:00:00 has no time zone"),
        ({"seconds": 1}, BadOption, "seconds must be True or False, not 1"),
        ({"quee": "reports"}, BadOption, "there is no option 'quee'. Did you mean 'queue'?"),
        ({"timeout": 5}, BadOption, "Did you mean 'job_timeout'?"),
        ({"func": "app.f"}, BadOption, "there is no option 'func'."),
        ({"declared": None}, BadOption, "there is no option 'declared'."),
        ({"priority": "urgent"}, BadOption, "must be one of 'high', 'normal', 'low'"),
        ({"args": [1]}, BadArguments, "do not fit plain() -> 'str': too many positional arguments"),
        ({"kwargs": {"a": 1}}, BadArguments, "got an unexpected keyword argument 'a'"),
    ],
)
def test_an_option_that_does_not_go_with_an_expression_is_refused(
    registry: Registry, given: dict[str, Any], kind: type[DeclarationError], words: str
) -> None:
    assert words in refused_at(kind, lambda: registry.register(declared.plain, "0 9 * * *", **given))[1]


ALL_AT_ONCE = """@periodic("60 9 * * *", timezone="Europe/Paris", tz="CEST", queue="", max_running=0, args=[1])
def report(): ...
"""


def test_all_mistakes_of_a_decorator_are_refused_at_once(module: Write) -> None:
    where, message = refused_at(DeclarationError, lambda: module(ALL_AT_ONCE))
    assert where.endswith(".py:2")
    assert message.split("\n") == [
        "6 mistakes:",
        "- there is no option 'timezone'. Did you mean 'tz'?",
        "- time zone 'CEST' is not known: use an IANA name: for CEST, 'Europe/Berlin' or 'Europe/Paris'",
        "- cron '60 9 * * *': minute 60 is out of range 0-59",
        "      60 9 * * *",
        "      ^^",
        "  The minute after 59 is 0.",
        "- queue '' must be a queue's name, at most 200 printable characters, as in 'reports'",
        "- max_running must be a whole number from 1 to 100, not 0",
        "- the arguments do not fit report(): too many positional arguments; pass them as args=[…] or kwargs={…}",
    ]


def test_each_of_several_mistakes_is_an_error_of_its_own_class(module: Write) -> None:
    with pytest.raises(DeclarationError) as caught:
        module(ALL_AT_ONCE)
    kinds = [BadOption, BadZone, BadCron, BadOption, BadOption, BadArguments]
    assert [type(each) for each in caught.value.mistakes] == kinds
    assert {each.where for each in caught.value.mistakes} == {caught.value.where}


def test_while_mistakes_are_collected_each_is_collected_by_itself(registry: Registry) -> None:
    with registry.collecting() as found:
        registry.register(declared.plain, "60 * * * *", tz="CEST")
        registry.register(declared.plain, crontab="@daily")  # type: ignore[call-overload]  # that is the mistake
    assert [type(each) for each in found] == [BadZone, BadCron, BadOption]
    assert all(each.where for each in found)


@pytest.mark.parametrize(
    ("given", "kind", "count"),
    [
        ({"quee": "a", "prio": "high"}, BadOption, 2),
        ({"priority": "urgent", "queue": "", "overlap": "no"}, BadOption, 3),
        ({"priority": "urgent"}, BadOption, 1),  # which decides about the queue, too
        ({"max_running": 2, "catchup_limit": 2, "route": "first"}, BadOption, 3),  # each says nothing here
        ({"start": "", "tz": "x", "seconds": 1}, DeclarationError, 3),
        ({"serializer": "yaml", "args": [1]}, DeclarationError, 2),
        ({"timezone": "CEST"}, DeclarationError, 2),  # its value is wrong, too
    ],
)
def test_no_mistake_is_told_twice_and_none_follows_from_another(
    registry: Registry, given: dict[str, Any], kind: type[DeclarationError], count: int
) -> None:
    with pytest.raises(kind) as caught:
        registry.register(declared.plain, "0 9 * * *", **given)
    assert type(caught.value) is kind
    assert len(caught.value.mistakes) == count


@pytest.mark.parametrize("given", [{"evry": "15m"}, {"interval": 900}, {"cron": "0 9 * * *"}])
def test_a_rule_under_a_wrong_name_is_not_a_missing_rule(registry: Registry, given: dict[str, Any]) -> None:
    _, message = refused_at(BadOption, lambda: registry.register(declared.plain, **given))
    assert "needs one rule" not in message


def test_a_function_and_its_options_are_refused_together(registry: Registry) -> None:
    _, message = refused_at(DeclarationError, lambda: registry.register(lambda: None, "60 * * * *"))
    assert "it is a lambda" in message
    assert "minute 60 is out of range" in message


@pytest.mark.parametrize("name", ["cron", "crontab", "expression"])
def test_an_expression_by_name_is_the_first_argument(registry: Registry, name: str) -> None:
    given: dict[str, Any] = {name: "0 9 * * *"}
    _, message = refused_at(BadOption, lambda: registry.register(declared.plain, **given))
    assert message == (
        f"there is no option {name!r}. The expression is the first argument, as in @periodic('0 9 * * *')."
    )


def test_the_decorator_without_parentheses_is_refused_with_an_example(module: Write) -> None:
    where, message = refused_at(BadOption, lambda: module("@periodic\ndef f(): ...\n"))
    assert "write @periodic('0 9 * * *') or @periodic(every='15m')" in message
    assert where.endswith(".py:2")


@pytest.mark.parametrize(
    ("expression", "given", "timing"),
    [
        ("0 9 * * *", {}, Cron("0 9 * * *")),
        ("0 9 * * *", {"tz": "Europe/Paris"}, Cron("0 9 * * *", tz="Europe/Paris")),
        ("30 0 9 * * *", {"seconds": True}, Cron("30 0 9 * * *", seconds=True)),
        (None, {"every": "15m"}, Every("15m")),
        (None, {"every": Number.THREE}, Every(3)),
        (None, {"every": "15m", "phase": 60}, Every("15m", phase=60)),
        (None, {"every": "15m", "start": MONDAY}, Every("15m", start=MONDAY)),
    ],
)
def test_a_rule_becomes_a_timing(
    registry: Registry, expression: str | None, given: dict[str, Any], timing: object
) -> None:
    assert registry.register(declared.plain, expression, **given).timing == timing


def test_an_interval_with_a_start_has_no_tick_before_it(registry: Registry) -> None:
    registry.register(declared.plain, every="15m", start=MONDAY)
    assert registry.next_run("plain", MONDAY - timedelta(days=1)) == MONDAY


# --- defaults --------------------------------------------------------------------------------------------------------

HOUSE = Defaults(
    tz="Europe/Paris",
    presets={"nightly": "0 3 * * *", "night_shift": "0 22 * * *", "broken": "0 25 * * *", "six": "0 0 3 * * *"},
    queues={"high": "urgent", "normal": "usual", "low": "later"},
)


@pytest.fixture
def house() -> Registry:
    return Registry(lambda: HOUSE)


def test_the_defaults_are_read_once_and_not_before_the_first_declaration() -> None:
    reads: list[int] = []
    registry = Registry(lambda: reads.append(1) or HOUSE)  # type: ignore[func-returns-value]  # that is the trick
    assert len(reads) == 0
    for name in "abc":
        registry.register(declared.plain, "nightly", id=name)
    assert len(reads) == 1


def test_a_preset_is_an_expression_with_a_name(house: Registry) -> None:
    assert house.register(declared.plain, "nightly").timing == Cron("0 3 * * *", tz="Europe/Paris")


def test_a_preset_of_six_fields_needs_the_word_too(house: Registry) -> None:
    assert house.register(declared.plain, "six", seconds=True).timing == Cron("0 3 * * *", tz="Europe/Paris")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("nightli", "Did you mean 'nightly'?"),
        (
            "hourly",
            "is neither five fields nor the name of a preset (known presets: broken, night_shift, nightly, six)",
        ),
        ("broken", "preset 'broken': cron '0 25 * * *': hour 25 is out of range 0-23"),
        ("six", "preset 'six': cron '0 0 3 * * *': has 6 fields, needs five"),
    ],
)
def test_a_preset_that_cannot_be_is_refused(house: Registry, expression: str, words: str) -> None:
    assert words in refused_at(BadCron, lambda: house.register(declared.plain, expression))[1]


def test_a_word_where_there_are_no_presets_is_refused_with_an_example(registry: Registry) -> None:
    _, message = refused_at(BadCron, lambda: registry.register(declared.plain, "nightly"))
    assert "no presets are set" in message
    assert "Example: '0 9 * * mon-fri'" in message


@pytest.mark.parametrize("given", [{"expression": "0 9 * * *"}, {"every": "15m"}])
def test_the_default_zone_is_that_of_the_settings(house: Registry, given: dict[str, Any]) -> None:
    expression = given.pop("expression", None)
    assert house.register(declared.plain, expression, **given).tz == "Europe/Paris"


def test_a_zone_that_is_said_wins_over_the_default(house: Registry) -> None:
    assert house.register(declared.plain, "0 9 * * *", tz="Asia/Tokyo").timing == Cron("0 9 * * *", tz="Asia/Tokyo")


@pytest.mark.parametrize("given", [{"expression": "0 9 * * *"}, {"every": "15m"}])
def test_a_default_zone_that_does_not_exist_is_refused(given: dict[str, Any]) -> None:
    registry = Registry(lambda: Defaults(tz="Europe/Atlantis"))
    expression = given.pop("expression", None)
    assert "is not known" in refused_at(BadZone, lambda: registry.register(declared.plain, expression, **given))[1]


@pytest.mark.parametrize(
    ("given", "queue"),
    [
        ({}, "usual"),
        ({"priority": "high"}, "urgent"),
        ({"priority": "normal"}, "usual"),
        ({"priority": "low"}, "later"),
        ({"priority": "high", "queue": "reports"}, "reports"),
    ],
)
def test_the_priority_decides_the_queue_unless_one_is_named(house: Registry, given: Any, queue: str) -> None:
    assert house.register(declared.plain, "@daily", **given).queue == queue


def test_without_settings_the_queues_are_rqs_own(registry: Registry) -> None:
    queues = [registry.register(declared.plain, "@daily", id=p, priority=p).queue for p in ("high", "normal", "low")]
    assert queues == ["high", "default", "low"]


# --- insert once -----------------------------------------------------------------------------------------------------


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call returned or raised, when all began at the same time."""
    gate = threading.Barrier(len(calls))
    results: list[object] = []

    def run(call: Callable[[], object]) -> None:
        gate.wait()
        try:
            results.append(call())
        except DeclarationError as e:
            results.append(e)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("turn", range(5))
def test_of_many_threads_that_insert_one_id_exactly_one_wins(registry: Registry, turn: int) -> None:
    results = at_once(*[lambda: registry.register(declared.plain, "@daily", id=f"same-{turn}")] * 16)
    assert Counter(map(type, results)) == {Schedule: 1, DuplicateSchedule: 15}
    assert [registry.get(f"same-{turn}")] == [result for result in results if isinstance(result, Schedule)]


@pytest.mark.usefixtures("hasty")
def test_of_many_threads_that_insert_different_ids_all_win(registry: Registry) -> None:
    ids = [f"id-{n}" for n in range(16)]
    at_once(*[lambda name=name: registry.register(declared.plain, "@daily", id=name) for name in ids])
    assert {schedule.id for schedule in registry} == set(ids)


def test_inserting_does_not_disturb_who_is_reading(registry: Registry) -> None:
    registry.register(declared.plain, "@daily", id="a")
    seen = []
    for schedule in registry:
        seen.append(schedule.id)
        registry.register(declared.plain, "@daily", id=f"{schedule.id}-more")
    assert seen == ["a"]
    assert len(registry) == 2


# --- register --------------------------------------------------------------------------------------------------------


def test_a_function_that_one_does_not_own_is_registered(registry: Registry) -> None:
    made = registry.register(shutil.disk_usage, "@daily", args=["/"])
    assert (made.id, made.func, made.args) == ("disk_usage", "shutil.disk_usage", ("/",))
    assert import_attribute(made.func) is shutil.disk_usage


def test_its_arguments_are_checked_too(registry: Registry) -> None:
    message = refused_at(BadArguments, lambda: registry.register(shutil.disk_usage, "@daily"))[1]
    assert "missing a required argument: 'path'" in message


def test_an_argument_that_a_decorator_adds_is_not_asked_for(registry: Registry) -> None:
    assert registry.register(declared.in_session, "@daily", kwargs={"kind": "daily"}).kwargs == {"kind": "daily"}


def ready(**given: Any) -> Schedule:
    return Schedule(**{"id": "ready", "func": "app.f", "timing": Every("1h"), **given})


def test_a_schedule_that_is_ready_is_registered_with_its_place(registry: Registry) -> None:
    made = registry.register(ready())
    assert registry.get("ready") is made
    assert made == ready()
    assert made.declared is not None
    assert made.declared.module == __name__


def test_a_schedule_that_is_ready_is_registered_once(registry: Registry) -> None:
    made = registry.register(ready())
    for again in (made, ready(), ready(queue="other")):
        _, message = refused_at(DuplicateSchedule, lambda again=again: registry.register(again))  # type: ignore[misc]  # a bound default_registry
        assert f"first at {made.declared}" in message


def test_a_schedule_keeps_its_place_in_another_registry(registry: Registry) -> None:
    made = registry.register(ready())
    assert Registry().register(made) is made


# --- looking things up -----------------------------------------------------------------------------------------------


def test_a_schedule_is_found_by_its_id(registry: Registry) -> None:
    made = registry.register(declared.plain, "@daily")
    assert registry.get("plain") is made
    assert "plain" in registry
    assert "other" not in registry


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("plian", "there is no schedule 'plian'. Did you mean 'plain'?"),
        ("PLAIN", "Did you mean 'plain'?"),
        ("quite-other", "there is no schedule 'quite-other'."),
        ("", "there is no schedule ''."),
    ],
)
def test_an_unknown_id_is_told_with_the_nearest(registry: Registry, asked: str, words: str) -> None:
    registry.register(declared.plain, "@daily")
    with pytest.raises(UnknownSchedule) as caught:
        registry.get(asked)
    assert words in str(caught.value)


def test_an_unknown_id_is_a_key_error(registry: Registry) -> None:
    with pytest.raises(KeyError, match="there is no schedule 'plain'"):
        registry.next_run("plain", MONDAY)


def test_the_next_run_is_the_first_tick_after_an_instant(registry: Registry) -> None:
    registry.register(declared.plain, "0 9 * * *")
    assert registry.next_run("plain", MONDAY) == MONDAY + timedelta(days=1)


def test_there_is_no_next_run_after_the_end(registry: Registry) -> None:
    registry.register(declared.plain, "0 9 * * *", end=MONDAY)
    assert registry.next_run("plain", MONDAY) is None


def test_a_question_about_a_naive_time_is_refused(registry: Registry) -> None:
    registry.register(declared.plain, "0 9 * * *", end=MONDAY)
    message = refused(BadInstant, lambda: registry.next_run("plain", MONDAY.replace(tzinfo=None)))
    assert "has no time zone" in message


# --- collecting ------------------------------------------------------------------------------------------------------


def test_while_collecting_every_problem_is_found_and_the_rest_goes_on(registry: Registry) -> None:
    with registry.collecting() as problems:
        assert registry.periodic("61 * * * *")(declared.plain) is declared.plain
        registry.periodic("@daily")(declared.poll)
        registry.periodic(every=0)(declared.anything)
        registry.periodic("@daily", id="poll")(declared.plain)
        registry.periodic(declared.plain)  # type: ignore[call-overload]  # without parentheses
        registry.periodic(every=BadRepr())(declared.plain)  # type: ignore[call-overload]  # that is the question
    assert [type(e) for e in problems] == [BadCron, BadDuration, DuplicateSchedule, BadOption, BadOption]
    assert all(e.where and "test_registry.py:" in e.where for e in problems)
    assert [schedule.id for schedule in registry] == ["poll"]


def test_what_stands_for_a_refused_schedule_is_not_in_the_registry(registry: Registry) -> None:
    with registry.collecting():
        assert registry.register(declared.plain, "61 * * * *").enabled is False
    assert len(registry) == 0


def test_after_collecting_a_problem_is_raised_again(registry: Registry) -> None:
    with registry.collecting():
        registry.register(declared.plain, "61 * * * *")
    refused_at(BadCron, lambda: registry.register(declared.plain, "61 * * * *"))


def test_collecting_ends_when_what_is_inside_it_fails(registry: Registry) -> None:
    with pytest.raises(ZeroDivisionError), registry.collecting():
        raise ZeroDivisionError
    refused_at(BadCron, lambda: registry.register(declared.plain, "61 * * * *"))


def test_collecting_within_collecting_leaves_the_outer_one_at_work(registry: Registry) -> None:
    with registry.collecting() as outer:
        with registry.collecting() as inner:
            registry.register(declared.plain, "61 * * * *")
        registry.register(declared.plain, every=0)
    assert ([type(e) for e in inner], [type(e) for e in outer]) == ([BadCron], [BadDuration])


# --- loading ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty application; what its modules declare goes into a default registry of its own."""
    monkeypatch.setattr("beat.schedule.registry.default_registry", Registry())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


TASKS = """
from beat import Every, Schedule
from beat.schedule import registry

@registry.default_registry.periodic("@daily")
def report(): ...

registry.default_registry.register(Schedule(id="ready", func="app.f", timing=Every("1h")))
"""


def test_the_parameters_of_loaded_functions_are_known(app: Path, registry: Registry) -> None:
    source = """
from beat.schedule import registry

@registry.default_registry.periodic("@daily")
def report(day=""): ...

@registry.default_registry.schedulable
def invoice(customer): ...
"""
    (app / "tasks_signed.py").write_text(source, encoding="utf-8")
    registry.load("tasks_signed")
    assert set(registry.signatures) == {"tasks_signed.report", "tasks_signed.invoice"}
    assert '"name": "customer"' in registry.signatures["tasks_signed.invoice"]
    assert '"name": "day"' in registry.signatures["tasks_signed.report"]


def test_a_registry_takes_what_the_modules_declare(app: Path, registry: Registry) -> None:
    (app / "tasks_taken.py").write_text(TASKS, encoding="utf-8")
    load = registry.load("tasks_taken")
    assert [schedule.id for schedule in registry] == ["report", "ready"]
    assert (load.modules, load.silent, load.problems) == (("tasks_taken",), (), ())


def test_a_registry_leaves_what_other_modules_declare(app: Path, registry: Registry) -> None:
    (app / "tasks_other.py").write_text(TASKS, encoding="utf-8")
    (app / "tasks_empty.py").write_text("", encoding="utf-8")
    importlib.import_module("tasks_other")
    assert registry.load("tasks_empty").silent == ("tasks_empty",)
    assert len(registry) == 0


def test_a_module_can_be_loaded_twice(app: Path, registry: Registry) -> None:
    (app / "tasks_twice.py").write_text(TASKS, encoding="utf-8")
    registry.load("tasks_twice")
    registry.load("tasks_twice")
    assert [schedule.id for schedule in registry] == ["report", "ready"]


def test_a_loaded_schedule_does_not_give_way_to_another_of_its_id(app: Path, registry: Registry) -> None:
    (app / "tasks_again.py").write_text(TASKS, encoding="utf-8")
    registry.register(declared.plain, "@daily", id="report")
    assert "is declared twice" in refused(DuplicateSchedule, lambda: registry.load("tasks_again"))


def test_a_module_that_fails_is_raised_or_collected(app: Path, registry: Registry) -> None:
    (app / "tasks_failing.py").write_text("1 / 0", encoding="utf-8")
    with pytest.raises(LoadError):
        registry.load("tasks_failing")
    with registry.collecting():
        assert [type(problem) for problem in registry.load("tasks_failing").problems] == [LoadError]


def test_a_registry_knows_which_modules_it_has_whole(app: Path, registry: Registry) -> None:
    lay_out(app, {"tasks_first.py": "import tasks_helper", "tasks_helper.py": "", "shop/__init__.py": ""})
    lay_out(app, {"shop/reports.py": TASKS, "other/__init__.py": "", "other/one.py": ""})
    registry.load("tasks_first", "shop", "other.one")
    assert registry.main_module == "tasks_first"
    whole = ("tasks_first", "tasks_helper", "shop", "shop.reports", "shop.deleted", "shop.deep.deleted", "other.one")
    assert [each for each in whole if each not in registry.modules] == []
    strangers = ("tasks", "shopping", "other.two", "other.one.deleted", "json", "__main__", "")
    assert [each for each in strangers if each in registry.modules] == []


def test_a_registry_has_the_modules_in_which_its_schedules_are_declared(registry: Registry) -> None:
    assert (registry.main_module, "x" in registry.modules) == ("", False)
    registry.register(declared.plain, "@daily")
    assert registry.main_module == __name__
    assert __name__ in registry.modules


def test_the_default_registry_has_every_imported_module() -> None:
    assert "json" in default_registry.modules
    assert "json_of_nobody" not in default_registry.modules


# --- whatever is handed in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declare",
    [
        lambda registry, bad: registry.register(bad, "@daily"),
        lambda registry, bad: registry.register(declared.plain, bad),
        lambda registry, bad: registry.periodic(bad)(declared.plain),
        lambda registry, bad: registry.periodic("@daily")(bad),
        *(
            lambda registry, bad, name=name: registry.register(declared.plain, every="15m", **{name: bad})
            for name in ("phase", "start", "tz", "seconds", "priority", "id", "description", "queue")
        ),
        lambda registry, bad: registry.register(declared.plain, "@daily", phase=bad),
        lambda registry, bad: registry.register(declared.plain, every=bad),
    ],
)
@pytest.mark.parametrize("bad", HOSTILE)
def test_a_hostile_value_is_refused_wherever_it_stands(registry: Registry, declare: Any, bad: Any) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare(registry, bad())
    assert caught.value.where
    assert len(registry) == 0


def test_a_refusal_of_a_hostile_value_tells_what_it_raised(registry: Registry) -> None:
    message = refused_at(BadOption, lambda: registry.register(Proxy(), "@daily"))[1]  # type: ignore[call-overload]  # that is the question
    assert message == "the declaration cannot be read: Harm: out of context; pass plain values"


def test_a_function_with_a_hostile_default_is_refused_or_taken_as_any_other(module: Write) -> None:
    made = module("from tests.support.refusals import BadRepr\ndef f(a, b=BadRepr()): ...\n")
    assert made.registry.register(made.f, "@daily", args=[1]).id == "f"
    assert not accepted(lambda: made.registry.register(made.f, "@daily", id="other"))


something = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["@daily", "0 9 * * *", "15m", "UTC", "high", "", MONDAY, {}, [], *HOSTILE])
)


@given(st.dictionaries(st.sampled_from(sorted(options.Options.__annotations__)), something, max_size=4), something)
@settings(max_examples=examples(500), deadline=None)
def test_any_declaration_is_accepted_or_refused(given: dict[str, Any], expression: Any) -> None:
    registry, alive = Registry(), {name: _alive(value) for name, value in given.items()}
    taken = accepted(lambda: registry.register(declared.anything, _alive(expression), **alive))
    assert len(registry) == taken


def _alive(value: Any) -> Any:
    return value() if isinstance(value, type) else value  # hypothesis bears no looking at what is hostile


# --- imports start nothing -------------------------------------------------------------------------------------------

WATCHED = """
import sys
events = []
sys.addaudithook(lambda event, _: events.append(event))
import json, threading
from beat import periodic, register
from beat.schedule.registry import default_registry
from tests.support import declared
periodic("0 9 * * *")(declared.plain)
register(declared.poll, every="15m")
print(json.dumps({
    "events": events,
    "threads": threading.active_count(),
    "modules": list(sys.modules),
    "schedules": [schedule.id for schedule in default_registry],
}))
"""


@pytest.fixture(scope="module")
def watched() -> dict[str, Any]:
    """What happened in a process that imported beat and declared two schedules."""
    done = subprocess.run([sys.executable, "-c", WATCHED], cwd=PROJECT, check=True, capture_output=True, text=True)
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["schedules"] == ["plain", "poll"]
    assert "import" in seen["events"]
    return seen


def begun(watched: dict[str, Any], *kinds: str) -> list[str]:
    return [event for event in watched["events"] if event.startswith(kinds)]


def test_importing_and_declaring_start_no_thread(watched: dict[str, Any]) -> None:
    assert (watched["threads"], begun(watched, "_thread.start")) == (1, [])


def test_importing_and_declaring_open_no_socket(watched: dict[str, Any]) -> None:
    assert begun(watched, "socket.") == []


def test_importing_and_declaring_start_no_process(watched: dict[str, Any]) -> None:
    assert begun(watched, "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.system") == []


@pytest.mark.parametrize("name", ["rq", "redis", "click", "pydantic"])
def test_importing_and_declaring_need_only_what_they_use(watched: dict[str, Any], name: str) -> None:
    assert name not in watched["modules"]
