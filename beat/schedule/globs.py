"""Check globs over ids of schedules, as in `--only 'report*'`, and translate them to Lua patterns."""

from __future__ import annotations

import re

from beat.errors import BadOption

_PART = r"[A-Za-z0-9_*?-]|\[!?[A-Za-z0-9_-]+\]"


def checked(only: str | None, name: str = "only") -> str | None:
    """Return the glob or None; raise BadOption if it has characters that no id has."""
    if only is None or re.fullmatch(rf"(?:{_PART})+", only, re.ASCII):
        return only
    raise BadOption(f"{name} {only!r:.60} must be an id, with * ? or [a-z] for what may differ, as in 'report*'")


def lua(glob: str | None) -> str:
    """Return a glob as a Lua pattern; "" for None."""
    if glob is None:
        return ""
    signs = {"*": ".*", "?": ".", "-": "%-"}
    parts = re.findall(_PART, glob)
    return "^" + "".join(signs.get(part, part.replace("[!", "[^")) for part in parts) + "$"
