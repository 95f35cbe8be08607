"""Inspect functions: the dotted path by which a worker imports them, their summary, and whether arguments fit them.

A scheduler stores the parameters of its functions in Redis as JSON, so that clients can check arguments without the
code.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import types
from typing import TYPE_CHECKING, Any

from beat.errors import BadArguments, BadFunction, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_remembered = functools.lru_cache(maxsize=1024)  # many schedules may call one function
LONGEST_SIGNATURE = 8_192
"""The largest size in characters; longer signatures are not stored."""
_KINDS = {
    kind.name.lower(): kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_CLASS_METHOD = (
    "it is a class method, and beat schedules only functions and static methods; "
    "call it from a function at the top of the module, and schedule that function"
)
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def path(func: Callable[..., Any]) -> str:
    """Return the dotted path of `func`; raise BadFunction if a worker could not import or run it."""
    return _path(func) if type(func) is types.FunctionType else _checked(func)  # other types may be unhashable


def _checked(func: Callable[..., Any]) -> str:
    name = getattr(func, "__qualname__", None) or repr(func)
    why = _not_a_function(func) or _not_importable(func, name) or _not_runnable(func)
    if why:
        raise BadFunction(f"{name:.100} cannot be scheduled: {why}")
    return f"{func.__module__}.{name}"


_path = _remembered(_checked)


def path_of(value: object, name: str) -> str:
    """Return the dotted path of a callback that is given as a function or as text."""
    if not isinstance(value, str):
        if not callable(value):
            raise BadFunction(
                f"{name} must be a function or its dotted path, not {value!r:.60}: write 'app.hooks.done'"
            )
        return path(value)
    if not _PATH.fullmatch(value):
        raise BadFunction(f"{name} {value[:60]!r} is not a dotted path: write 'app.hooks.done'")
    return str.__str__(value)  # str() of a str Enum member would be its name


@_remembered
def summary(func: Callable[..., Any]) -> str:
    """Return the first line of the function's docstring, printable and without extra spaces."""
    first = (inspect.getdoc(func) or "").strip().partition("\n")[0]
    return "".join(c for c in " ".join(first.split()) if c.isprintable())


def check_arguments(func: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise BadArguments if `func` cannot be called with these arguments."""
    if args or kwargs:
        _check(func, args, kwargs)
    else:
        _check_bare(func)


def _check(func: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    outer, signature = _signatures(func)
    try:
        outer.bind(*args, **kwargs)
        signature.bind_partial(*args, **kwargs)  # a decorator may add arguments
    except TypeError as e:
        written = f"{func.__name__}{signature}"
        raise BadArguments(
            f"the arguments do not fit {written:.200}: {e}; pass them as args=[…] or kwargs={{…}}"
        ) from e


@_remembered
def _check_bare(func: Callable[..., Any]) -> None:
    _check(func, (), {})


@_remembered
def _signatures(func: Callable[..., Any]) -> tuple[inspect.Signature, inspect.Signature]:
    """Return the signature of the decorated function, and that of the function below its decorators."""
    return inspect.signature(func, follow_wrapped=False), inspect.signature(func)


@_remembered
def signature(func: Callable[..., Any]) -> str:
    """Return the parameters of `func` as JSON, or "" if the text is longer than LONGEST_SIGNATURE.

    `called` lists the parameters of the function; `wraps`, if different, those of the function below its decorators.
    """
    outer, inner = _signatures(func)
    called, wraps = _parameters(outer), _parameters(inner)  # compare without defaults, which may not support ==
    written = json.dumps({"called": called, **({"wraps": wraps} if wraps != called else {})})
    return written if len(written) <= LONGEST_SIGNATURE else ""


def check_call(path: str, written: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise BadArguments if the arguments do not fit the JSON of `signature`; accept all if it is unreadable."""
    signatures = _read_signatures(written)
    if signatures is None:
        return
    outer, inner = signatures
    try:
        outer.bind(*args, **kwargs)
        inner.bind_partial(*args, **kwargs)
    except TypeError as e:
        takes_any = any(each.kind is each.VAR_KEYWORD for each in inner.parameters.values())
        unknown = "" if takes_any else next((name for name in kwargs if name not in inner.parameters), "")
        problem = f"got an unexpected keyword argument {unknown!r:.60}" if unknown else f"{e!s:.200}"
        hint = did_you_mean(unknown, inner.parameters) if unknown else ""
        shown = f"{path}{inner}"
        raise BadArguments(
            f"the arguments do not fit {shown:.300}, as its scheduler declares it: {problem}.{hint}"
        ) from e


def _parameters(found: inspect.Signature) -> list[dict[str, Any]]:
    """Return name, kind and `required` of each parameter, in order."""
    return [
        {
            "name": each.name,
            "kind": each.kind.name.lower(),
            "required": each.default is each.empty and each.kind not in _VARIABLE,
        }
        for each in found.parameters.values()
    ]


def _read_signatures(written: str) -> tuple[inspect.Signature, inspect.Signature] | None:
    """Return both signatures that `signature` wrote, or None if the text is not its JSON."""
    try:
        found = json.loads(written)
        outer = _signature_of(found["called"])
        return outer, _signature_of(found["wraps"]) if "wraps" in found else outer
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _signature_of(parameters: list[dict[str, Any]]) -> inspect.Signature:
    """Return a signature that shows each default value as `…`."""
    return inspect.Signature([_parameter(each["name"], _KINDS[each["kind"]], each["required"]) for each in parameters])


def _parameter(name: str, kind: inspect._ParameterKind, required: object) -> inspect.Parameter:
    default = inspect.Parameter.empty if required or kind in _VARIABLE else _DEFAULT
    return inspect.Parameter(name, kind, default=default)


class _Default:
    """An unknown default value."""

    def __repr__(self) -> str:
        return "…"


_DEFAULT = _Default()


def _not_a_function(func: object) -> str:
    if inspect.isclass(func):
        return "it is a class; schedule a function that makes one"
    if isinstance(func, functools.partial):
        return "it is a partial, which has no name to import; schedule its function and pass args= or kwargs="
    if isinstance(func, classmethod) or (isinstance(func, types.MethodType) and inspect.isclass(func.__self__)):
        return _CLASS_METHOD
    if isinstance(func, types.MethodType):
        return (
            "it is a method of an object, and a worker does not have that object; "
            "schedule a function at the top of a module"
        )
    if isinstance(func, staticmethod):
        return "the decorators are in the wrong order; put @staticmethod above @periodic"
    if inspect.isbuiltin(func):
        return "it is a builtin; wrap it in a function of your own"
    if not inspect.isfunction(func):
        return (
            f"it is a {type(func).__name__}, not a function; schedule a `def` at the top of a module, which may call it"
        )
    return ""


def _not_importable(func: Callable[..., Any], name: str) -> str:
    if "<lambda>" in name:
        return "it is a lambda, which has no name to import; write `def` at the top of a module"
    if "<locals>" in name:
        return (
            "it is defined inside another function; move it to the top of its module (decorators: use functools.wraps)"
        )
    if func.__module__ is None:
        return "it belongs to no module; write `def` at the top of one"
    if func.__module__ == "__main__":
        return "it lives in __main__, which is another file in the worker; move it to a module and import that"
    if not _PATH.fullmatch(f"{func.__module__}.{name}"):
        return f"{func.__module__}.{name} is not a path that can be imported"
    if "." in name:
        return _not_reached(func, name)
    return ""


def _not_reached(func: Callable[..., Any], name: str) -> str:
    """Return why a worker cannot call a function in a class, or "" for a static method.

    RQ creates no object to call a method on, and does not look into nested classes.
    """
    if name.count(".") > 1:
        return "it is in a class inside a class, where RQ does not look; move it to the top of its module"
    first = next(iter(inspect.signature(func).parameters), "")
    if first == "self":
        return (
            "it is a method, and a worker has no object to call it on; "
            "move it to the top of its module, or use @staticmethod"
        )
    return _CLASS_METHOD if first == "cls" else ""


def _not_runnable(func: Callable[..., Any]) -> str:
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        return "it is a generator, of which a worker would run nothing; loop inside it instead of using yield"
    return ""
