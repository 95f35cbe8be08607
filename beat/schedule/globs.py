"""A glob over ids of schedules, as in `--only 'report*'`."""

from __future__ import annotations

import re

from beat.errors import BadOption

_PART = r"[A-Za-z0-9_*?-]|\[!?[A-Za-z0-9_-]+\]"


def checked(only: str | None, name: str = "only") -> str | None:
    """The glob, or None; refuses what can match no id."""
    if only is None or re.fullmatch(rf"(?:{_PART})+", only, re.ASCII):
        return only
    raise BadOption(f"{name} {only!r:.60} must be an id, with * ? or [a-z] for what may differ, as in 'report*'")


def lua(glob: str | None) -> str:
    """A glob over ids as a Lua pattern."""
    if glob is None:
        return ""
    signs = {"*": ".*", "?": ".", "-": "%-"}
    parts = re.findall(_PART, glob)
    return "^" + "".join(signs.get(part, part.replace("[!", "[^")) for part in parts) + "$"
