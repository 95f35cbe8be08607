"""Chromium of the system, driven without its own ideas of what else to do in the network."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
_USUAL: dict[str, Any] = {
    "viewport": {"width": 1280, "height": 800},
    "timezone_id": "Europe/Berlin",
    "locale": "en-GB",
}


@contextmanager
def started() -> Iterator[Browser]:
    """A browser without a screen."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "there is no Chromium on this machine: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        yield browser
        browser.close()


@contextmanager
def window(browser: Browser, **options: Any) -> Iterator[tuple[Page, list[str]]]:
    """A page with cookies of its own, and what goes wrong in it: errors in the console, and what scripts raise."""
    context = browser.new_context(**(_USUAL | options))
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page, said
    finally:
        context.close()
