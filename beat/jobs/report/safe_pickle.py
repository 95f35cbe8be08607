"""What a worker wrote, read as plain data: nothing in it is imported or called, whatever it is.

Plain data is None, bool, int, float, str, bytes, list, tuple and dict. Reading takes bounded time and memory: what is
large, deep or recursive, or would be large when written out, is refused.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from typing import TYPE_CHECKING, Any, ClassVar

from beat.schedule.run import CONTEXT_KEYS, META_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 64 * 1024
"""Bytes."""
_WRITTEN = 16 * LARGEST  # characters, when all is written out: what a pickle refers to again counts again
_COST = 16  # characters for any value inside another, so that there are no more of them than bytes
_DEEPEST = 100
_TRACED = 2000  # bytes that a trace's context has at most, and more
_CONTEXT = re.compile(rb'(?:, "(?:%s)": "(?:[^"\\]|\\.)*")+}\Z' % "|".join(CONTEXT_KEYS).encode())
_LONGEST_KEY_BITS = 60  # the hashes of longer numbers can be made equal, thousands of them

# All that Python's picklers write, from protocol 0 to 5, for plain data and for what is built of classes. Missing are
# persistent ids, extensions, out-of-band buffers, bytearrays (made at the length that the data says, before it is
# there) and what only Python 2 wrote.
_TAKEN_OVER = (
    "PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT "
    "BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND "
    "APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET "
    "GLOBAL STACK_GLOBAL"
)


class NotPlain(ValueError):
    """Not plain data, or more of it than is read."""


class Opaque:
    """Stands for a class, and for all that is made of it: a name, and nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def append(self, _item: object) -> None:
        """Takes what a list of that class would take."""

    extend = append


class _Exact(io.BytesIO):
    """Gives what is asked for, or refuses: no length in the data may promise more than is there."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise NotPlain("it ends before its end")
        return found


class _Reader(pickle._Unpickler):  # noqa: SLF001
    """Reads a pickle in which every class is opaque.

    Python's own unpickler written in Python, private as it is: the one in C makes room for as many memo entries as an
    index in the data says (five bytes that say LONG_BINPUT 4294967295 take 64 GB), and cannot be kept from hashing the
    keys of dicts, which takes for ever where they are tuples of the same tuples, thirty levels deep.
    """

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def find_class(self, module: str, name: str) -> Opaque:
        return Opaque(f"{module:.100}.{name:.100}")  # a pickle may name the longest again with every fifth byte

    def load_made(self) -> None:
        """REDUCE, NEWOBJ, BUILD: a class, or what is made of it, and what it is made with."""
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
    """The value that RQ's serializer wrote; raises NotPlain, and nothing else, for what is not plain data."""
    value, stranger = read(raw, serializer)
    if stranger is not None:
        raise NotPlain(f"it holds a {stranger.name}")
    return value


def beat_entry(raw: bytes | None, serializer: str) -> str | dict[str, Any] | None:
    """What beat has written into a job's meta, whatever else is in there; None where it cannot be found.

    Of a meta that is too large to be read the end is: there it stands, as `jobs.run_block` wrote it.
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
    """The value, in which classes are opaque, and one of these if there are any; raises NotPlain, and nothing else."""
    if not isinstance(raw, bytes) or len(raw) > LARGEST:
        raise NotPlain(f"it is no bytes, or more than {LARGEST:,}")
    if serializer not in ("pickle", "json"):
        raise NotPlain(f"there is no serializer {serializer!r:.40}")
    try:
        value = _unpickled(raw) if serializer == "pickle" else json.loads(raw.decode())
        return value, _measure(value)
    except NotPlain:
        raise
    except Exception as e:  # whatever garbage makes the standard library say, MemoryError and RecursionError too
        raise NotPlain(f"it cannot be read: {type(e).__name__}") from e


def _unpickled(raw: bytes) -> Any:
    file = _Exact(raw)
    value = _Reader(file).load()
    if file.tell() < len(raw):
        raise NotPlain("it goes on after its end")
    return value


def _key(key: Any) -> Any:
    """A key that is hashed in no time."""
    if type(key) is int and key.bit_length() > _LONGEST_KEY_BITS:
        return Opaque("long number as a key")
    return key if key is None or type(key) in (str, int, bool, float, bytes, Opaque) else Opaque("compound key")


def _measure(value: object) -> Opaque | None:
    """Something opaque in the value, if there is; refuses what is deep or recursive, or long when written out."""
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
        left -= _COST * len(inside)  # paid before they are looked at
        if left < 0 or depth > _DEEPEST:
            raise NotPlain("it is recursive, deep, or too long when written out")
        todo.extend((each, depth + 1) for each in inside)
    return stranger


def _last_block(raw: bytes, serializer: str) -> bytes:
    """The value of the last entry `beat`, if that is the end of the meta."""
    name = META_KEY.encode()
    if serializer == "json":
        raw = raw[:-_TRACED] + _CONTEXT.sub(b"}", raw[-_TRACED:])
        ends: tuple[bytes, ...] = (b'"}', b"}}")  # of its text or its brace, and of the meta
        key, stop = b'"%s": ' % name, b""
    else:
        key = pickle.MARK + pickle.SHORT_BINUNICODE + bytes((len(name),)) + name
        ends, stop = (b"u.",), pickle.STOP  # the meta's setitems, stop
    block = raw.rpartition(key)[2]
    return block[: -len(stop) - 1] + stop if block.endswith(ends) else b""
