from __future__ import annotations

import functools
import json
import os.path
import re
import shutil
import types
from typing import TYPE_CHECKING, Any

import pytest
from rq.utils import import_attribute

from beat.errors import BadArguments, BadFunction
from beat.schedule import functions
from beat.schedule.registry import Registry
from tests.support import declared
from tests.support.declared import Queues, Reports
from tests.support.refusals import BadRepr, refused

if TYPE_CHECKING:
    from collections.abc import Callable


def of_module(module: object, name: str = "f", qualname: str | None = None) -> Callable[..., Any]:
    """A function that claims to live in `module`."""

    def func() -> None: ...

    func.__module__ = module  # type: ignore[assignment]  # that is the question
    func.__name__, func.__qualname__ = name, qualname or name
    return func


def inner() -> Callable[..., Any]:
    def nested() -> None: ...

    return nested


CLASS_METHOD = (
    "it is a class method, and beat schedules only functions and static methods; "
    "call it from a function at the top of the module, and schedule that function"
)


class Callee:
    def __call__(self) -> None: ...


# --- parameters, as Redis keeps them ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "problem"),
    [
        (declared.plain, (), {}, ""),
        (declared.plain, (1,), {}, "app.f(), as its scheduler declares it: too many positional arguments."),
        (declared.report, ("daily",), {"copies": 2}, ""),
        (declared.report, (), {"kind": "daily"}, ""),
        (
            declared.report,
            (),
            {},
            "app.f(kind, *, copies=…), as its scheduler declares it: missing a required argument",
        ),
        (declared.report, ("daily",), {"copie": 2}, "unexpected keyword argument 'copie'. Did you mean 'copies'?"),
        (declared.report, (), {"kin": "daily"}, "unexpected keyword argument 'kin'. Did you mean 'kind'?"),
        (declared.anything, (1, 2), {"a": 1}, ""),
        (declared.wrapped, ("daily",), {}, ""),
        (declared.wrapped, (), {}, ""),  # its decorator may add what is missing
        (declared.wrapped, (), {"kin": 1}, "app.f(kind), as its scheduler declares it: got an unexpected keyword"),
    ],
)
def test_check_call_refuses_what_the_written_parameters_do_not_take(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> None:
    written = functions.signature(func)
    if not problem:
        functions.check_call("app.f", written, args, kwargs)
        return
    with pytest.raises(BadArguments, match=re.escape(problem)):
        functions.check_call("app.f", written, args, kwargs)


def test_signature_is_plain_json() -> None:
    assert json.loads(functions.signature(declared.report)) == {
        "called": [
            {"name": "kind", "kind": "positional_or_keyword", "required": True},
            {"name": "copies", "kind": "keyword_only", "required": False},
        ]
    }


def test_signature_of_too_many_parameters_is_not_kept() -> None:
    names = ", ".join(f"parameter_{n}" for n in range(200))
    namespace: dict[str, Any] = {}
    exec(f"def many({names}): ...", namespace)  # noqa: S102 (a source of our own)
    assert functions.signature(namespace["many"]) == ""


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{",
        "[]",
        '{"called": 5}',
        '{"called": [5]}',
        '{"called": [{"name": "a b", "kind": "keyword_only", "required": true}]}',
        '{"called": [{"name": "a", "kind": "x", "required": true}]}',
        '{"called": [{"name": 5, "kind": "keyword_only", "required": true}]}',
        '{"called": [{"name": "a", "kind": [], "required": true}]}',
        "[" * 100_000,
    ],
)
def test_check_call_accepts_all_where_the_parameters_are_unknown(written: str) -> None:
    functions.check_call("app.f", written, (1,), {"a": 1})


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "path"),
    [
        (declared.plain, "tests.support.declared.plain"),
        (declared.poll, "tests.support.declared.poll"),
        (declared.wrapped, "tests.support.declared.wrapped"),
        (declared.größe, "tests.support.declared.größe"),
        (Reports.static, "tests.support.declared.Reports.static"),
        (shutil.disk_usage, "shutil.disk_usage"),
        (os.path.join, f"{os.path.__name__}.join"),
        (functools.wraps, "functools.wraps"),
    ],
)
def test_a_stock_worker_imports_the_very_function(func: Callable[..., Any], path: str) -> None:
    assert functions.path(func) == path
    assert import_attribute(path) is func


@pytest.mark.parametrize(
    ("func", "words"),
    [
        (lambda: None, "it is a lambda, which has no name to import; write `def` at the top of a module"),
        (inner(), "it is defined inside another function; move it to the top of its module"),
        (declared.forgotten, "use functools.wraps"),
        (of_module("__main__"), "it lives in __main__, which is another file in the worker; move it to a module"),
        (of_module(None), "it belongs to no module"),
        (of_module(""), "is not a path that can be imported"),
        (of_module("my-app.tasks"), "my-app.tasks.f is not a path that can be imported"),
        (of_module("app", name="<f>"), "is not a path that can be imported"),
        (of_module(5), "is not a path that can be imported"),
        (functools.partial(declared.report, "daily"), "schedule its function and pass args= or kwargs="),
        (functools.partialmethod(declared.report, "daily"), "it is a partialmethod, not a function"),
        (Reports().method, "it is a method of an object, and a worker does not have that object; schedule"),
        (Reports.of_class, CLASS_METHOD),
        (Reports.__dict__["of_class"], CLASS_METHOD),
        (Reports.__dict__["of_class"].__func__, CLASS_METHOD),  # @classmethod stands above @periodic
        (Reports.method, "it is a method, and a worker has no object to call it on; move it to the top of its module"),
        (Reports.__dict__["static"], "put @staticmethod above @periodic"),
        (Reports.Inner.static, "it is in a class inside a class, where RQ does not look"),
        (Reports, "it is a class; schedule a function that makes one"),
        (int, "it is a class"),
        (len, "it is a builtin; wrap it in a function of your own"),
        ([].append, "it is a builtin"),
        (str.lower, "it is a method_descriptor, not a function"),
        (
            functools.lru_cache(declared.plain),
            "not a function; schedule a `def` at the top of a module, which may call it",
        ),
        (Callee(), "it is a Callee, not a function"),
        (declared.loop, "it is a generator, of which a worker would run nothing"),
        (declared.stream, "it is a generator, of which a worker would run nothing"),
        (declared, "it is a module, not a function"),
        (property(Reports.method), "it is a property, not a function"),
        ("tests.support.declared.plain", "it is a str, not a function"),
        (None, "it is a NoneType, not a function"),
        (5, "it is a int, not a function"),
        pytest.param("x" * 1_000_000, "it is a str, not a function", id="a megabyte of x"),
    ],
)
def test_what_no_worker_could_run_is_refused_with_the_way_out(func: Any, words: str) -> None:
    message = refused(BadFunction, lambda: functions.path(func))
    assert " cannot be scheduled: " in message
    assert words in message


def test_a_refusal_names_the_function() -> None:
    assert refused(BadFunction, lambda: functions.path(Reports.Inner.static)).startswith("Reports.Inner.static cannot")


def test_a_function_that_calls_a_class_method_is_scheduled() -> None:
    assert functions.path(declared.calls_a_class_method) == "tests.support.declared.calls_a_class_method"


@pytest.mark.parametrize("order", ["@periodic('@daily')\n    @classmethod", "@classmethod\n    @periodic('@daily')"])
def test_a_class_method_is_refused_alike_in_either_order_of_the_decorators(order: str) -> None:
    text = f"class Jobs:\n    {order}\n    def nightly(cls): ..."
    names = {"__name__": "app.jobs", "periodic": Registry().periodic}
    message = refused(BadFunction, lambda: exec(text, names))  # noqa: S102 (a class whose decorators refuse)
    assert message.endswith(f"nightly cannot be scheduled: {CLASS_METHOD}")


def test_what_stock_rq_does_not_find_is_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Invalid attribute name"):
        import_attribute("tests.support.declared.Reports.Inner.static")


# --- callbacks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("app.hooks.done", "app.hooks.done"),
        ("app.Hooks.done", "app.Hooks.done"),
        ("a._b1", "a._b1"),
        (declared.plain, "tests.support.declared.plain"),
    ],
)
def test_a_callback_is_a_function_or_its_path(given: Any, path: str) -> None:
    assert functions.path_of(given, "on_success") == path


def test_a_path_that_is_a_member_of_an_enum_becomes_plain_text() -> None:
    assert type(functions.path_of(Queues.HOOK, "on_success")) is str


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "on_success '' is not a dotted path"),
        ("done", "on_success 'done' is not a dotted path"),
        (".done", "on_success '.done' is not a dotted path"),
        ("app.", "on_success 'app.' is not a dotted path"),
        ("app..done", "on_success 'app..done' is not a dotted path"),
        ("app.hooks:done", "on_success 'app.hooks:done' is not a dotted path"),
        ("app.hooks.done()", "is not a dotted path"),
        ("app.1", "is not a dotted path"),
        ("app hooks.done", "is not a dotted path"),
        ("app.hooks.done\n", "is not a dotted path"),
        ("app.hooks\0.done", "is not a dotted path"),
        ("app/hooks.py", "is not a dotted path"),
        pytest.param("a." * 500_000, "is not a dotted path", id="a megabyte of dots"),
        (None, "on_success must be a function or its dotted path, not None"),
        (5, "on_success must be a function or its dotted path, not 5"),
        ([declared.plain], "on_success must be a function or its dotted path, not [<function"),
        (lambda: None, "it is a lambda"),
        (print, "it is a builtin"),
        (Reports, "it is a class"),
    ],
)
def test_a_callback_that_no_worker_finds_is_refused(given: Any, words: str) -> None:
    assert words in refused(BadFunction, lambda: functions.path_of(given, "on_success"))


# --- summaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documentation", "summary"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("\n    Indented.\n\n    More.\n    ", "Indented."),
        ("  Much   space\tinside.  ", "Much space inside."),
        ("A bell \x07 and an escape \x1b[31m.", "A bell  and an escape [31m."),
        ("Größe 🎉", "Größe 🎉"),
        (5, ""),
    ],
)
def test_the_summary_is_the_first_line_of_the_documentation(documentation: Any, summary: str) -> None:
    func = types.FunctionType(declared.plain.__code__, {})
    func.__doc__ = documentation
    assert functions.summary(func) == summary


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "args", "kwargs"),
    [
        (declared.plain, [], {}),
        (declared.report, ["daily"], {}),
        (declared.report, [], {"kind": "daily", "copies": 2}),
        (declared.anything, [1, 2, 3], {"whatever": 4}),
        (declared.anything, [], {"not an identifier": 1}),
        (declared.wrapped, ["daily"], {}),
        (declared.in_session, ["daily"], {}),
        (declared.in_session, [], {"kind": "daily"}),
    ],
)
def test_arguments_that_fit_are_taken(func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    functions.check_arguments(func, args, kwargs)
    func(*args, **kwargs)  # they do fit


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "words"),
    [
        (declared.plain, [1], {}, "do not fit plain() -> 'str': too many positional arguments"),
        (declared.plain, [], {"kind": 1}, "got an unexpected keyword argument 'kind'"),
        (declared.report, [], {}, "missing a required argument: 'kind'"),
        (declared.report, ["daily", 2], {}, "too many positional arguments"),
        (declared.report, ["daily"], {"kind": "weekly"}, "multiple values for argument 'kind'"),
        (declared.report, ["daily"], {"copy": 2}, "got an unexpected keyword argument 'copy'"),
        (declared.poll, [1], {}, "do not fit poll() -> 'str'"),
        (declared.wrapped, ["daily", 2], {}, "do not fit wrapped(kind: 'str') -> 'str'"),
        (declared.wrapped, [], {"king": "daily"}, "got an unexpected keyword argument 'king'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_signature(
    func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], words: str
) -> None:
    message = refused(BadArguments, lambda: functions.check_arguments(func, args, kwargs))
    assert words in message
    assert message.endswith("pass them as args=[…] or kwargs={…}")


def test_a_very_long_signature_is_cut_short() -> None:
    def many(a: int, b: str = "x" * 10_000) -> None: ...

    assert "x" * 200 not in refused(BadArguments, lambda: functions.check_arguments(many, [], {}))


def test_arguments_that_cannot_be_shown_still_fit() -> None:
    functions.check_arguments(declared.anything, [BadRepr()], {"a": BadRepr()})


class Incomparable:
    """A value as an array is: comparing two of them raises."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array with more than one element is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def with_an_incomparable_default(data: object = Incomparable()) -> None: ...


@functools.wraps(with_an_incomparable_default)
def wrapping_it(*args: object, **kwargs: object) -> None: ...


def test_a_default_that_cannot_be_compared_is_no_obstacle() -> None:
    registry = Registry()
    registry.register(with_an_incomparable_default, every="1h", kwargs={"data": Incomparable()})
    assert "wraps" not in functions.signature(with_an_incomparable_default)
    assert "wraps" in functions.signature(wrapping_it)
