"""The table of alerts as settings carry it: a mapping that is never shown, for its URLs are secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def table(value: object) -> object:
    """The table itself, or one JSON object; what its rules and channels mean is for `alerts` to say."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise ValueError("must be a table: write [tool.beat.alerts.channels.ops], or one JSON object")  # noqa: TRY004 (pydantic's)
    return found


def counted(alerts: Mapping[str, Any]) -> str:
    """What is set, without the secrets: `2 channels, 1 rule`."""
    sizes = {name: len(found) for name in ("channels", "rules") if isinstance(found := alerts.get(name), dict | list)}
    return ", ".join(f"{number} {name.removesuffix('s') if number == 1 else name}" for name, number in sizes.items())
