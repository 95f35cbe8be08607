"""Find the name of this machine's time zone, which other tools follow if they use their host's clock.

beat itself never asks for it, because it differs between machines.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from beat.timing.zones import names

if TYPE_CHECKING:
    from collections.abc import Mapping

_ETC = Path("/etc")
_UTC = {"Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "UCT", "Zulu", "Universal"}


def zone_name(environ: Mapping[str, str] = os.environ, etc: Path = _ETC) -> str:
    """Return the zone of TZ, /etc/localtime or /etc/timezone; return UTC if none of them names a zone."""
    told = environ.get("TZ", "").removeprefix(":")
    kept = [told] if told else [_linked(etc / "localtime"), _written(etc / "timezone")]
    found = next((name for name in kept if name in names()), "UTC")
    return "UTC" if found in _UTC else found


def _linked(link: Path) -> str:
    try:
        return str(link.resolve(strict=True)).rpartition("zoneinfo/")[2]
    except OSError:
        return ""


def _written(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
