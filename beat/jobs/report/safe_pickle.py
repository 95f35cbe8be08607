"""Read a worker's JSON or pickle as plain data, without importing or calling anything in it.

Plain data is None, bool, int, float, str, bytes, list, tuple and dict. Reading takes bounded time and memory, so data
that is large, deep or recursive, or that would be large when written out, is rejected.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from typing import TYPE_CHECKING, Any, ClassVar

from beat.jobs.run import CONTEXT_KEYS, META_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 64 * 1024
"""In bytes."""
_WRITTEN = 16 * LARGEST  # characters when written out; what a pickle refers to twice counts twice
_COST = 16  # characters for each value inside another, which bounds the number of values
_DEEPEST = 100
_TRACED = 2000  # bytes, more than any trace context has
_CONTEXT = re.compile(rb'(?:, "(?:%s)": "(?:[^"\\]|\\.)*")+}\Z' % "|".join(CONTEXT_KEYS).encode())
_LONGEST_KEY_BITS = 60  # thousands of longer numbers can be given the same hash

# All opcodes that Python's picklers write, from protocol 0 to 5, for plain data and for instances of classes. Missing
# are persistent ids, extensions, out-of-band buffers, bytearrays (allocated at the length that the data claims) and
# opcodes that only Python 2 wrote.
_TAKEN_OVER = (
    "PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT "
    "BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND "
    "APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET "
    "GLOBAL STACK_GLOBAL"
)


class NotPlain(ValueError):
    """The data is not plain, or too large to be read."""


class Opaque:
    """A stand-in for a class or an instance of it; it keeps only the name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def append(self, _item: object) -> None:
        """Ignore an item, as pickles append items to lists of unknown classes."""

    extend = append


class _Exact(io.BytesIO):
    """A file that never returns fewer bytes than requested, so no length in the data can exceed the data."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise NotPlain("it ends before its end")
        return found


class _Reader(pickle._Unpickler):  # noqa: SLF001
    """An unpickler in which every class is opaque.

    It extends Python's private pure-Python unpickler, because the one in C is not safe. That one allocates as many memo
    entries as an index in the data says: the five bytes of LONG_BINPUT 4294967295 take 64 GB. It also hashes the keys
    of dicts, which takes for ever for tuples of the same tuples, thirty levels deep.
    """

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def find_class(self, module: str, name: str) -> Opaque:
        return Opaque(f"{module:.100}.{name:.100}")  # a pickle may repeat the longest name with every fifth byte

    def load_made(self) -> None:
        """Handle REDUCE, NEWOBJ and BUILD: drop the arguments and keep the opaque class or instance."""
        self.stack.pop()
        self._top_is_opaque()

    def load_made_by_name(self) -> None:
        self.stack.pop()
        self.load_made()

    def load_set(self) -> None:
        self.append(Opaque("set"))

    def load_frozenset(self) -> None:
        self.pop_mark()
        self.append(Opaque("frozenset"))

    def load_additems(self) -> None:
        self.pop_mark()
        self._top_is_opaque()

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._set(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def load_setitems(self) -> None:
        self._set(self.pop_mark())

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is dict:
            target.update(zip(map(_key, items[::2]), items[1::2], strict=True))
        else:
            self._top_is_opaque()

    def _top_is_opaque(self) -> None:
        if type(self.stack[-1]) is not Opaque:
            raise NotPlain("it does with plain data what is done with objects")

    dispatch: ClassVar[dict[int, Any]] = {
        **{
            code: pickle._Unpickler.dispatch[code]  # noqa: SLF001
            for code in (getattr(pickle, name)[0] for name in _TAKEN_OVER.split())
        },
        **dict.fromkeys((pickle.REDUCE[0], pickle.NEWOBJ[0], pickle.BUILD[0]), load_made),
        pickle.NEWOBJ_EX[0]: load_made_by_name,
        pickle.EMPTY_SET[0]: load_set,
        pickle.FROZENSET[0]: load_frozenset,
        pickle.ADDITEMS[0]: load_additems,
        pickle.DICT[0]: load_dict,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
    }


def plain(raw: bytes, serializer: str) -> Any:
    """Return the value that RQ's serializer wrote; raise only NotPlain if it is not plain data."""
    value, stranger = read(raw, serializer)
    if stranger is not None:
        raise NotPlain(f"it holds a {stranger.name}")
    return value


def beat_entry(raw: bytes | None, serializer: str) -> str | dict[str, Any] | None:
    """Return what beat wrote into a job's meta, whatever else the meta holds; None if it cannot be found.

    If the meta is too large to be read, only its end is, where `job_template.run_block` wrote the entry.
    """
    if raw is None:
        return None
    try:
        try:
            meta, _ = read(raw, serializer)
            entry = meta.get(META_KEY) if type(meta) is dict else None
        except NotPlain:
            entry = plain(_last_block(raw, serializer), serializer)
        return entry if type(entry) in (str, dict) and _measure(entry) is None else None
    except NotPlain:
        return None


def read(raw: bytes, serializer: str) -> tuple[Any, Opaque | None]:
    """Return the value, in which classes are opaque, and one of these or None; raise only NotPlain."""
    if not isinstance(raw, bytes) or len(raw) > LARGEST:
        raise NotPlain(f"it is no bytes, or more than {LARGEST:,}")
    if serializer not in ("pickle", "json"):
        raise NotPlain(f"there is no serializer {serializer!r:.40}")
    try:
        value = _unpickled(raw) if serializer == "pickle" else json.loads(raw.decode())
        return value, _measure(value)
    except NotPlain:
        raise
    except Exception as e:  # garbage may raise anything, MemoryError and RecursionError included
        raise NotPlain(f"it cannot be read: {type(e).__name__}") from e


def _unpickled(raw: bytes) -> Any:
    file = _Exact(raw)
    value = _Reader(file).load()
    if file.tell() < len(raw):
        raise NotPlain("it goes on after its end")
    return value


def _key(key: Any) -> Any:
    """Return the key if hashing it takes no time, else something opaque."""
    if type(key) is int and key.bit_length() > _LONGEST_KEY_BITS:
        return Opaque("long number as a key")
    return key if key is None or type(key) in (str, int, bool, float, bytes, Opaque) else Opaque("compound key")


def _measure(value: object) -> Opaque | None:
    """Return something opaque in the value, if any; raise NotPlain if it is deep, recursive or too long."""
    left, stranger = _WRITTEN, None
    todo = [(value, 0)]
    while todo:
        part, depth = todo.pop()
        inside: Any = ()
        if type(part) is dict:
            inside = [*part, *part.values()]
        elif type(part) in (list, tuple):
            inside = part
        elif type(part) in (str, bytes):
            left -= len(part)  # type: ignore[arg-type]  # mypy does not follow `type() in`
        elif type(part) is int:
            left -= part.bit_length() // 3
        elif type(part) is Opaque:
            stranger = part
        left -= _COST * len(inside)  # subtracted before the values are visited
        if left < 0 or depth > _DEEPEST:
            raise NotPlain("it is recursive, deep, or too long when written out")
        todo.extend((each, depth + 1) for each in inside)
    return stranger


def _last_block(raw: bytes, serializer: str) -> bytes:
    """Return the value of the last entry `beat` if the meta ends with it, else nothing."""
    name = META_KEY.encode()
    if serializer == "json":
        raw = raw[:-_TRACED] + _CONTEXT.sub(b"}", raw[-_TRACED:])
        ends: tuple[bytes, ...] = (b'"}', b"}}")  # the end of the text or object, and of the meta
        key, stop = b'"%s": ' % name, b""
    else:
        key = pickle.MARK + pickle.SHORT_BINUNICODE + bytes((len(name),)) + name
        ends, stop = (b"u.",), pickle.STOP  # the meta's setitems, stop
    block = raw.rpartition(key)[2]
    return block[: -len(stop) - 1] + stop if block.endswith(ends) else b""
