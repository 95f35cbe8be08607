"""Arguments that reach the worker unchanged, and a form of them that is the same in every process.

Pickles of equal values differ (the order of a set, strings that are shared or not), so digests are made from
`canonical`, never from a pickle.
"""

from __future__ import annotations

import copyreg
import json
import math
import pickle
import types
from typing import TYPE_CHECKING, Any

from beat.errors import BadArguments

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 256 * 1024
_DEEPEST = 100
_SHOWN = 40
_PLAIN = (type(None), bool, int, str)
_REDUCED = ("callable", "args", "state", "items", "pairs", "setter")

Canonical = None | bool | int | str | list["Canonical"]


def freeze(value: Any, name: str, serializer: str) -> Any:
    """What a worker will get for `value`: a copy that later changes of the original do not reach."""
    canonical(value, name)
    if serializer == "json":
        _check_json(value, name)
    dump: Callable[[Any], bytes | str] = pickle.dumps if serializer == "pickle" else json.dumps
    try:
        written = dump(value)
    except Exception as e:
        raise BadArguments(f"{name} cannot be written by {serializer}: {e!s:.200}") from e
    if len(written) > LARGEST:
        raise BadArguments(
            f"{name} takes {len(written):,} bytes, {LARGEST:,} is the most: pass a key to the data, not the data"
        )
    return pickle.loads(pickle.dumps(value))  # noqa: S301 (our own bytes, one line above)


def canonical(value: object, path: str, depth: int = 0) -> Canonical:
    """`value` as nested lists, equal for equal values in any process; refuses what no worker could read."""
    if depth > _DEEPEST:
        raise BadArguments(
            f"{_start(path)} is nested more than {_DEEPEST} levels deep: pass flat data, or a key to the data"
        )
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[return-value]  # narrowed by the line above
    if isinstance(value, float) and kind is float:
        return ["float", repr(value)]
    if isinstance(value, bytes) and kind is bytes:
        return ["bytes", value.hex()]
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return [kind.__name__, *(canonical(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value))]
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        return [kind.__name__, *sorted((canonical(item, f"{path}{{…}}", depth + 1) for item in value), key=json.dumps)]
    if isinstance(value, dict) and kind is dict:
        pairs = [
            [canonical(k, f"{path} key {k!r:.40}", depth + 1), canonical(v, inside(path, k), depth + 1)]
            for k, v in value.items()
        ]
        return ["dict", *sorted(pairs, key=json.dumps)]
    if isinstance(value, type | types.FunctionType):
        return ["global", _importable(value, path)]
    return ["object", *_reduced(value, path, depth)]


def inside(path: str, key: object) -> str:
    """The path of one value of a mapping: `kwargs.a`, `kwargs['a b']`."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{key!r:.40}]"


def _reduced(value: Any, path: str, depth: int) -> list[Canonical]:
    kind = type(value)
    _importable(kind, path)
    try:
        reduce = copyreg.dispatch_table.get(kind)
        parts = reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception as e:
        raise BadArguments(
            f"{path} cannot reach a worker: {e!s:.200}; pass plain data and build the {kind.__name__} in the job"
        ) from e
    if isinstance(parts, str):
        return [parts]
    named = zip(_REDUCED, parts, strict=False)
    return [
        canonical(list(part) if name in {"items", "pairs"} and part else part, _label(path, name), depth + 1)
        for name, part in named
    ]


def _label(path: str, name: str) -> str:
    return path if name in {"callable", "args", "state"} else f"{path}.{name}"


def _importable(value: Any, path: str) -> str:
    name = f"{value.__module__}.{value.__qualname__}"
    if value.__module__ == "__main__" or "<" in name:
        raise BadArguments(f"{path} refers to {name}, which no worker can import: move it to the top of a module")
    return name


def _check_json(value: object, path: str) -> None:
    """JSON may not change a value without a word."""
    if type(value) is float and not math.isfinite(value):
        raise BadArguments(f"{path} is {value}, which JSON cannot write: pass None, or use serializer='pickle'")
    if type(value) is tuple:
        raise BadArguments(
            f"{path} is a tuple, which comes back from JSON as a list: write a list, or use serializer='pickle'"
        )
    if type(value) is list:
        for i, item in enumerate(value):
            _check_json(item, f"{path}[{i}]")
    elif type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise BadArguments(
                    f"{path} has the key {key!r:.40}, which comes back from JSON as text: "
                    "use text keys, or serializer='pickle'"
                )
            _check_json(item, inside(path, key))
    elif type(value) not in (*_PLAIN, float):
        raise BadArguments(
            f"{path} is a {type(value).__name__}, which JSON cannot write: pass plain data, or use serializer='pickle'"
        )


def _start(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
