"""The frame of the page: colours, keyboard, and what is there without JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.stage import Stage


def test_the_colours_are_the_viewers_choice(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    for name in ("Dark", "Light", "Auto"):
        page.locator("form.theme button").click()
        assert page.locator("form.theme button").inner_text().startswith(name)
