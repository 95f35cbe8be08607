"""Read the calls of `register` in a configuration file of `rq cron`.

RQ evaluates cron expressions with croniter in UTC. The sixth field is seconds, and stands last. If both day fields are
restricted, a date needs to match only one of them, even if the other begins with a star.
"""

from __future__ import annotations

import ast
import functools
import itertools
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from beat.migrate import cron_fields, files, python_source
from beat.migrate.result import Draft, Found, NotCarried, gathered, named, positional
from beat.timing import clock, durations
from beat.timing.cron import Cron, expansion
from beat.timing.cron.fields import FIVE, SECOND, SIX
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.migrate.python_source import Code
    from beat.migrate.result import Reading

_REGISTER = "rq.cron.register"
_PARAMETERS = (
    "func", "queue_name", "args", "kwargs", "interval", "cron", "job_timeout", "result_ttl", "ttl", "failure_ttl",
    "meta", "webhooks", "name",
)  # fmt: skip
_KEPT = ("job_timeout", "result_ttl", "ttl", "failure_ttl", "meta")  # named the same in RQ and beat
_DEFAULT_RESULT_TTL = 500
_WITH_YEAR = 7
_SECOND = timedelta(seconds=1)
_COMPARED = 4
_COMPARED_FROM = [
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2027, 2, 27, 23, 59, tzinfo=UTC),
    datetime(2028, 2, 28, tzinfo=UTC),
    datetime(2030, 6, 30, tzinfo=UTC),
]
"""From where ticks are compared: a new year, ends of February with and without a 29th, the end of a month."""
_STOP = "stop `rq cron` before beat runs these, or every job comes twice"
_INTERVALS = (
    "intervals: rq cron counts from its own start, and runs each at once; "
    "beat counts from the epoch, so that no restart moves a tick"
)


def read(place: str, *, importing: bool = False) -> Reading:
    """Return the jobs of a configuration file, by its path or dotted name; the file runs only with `importing`."""
    drafts = list(_imported(place) if importing else _written(place))
    return gathered("rq-cron", place, drafts, [_STOP], intervals=_INTERVALS)


def _written(place: str) -> Iterator[Draft]:
    read = python_source.parsed(*files.read_python(place))
    calls = [n for n in ast.walk(read.tree) if isinstance(n, ast.Call) and read.dotted(n.func) == _REGISTER]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        yield Draft(_name(read, call), read.where(call), functools.partial(_read_call, read, call))


def _name(read: Code, call: ast.Call) -> str:
    given = [each.value for each in call.keywords if each.arg == "name"]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) and given[0].value:
        return given[0].value
    first = [each.value for each in call.keywords if each.arg == "func"] + call.args[:1]
    return (first and (read.dotted(first[0]) or python_source.shown(first[0]))) or f"line {call.lineno}"


def _read_call(read: Code, call: ast.Call) -> Found:
    if call in read.unsure:
        raise NotCarried("it stands in a loop, a condition or a function, which must run: add --import to let it run")
    if any(isinstance(each, ast.Starred) for each in call.args) or any(not each.arg for each in call.keywords):
        raise NotCarried("some of its arguments are unpacked with a star: add --import to let the file run")
    given = dict(zip(_PARAMETERS, call.args, strict=False)) | {str(each.arg): each.value for each in call.keywords}
    func = read.dotted(given.pop("func")) if "func" in given else None
    if func is None:
        raise NotCarried("its function is neither imported by name nor defined in a file that can be imported")
    webhooks = {"webhooks": ...} if "webhooks" in given and python_source.shown(given.pop("webhooks")) != "None" else {}
    values = {name: read.value(node) for name, node in given.items()}
    return _carried({**values, **webhooks}, func, _name(read, call), read.where(call))


def _imported(place: str) -> Iterator[Draft]:
    before = len(_registry())
    module = files.module(place)
    for data in _registry()[before:]:
        given = {name: value for name, value in data.items() if value is not None and name != "func"}
        func = files.path_of(data["func"])
        name = str(data.get("name") or func)
        yield Draft(name, module.__name__, functools.partial(_carried, given, func, name, module.__name__))


def _registry() -> list[dict[str, Any]]:
    """Return the list in which `rq.cron.register` stores jobs, or an empty list if nothing has imported `rq.cron`."""
    return getattr(sys.modules.get("rq.cron"), "_job_data_registry", [])


def _carried(given: Mapping[str, Any], func: str, name: str, where: str) -> Found:
    unknown = next((each for each in given if each not in _PARAMETERS), None)
    if unknown:
        raise NotCarried(f"rq.cron.register has no argument {unknown!r:.60}")
    if bool(given.get("interval")) == bool(given.get("cron")):
        raise NotCarried("it needs one of interval= and cron=, as rq cron itself does")
    options = {each: given[each] for each in _KEPT if given.get(each) is not None}
    if options.get("result_ttl") == _DEFAULT_RESULT_TTL:
        del options["result_ttl"]
    cron, seconds = _expression(given["cron"]) if given.get("cron") else (None, False)
    return Found(
        name=name,
        where=where,
        id=str(given.get("name") or func.rpartition(".")[2]),
        func=func,
        cron=cron,
        seconds=seconds,
        every=durations.short(Every(given["interval"]).period) if given.get("interval") else None,
        tz="UTC" if cron else None,
        args=positional(given.get("args")),
        kwargs=named(given.get("kwargs")),
        queue=given.get("queue_name"),
        options=options,
        notes=("its webhooks were not carried over: beat sends none",) if given.get("webhooks") else (),
    )


def _expression(written: object) -> tuple[str, bool]:
    """Return an expression of croniter's as beat writes it, and whether it has seconds."""
    if not isinstance(written, str):
        raise NotCarried(f"its cron expression is {written!r:.60}, not text")
    words = written.split()
    if len(words) == _WITH_YEAR:
        raise NotCarried(f"{written!r} has a field for the year, and beat's expressions have none: use start= and end=")
    seconds = len(words) == len(SIX)
    cron = _fields(written, words) if seconds or len(words) == len(FIVE) else written  # a macro, or invalid
    _refuse_other_ticks(written, Cron(cron, "UTC", seconds))
    return cron, seconds


def _fields(written: str, words: list[str]) -> str:
    """Return the fields in beat's order, each with the values that croniter reads in it."""
    texts = [cron_fields.unwrapped(text, column) for text, column in zip(words, (*FIVE, SECOND), strict=False)]
    try:
        read = expansion.expand(written)
    except expansion.Unreadable as e:
        Cron(
            " ".join([*texts[5:], *texts[:5]]), "UTC", len(texts) == len(SIX), seed=""
        )  # raises beat's own, clearer error
        raise NotCarried(f"rq cron reads {written!r} in another way than beat: {e}") from e
    texts = [
        cron_fields.kept(text, column, each.values)
        for text, column, each in zip(texts, (*FIVE, SECOND), read, strict=False)
    ]
    if read[2].restricts and read[4].restricts:
        texts[2], texts[4] = cron_fields.either(texts[2], texts[4])
    else:
        texts[2], texts[4] = (texts[n] if read[n].restricts else "*" for n in (2, 4))
    return " ".join([*texts[5:], *texts[:5]])


def _refuse_other_ticks(written: str, cron: Cron) -> None:
    """Raise NotCarried if croniter's next ticks differ from beat's, whatever the reason."""
    for start in _COMPARED_FROM:
        theirs = expansion.ticks(written, start, _COMPARED)
        ours = list(itertools.islice(cron.ticks(start + _SECOND), _COMPARED))
        if theirs != ours:
            pairs = itertools.zip_longest(theirs, ours)
            first, other = next(pair for pair in pairs if pair[0] != pair[1])
            when = f"runs {written!r} at {clock.text(first)}" if first else f"finds no run of {written!r}"
            raise NotCarried(f"rq cron {when}, and beat would run {str(cron)!r} at {clock.text(other)}")
