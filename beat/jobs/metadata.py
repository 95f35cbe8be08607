"""Join the ends of job metas, and add entries to them, byte by byte, without reading the meta that they complete.

Each end is JSON, or pickle opcodes that use no memo and so may follow any pickle.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SHORT = 255
"""The most bytes of text whose length fits into one byte."""


@functools.lru_cache(maxsize=4096)  # the same names, ticks and ids recur
def pickled(value: str | int | None) -> bytes:
    """Return the pickle opcodes of a value."""
    if value is None:
        return b"N"
    return b"J" + value.to_bytes(4, "little") if isinstance(value, int) else text(value)


def together(blocks: Sequence[bytes]) -> bytes:
    """Join several blocks into one: first their lengths, then the blocks."""
    return b" ".join(b"%d" % len(each) for each in blocks) + b"\n" + b"".join(blocks)


def in_context(ends: bytes, context: Mapping[str, str]) -> bytes:
    """Add text entries to one end of a meta, or to each of several joined ones."""
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
    # The entries go before the block, between a mark and a setitems, so that again a single byte comes first.
    return b"".join((b"(", *(text(word) for pair in entries.items() for word in pair), b"u", block))


def text(value: str) -> bytes:
    """Return the pickle opcodes of a text."""
    written = value.encode("utf-8", "surrogatepass")
    if len(written) <= _SHORT:
        return b"\x8c" + bytes((len(written),)) + written
    return b"X" + len(written).to_bytes(4, "little") + written
