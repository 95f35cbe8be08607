"""The page in a real browser: Chromium of the system, before a real Redis, beats and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import chromium
from tests.browser.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of this process; each test has a context of its own."""
    with chromium.started() as browser:
        yield browser


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A page over an empty Redis, for all tests of one file."""
    with Stage() as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test when it writes an error to its console, or a script of it raises."""
    with chromium.window(browser) as (page, said):
        yield page
    assert not said, f"errors in the browser's console: {said}"
