"""The overview and the system page in a real browser, before a real beat and a worker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser import chromium, looking
from tests.browser.looking import accessible, fits
from tests.browser.stage import EVERYBODY

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.stage import Stage

LONG_MS = 30_000


def test_a_newcomer_sees_it_come_alive_by_itself(stage: Stage, page: Page) -> None:
    """From nothing, to schedules, to a run that fails: nobody loads the page again."""
    page.goto(stage.address)
    loaded = page.evaluate("performance.timeOrigin")
    summary = page.locator("#summary")
    expect(summary).to_have_text("There is no schedule yet. No scheduler is running.")
    expect(page.locator("#first")).to_contain_text("@periodic")
    stage.beat()
    stage.worker("default")
    expect(summary).to_contain_text("Next:", timeout=LONG_MS)
    expect(page.locator("#first")).to_have_count(0)
    expect(page.locator("#day svg.strip")).to_be_visible(timeout=LONG_MS)
    stage.client.trigger("fragile")
    failing = page.locator("#troubles tr", has_text="fragile")
    expect(failing).to_contain_text("<script>alert('no')</script> the upstream said 503", timeout=LONG_MS)
    expect(summary).to_contain_text(f"1 of {EVERYBODY} schedules is failing.")
    expect(page).to_have_title(re.compile("^✗ "))
    expect(page.locator("#latest")).to_contain_text("succeeded")
    assert page.evaluate("performance.timeOrigin") == loaded
    failing.get_by_role("button", name="Run now fragile").click()
    expect(page).to_have_url(re.compile("/schedules/fragile/runs/beat_fragile_m"))


def test_the_countdown_counts_by_itself(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    expect(page.locator("#coming tr", has_text="nightly_backup").locator("time.away")).to_have_text(
        re.compile(r"^in \d+")
    )
    counted = """() => {
        const now = document.querySelector('#live').dataset.now;
        const words = document.querySelector('#summary time.away').textContent;
        if (window.seen?.now !== now) window.seen = { now, words };
        return window.seen.words !== words;  // and yet nobody was asked meanwhile
    }"""
    page.wait_for_function(counted, timeout=LONG_MS)


def test_what_is_open_stays_open_and_focus_stays_while_the_page_lives(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    page.locator("#day-table summary").click()
    link = page.locator("#coming a", has_text="new_year").first
    link.focus()
    looking.polled(page)
    expect(page.locator("#day-table table")).to_be_visible()
    expect(link).to_be_focused()


def test_everybody_can_read_both_pages_on_any_screen(stage: Stage, page: Page) -> None:
    for path in ("/", "/system"):
        page.goto(f"{stage.address}{path}")
        accessible(page)
        fits(page)


def test_both_pages_say_all_without_javascript(stage: Stage, browser: Browser) -> None:
    with chromium.window(browser, java_script_enabled=False) as (page, _):
        page.goto(f"{stage.address}/system")
        expect(page.locator("#beats")).to_contain_text("running")
        page.get_by_role("link", name="Overview").click()
        expect(page.locator("#summary")).to_contain_text("schedules")
        expect(page.locator("#day svg.strip")).to_be_visible()
        expect(page.locator("#troubles form")).to_have_attribute("method", "post")


def test_the_system_page_says_who_did_what(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/system")
    expect(page.locator("#summary")).to_contain_text("1 scheduler running", timeout=LONG_MS)
    stage.client.named("ana@ops").pause("billing", reason="<b>not</b> today")
    audit = page.locator("#audit")
    expect(audit).to_contain_text("<b>not</b> today", timeout=LONG_MS)
    audit.locator("nav a", has_text="ana@ops").click()
    expect(page).to_have_url(re.compile(r"\?who=ana"))
    expect(audit.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#queues")).to_contain_text("no worker reads it", timeout=LONG_MS)
