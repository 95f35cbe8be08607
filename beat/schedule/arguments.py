"""Check that arguments reach the worker unchanged, and convert them to a form that is the same in every process.

Pickles of equal values can differ, for example by the order of a set or by shared strings. Digests are therefore made
from `canonical`, never from a pickle.
"""

from __future__ import annotations

import copyreg
import json
import math
import pickle
import types
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from beat.errors import BadArguments, BadOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LARGEST = 256 * 1024
_DEEPEST = 100
_WEIGHT = 16  # bytes of text that count as one value
_SHOWN = 40
_PLAIN = (type(None), bool, int, str)
_EMPTY = (dict, list, tuple)  # a shortcut, because most schedules have no arguments
_REDUCED = ("callable", "args", "state", "items", "pairs", "setter")
_ITERATORS = {"items", "pairs"}

_NOTHING: Mapping[str, Any] = types.MappingProxyType({})

Canonical = None | bool | int | str | list["Canonical"]


def freeze(value: Any, name: str, serializer: str) -> Any:
    """Return an independent copy of `value` as a worker will receive it; raise BadArguments if it cannot."""
    if type(value) in _EMPTY and not value:
        return type(value)()
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
    try:
        return pickle.loads(pickle.dumps(value))  # noqa: S301 (our own bytes, written on this line)
    except Exception as e:
        raise BadArguments(
            f"{name} can be written but not read again: {type(e).__name__}: {e!s:.200}; pass plain data"
        ) from e


def canonical(value: object, name: str) -> Canonical:
    """Return `value` as nested lists that are equal for equal values in any process.

    Raise BadArguments if a worker could not unpickle the value.
    """
    if type(value) in _EMPTY and not value:
        return [type(value).__name__]
    return _Reader(name).read(value, name, 0)


def positional(value: object, serializer: str) -> tuple[Any, ...]:
    """Return a frozen copy of the positional arguments of a function."""
    if not isinstance(value, list | tuple):
        raise BadArguments(f"args must be a list, not {type(value).__name__}: write args=[…]")
    frozen: list[Any] = freeze(list(value), "args", serializer)
    return tuple(frozen)


def named(value: object, name: str, serializer: str) -> Mapping[str, Any]:
    """Return a frozen, read-only copy of the keyword arguments of a function."""
    if type(value) is dict and not value:
        return _NOTHING
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadArguments(f"{name} must be a dict whose keys are text: write {name}={{'kind': 'daily'}}")
    return types.MappingProxyType(freeze(dict(value), name, serializer))


def meta(value: object, serializer: str) -> Mapping[str, Any]:
    """Return a frozen, read-only copy of a job's meta; raise BadOption if it uses the key `beat`."""
    if isinstance(value, Mapping) and "beat" in value:
        raise BadOption("meta['beat'] is where beat writes the schedule and the tick of the job: use another key")
    return named(value, "meta", serializer)


class _Reader:
    """Converts one value, up to a limit on its size; shared parts count each time they occur."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = LARGEST  # every value takes at least one byte

    def read(self, value: Any, path: str, depth: int) -> Canonical:
        if depth > _DEEPEST:
            raise BadArguments(
                f"{_start(path)} is nested more than {_DEEPEST} levels deep: pass flat data, or a key to the data"
            )
        self._spend(1)
        kind = type(value)
        if kind in _PLAIN:
            return self._plain(value)
        if kind is float:
            return ["float", repr(value)]
        if kind is bytes:
            self._spend(len(value) // _WEIGHT)
            return ["bytes", value.hex()]
        if kind is list or kind is tuple:
            return [kind.__name__, *self._each(value, path, depth)]
        if kind is dict:
            return ["dict", *self._pairs(value, path, depth)]
        if issubclass(kind, set | frozenset):  # sort, because a pickle keeps the order of the hashes
            state = self.read(getattr(value, "__dict__", None), path, depth + 1)
            items = (self.read(item, f"{path}{{…}}", depth + 1) for item in value)
            return [_importable(kind, path), state, *sorted(items, key=json.dumps)]
        if issubclass(kind, PurePath):  # the pickle of paths changed in Python 3.13
            return ["path", str(value)]
        if issubclass(kind, type | types.FunctionType):
            return ["global", _importable(value, path)]
        return ["object", *self._reduced(value, path, depth)]

    def _spend(self, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise BadArguments(
                f"{self._name} is too large, shared parts counted each time: pass a key to the data, not the data"
            )

    def _plain(self, value: Any) -> Canonical:
        if type(value) is str:
            self._spend(len(value) // _WEIGHT)
        elif type(value) is int and value.bit_length() > _WEIGHT * 8:
            self._spend(value.bit_length() // (_WEIGHT * 8))
            return ["int", hex(value)]  # Python limits the length of decimal numbers
        return value  # type: ignore[no-any-return]  # one of _PLAIN

    def _each(self, values: Iterable[Any], path: str, depth: int) -> list[Canonical]:
        return [self.read(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(values)]

    def _pairs(self, values: dict[Any, Any], path: str, depth: int) -> list[Canonical]:
        read: list[Canonical] = [
            [self.read(key, f"a key of {path}", depth + 1), self.read(value, inside(path, key), depth + 1)]
            for key, value in values.items()
        ]
        return sorted(read, key=json.dumps)

    def _reduced(self, value: Any, path: str, depth: int) -> list[Canonical]:
        kind = type(value)
        importable = _importable(kind, path)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            parts = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as e:
            raise BadArguments(
                f"{path} cannot reach a worker: {e!s:.200}; pass plain data and build the {kind.__name__} in the job"
            ) from e
        if isinstance(parts, str):
            return [importable, parts]
        return [
            self._each(part, path, depth)
            if name in _ITERATORS and part is not None
            else self.read(part, path, depth + 1)
            for name, part in zip(_REDUCED, parts, strict=False)
        ]


def inside(path: str, key: object) -> str:
    """Return the path of a value in a mapping for messages: `kwargs.a`, `kwargs['a b']`."""
    return f"{path}.{key:.40}" if type(key) is str and key.isidentifier() else f"{path}[{_key(key)}]"


def _key(key: object) -> str:
    return f"{key!r:.40}" if type(key) in (*_PLAIN, float, bytes) else f"<{type(key).__name__}>"


def _importable(value: Any, path: str) -> str:
    name = f"{value.__module__}.{value.__qualname__}"
    if value.__module__ == "__main__" or "<" in name:
        raise BadArguments(f"{path} refers to {name}, which no worker can import: move it to the top of a module")
    return name


def _check_json(value: object, path: str) -> None:
    """Raise BadArguments for values that JSON cannot write or would silently change."""
    if type(value) is str and not _is_unicode(value):
        raise BadArguments(
            f"{_start(path)} has half a character (a surrogate), which JSON may join to the next: pass whole ones"
        )
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
                    f"{path} has the key {_key(key)}, which comes back from JSON as text: "
                    "use text keys, or serializer='pickle'"
                )
            _check_json(key, f"a key of {path}")
            _check_json(item, inside(path, key))
    elif type(value) not in (*_PLAIN, float):
        raise BadArguments(
            f"{path} is a {type(value).__name__}, which JSON cannot write: pass plain data, or use serializer='pickle'"
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _start(path: str) -> str:
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
