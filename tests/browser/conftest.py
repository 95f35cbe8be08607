"""The page in a real browser: Chromium of the system, before a real Redis, beats and a worker."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of this process; each test has a context of its own."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "there is no Chromium on this machine: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A page over an empty Redis, for all tests of one file."""
    with Stage() as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test when it writes an error to its console, or a script of it raises."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, timezone_id="Europe/Berlin", locale="en-GB")
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert not said, f"errors in the browser's console: {said}"
