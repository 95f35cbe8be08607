"""The ends of metas, byte by byte: put together, and given more entries, without reading what they belong to.

Text is JSON, or opcodes of pickle that remember nothing, so that they may follow any pickle.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SHORT = 255
"""How many bytes of text need one to count them."""


@functools.lru_cache(maxsize=4096)  # the same names, ticks and ids come again and again
def pickled(value: str | int | None) -> bytes:
    """A value as pickle writes it."""
    if value is None:
        return b"N"
    return b"J" + value.to_bytes(4, "little") if isinstance(value, int) else text(value)


def together(blocks: Sequence[bytes]) -> bytes:
    """Several as one: their lengths, and all of them."""
    return b" ".join(b"%d" % len(each) for each in blocks) + b"\n" + b"".join(blocks)


def in_context(ends: bytes, context: Mapping[str, str]) -> bytes:
    """One end of a meta, or several together, with more entries: text by name."""
    if not ends[:1].isdigit():
        return _with_entries(ends, context)
    lengths, _, rest = ends.partition(b"\n")
    blocks = []
    for length in map(int, lengths.split()):
        blocks.append(_with_entries(rest[:length], context))
        rest = rest[length:]
    return together(blocks)


def _with_entries(block: bytes, entries: Mapping[str, str]) -> bytes:
    if block.startswith((b"{", b'"')):  # before the last brace
        return block[:-1] + b"".join(f", {json.dumps(k)}: {json.dumps(v)}".encode() for k, v in entries.items()) + b"}"
    # Before it, between a mark and their setitems: again a single byte comes first.
    return b"".join((b"(", *(text(word) for pair in entries.items() for word in pair), b"u", block))


def text(value: str) -> bytes:
    """Text as pickle writes it."""
    written = value.encode("utf-8", "surrogatepass")
    if len(written) <= _SHORT:
        return b"\x8c" + bytes((len(written),)) + written
    return b"X" + len(written).to_bytes(4, "little") + written
