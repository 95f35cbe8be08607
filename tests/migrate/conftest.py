"""An application, and a current directory, for tests about moving in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.migrate.house import House, furnished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    yield from furnished(tmp_path, monkeypatch)
