"""Find Celery's `beat_schedule`, time zone and `add_periodic_task` calls in a Python file, without running it."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.errors import BadSource, NoSource, did_you_mean
from beat.migrate.celery.schedules import Crontab, Interval, Solar
from beat.migrate.python_source import shown
from beat.migrate.result import NotCarried, named, positional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.migrate.python_source import Code

SCHEDULES = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
ZONES = ("timezone", "CELERY_TIMEZONE")
LOCAL = ("enable_utc", "CELERY_ENABLE_UTC")
_PERIODIC = "add_periodic_task"
_SIGNATURES = ("s", "si", "signature", "subtask")
_PARAMETERS = ("schedule", "sig", "args", "kwargs", "name")
_UNSURE = "it stands in a condition, a loop or a function, which must run: add --import to let it run"
CALLS: dict[str, Callable[..., Any]] = {
    **{f"{home}timedelta": timedelta for home in ("datetime.", "")},
    **{f"{home}crontab": Crontab for home in ("celery.schedules.", "")},
    **{f"{home}crontab.from_string": Crontab.from_string for home in ("celery.schedules.", "")},
    **{f"{home}schedule": Interval for home in ("celery.schedules.", "")},
    **{f"{home}solar": Solar for home in ("celery.schedules.", "")},
    "dict": dict,
}


@dataclass(frozen=True)
class Entry:
    """One entry of a schedule, to be read later."""

    name: str
    where: str
    read: Callable[[], dict[str, Any]]
    """A function that returns the entry as Celery stores it, or raises NotCarried."""


@dataclass(frozen=True)
class Setting:
    """An assignment `<target> = <value>`, in any of its forms."""

    target: str
    """A path such as `beat_schedule` or `app.conf.beat_schedule`."""
    value: ast.expr
    key: ast.expr | None = None
    """The key of `beat_schedule["name"] = …`."""
    sure: bool = True
    """Whether it is certain to run exactly once."""


def settings(code: Code) -> Iterator[Setting]:
    """Yield all that a file sets by assignment, by `update(…)` or by key, in the order of the lines."""
    statements = [node for node in ast.walk(code.tree) if isinstance(node, ast.stmt)]
    for statement in sorted(statements, key=lambda node: node.lineno):
        sure = statement not in code.unsure
        match statement:
            case ast.Assign(targets=[target], value=value):
                yield _assigned(target, value, sure=sure)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield _assigned(target, value, sure=sure)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="update", value=owner)) as call):
                path = _path(owner)
                for each in call.keywords:
                    yield Setting(f"{path}.{each.arg}" if each.arg else path, each.value, sure=sure)
                yield from (Setting(path, each, sure=sure) for each in call.args[:1])


def _assigned(target: ast.expr, value: ast.expr, *, sure: bool) -> Setting:
    if isinstance(target, ast.Subscript):
        return Setting(_path(target.value), value, target.slice, sure=sure)
    return Setting(_path(target), value, sure=sure)


def _path(node: ast.expr) -> str:
    """Return a path such as `app.conf.beat_schedule`; a part that is not a name becomes `?`, as for `app().conf`."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "?", *reversed(parts)])


def entries(code: Code, attribute: str | None) -> list[Entry]:
    """Return all entries of the schedule that `attribute` names, by default of every schedule that Celery would use.

    Raises NoSource if the file has none.
    """
    every = list(settings(code))
    ours = [each for each in every if _is_schedule(each.target, attribute)]
    found = [entry for each in ours for entry in _entries(code, each)]
    found += [
        Entry(_name(code, call), code.where(call), functools.partial(_periodic, code, call))
        for call in sorted(_calls(code), key=lambda call: call.lineno)
    ]
    if not ours and not found:
        names = [each.target for each in every]
        wanted = attribute or SCHEDULES[0]
        hint = did_you_mean(wanted, names) if attribute else " Name it, as in 'app.celery:SCHEDULE'."
        raise NoSource(f"{code.shown} has no {wanted}.{hint}")
    return found


def _is_schedule(target: str, attribute: str | None) -> bool:
    if attribute is None:
        return target.rpartition(".")[2] in SCHEDULES
    return target == attribute or target in {f"{attribute}.conf.{name}" for name in SCHEDULES}


def setting(code: Code, names: tuple[str, ...]) -> Any:
    """Return the value of an application setting, or None; raise BadSource if only running the file could tell."""
    every = [each for each in settings(code) if each.sure and each.key is None]
    ours = [each for each in every if each.target.rpartition(".")[2] in names]
    try:
        return code.value(ours[-1].value) if ours else None
    except NotCarried as e:
        raise BadSource(f"{code.shown}: {ours[-1].target}: {e}; or say --tz") from e


def _entries(code: Code, ours: Setting) -> Iterator[Entry]:
    node = ours.value
    if not ours.sure:
        yield Entry(f"line {node.lineno}", code.where(node), functools.partial(_refuse, _UNSURE))
        return
    if ours.key is not None:
        yield _entry(code, ours.key, node)
        return
    if isinstance(node, ast.Name):
        node = code.constants.get(node.id, node)
    if isinstance(node, ast.Call) and _path(node.func) == "dict" and not node.args:
        pairs = [(ast.Constant(each.arg, lineno=each.value.lineno), each.value) for each in node.keywords]
        yield from (_entry(code, key, value) for key, value in pairs)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from _entries(code, Setting(ours.target, value))
            else:
                yield _entry(code, key, value)
    else:
        raise BadSource(
            f"{code.where(node)}: {ours.target} is {shown(node)}, not a dict that can be read without "
            "running the file: add --import to let it run"
        )


def _refuse(why: str) -> dict[str, Any]:
    raise NotCarried(why)


def _entry(code: Code, key: ast.expr, value: ast.expr) -> Entry:
    name = str(key.value) if isinstance(key, ast.Constant) else shown(key)
    return Entry(name, code.where(value), functools.partial(_mapping, code, value))


def _mapping(code: Code, node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Dict):
        found = code.value(node, CALLS)
        if not isinstance(found, dict):
            raise NotCarried(f"it is {found!r:.60}, not a dict with 'task' and 'schedule'")
        return found
    pairs: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            pairs |= _mapping(code, value)
        else:
            name = str(code.value(key))
            pairs[name] = (name == "task" and _task(code, value)) or code.value(value, CALLS)
    return pairs


def _task(code: Code, node: ast.expr) -> str | None:
    """Return the path of `tasks.add` for `tasks.add.name`, which is Celery's default name of that task."""
    return code.dotted(node.value) if isinstance(node, ast.Attribute) and node.attr == "name" else None


def _calls(code: Code) -> Iterator[ast.Call]:
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _PERIODIC:
            yield node


def _name(code: Code, call: ast.Call) -> str:
    given = next((each.value for each in call.keywords if each.arg == "name"), None)
    if isinstance(given, ast.Constant) and given.value:
        return str(given.value)
    signed = [each.value for each in call.keywords if each.arg == "sig"] + call.args[1:2]
    paths = [code.dotted(_signature(each)[0]) for each in signed]
    return next(filter(None, paths), f"{_PERIODIC} in line {call.lineno}")


def _unpacks(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in call.args) or any(not each.arg for each in call.keywords)


def _signature(node: ast.expr) -> tuple[ast.expr, ast.Call | None]:
    """Return `add` and the call for `add.s(1, 2)`; return the node and None for a plain task."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SIGNATURES:
        return node.func.value, node
    return node, None


def _periodic(code: Code, call: ast.Call) -> dict[str, Any]:
    """Return the entry that `add_periodic_task(schedule, sig, args=(), kwargs=(), name=None, **options)` adds."""
    if call in code.maybe:
        raise NotCarried(_UNSURE)
    given = dict(zip(_PARAMETERS, call.args, strict=False)) | {str(each.arg): each.value for each in call.keywords}
    if not {"schedule", "sig"} <= given.keys() or _unpacks(call):
        raise NotCarried(f"{_PERIODIC} takes a schedule and a task: add --import to let the file run")
    task, signed = _signature(given.pop("sig"))
    path = code.dotted(task)
    if path is None:
        raise NotCarried(f"{shown(task)} is neither imported by name nor defined in this file")
    value = functools.partial(code.value, calls=CALLS)
    values = {name: value(node) for name, node in given.items() if name != "name"}
    args, kwargs = positional(values.pop("args", ())), named(values.pop("kwargs", ()))
    if signed and signed.func.attr in ("s", "si") and not _unpacks(signed):  # type: ignore[attr-defined]  # see _signature
        args = (*map(value, signed.args), *args)
        kwargs = {**{str(each.arg): value(each.value) for each in signed.keywords}, **kwargs}
    elif signed:
        raise NotCarried(f"{shown(signed)}: write {shown(task)}.s(…), or add --import")
    return {"task": path, "schedule": values.pop("schedule"), "args": args, "kwargs": kwargs, "options": values}
