"""Laying out the files of an application for a test."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def lay_out(directory: Path, texts: Mapping[str, str]) -> Path:
    """Writes each text to the file of its name below `directory`."""
    for name, text in texts.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    return directory
