"""One schedule, its runs, and what one can do to it, in a real browser with a real beat and worker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from beat.errors import BeatError
from tests.browser import looking
from tests.browser.stage import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.stage import Stage

ENOUGH_MS = 20_000


@pytest.fixture(scope="module")
def of(stage: Stage) -> str:
    """The address of a schedule whose runs take three seconds; a beat and a worker are alive."""
    stage.beat()
    stage.worker("exports")

    def is_there() -> bool:
        try:
            return bool(stage.client.get("export").version and stage.client.staff(["exports"])[0].workers)
        except BeatError:
            return False

    wait_for(is_there)
    return f"{stage.address}/schedules/export"


def test_run_now_shows_the_run_going_through_its_states_by_itself(page: Page, of: str) -> None:
    page.goto(of)
    page.get_by_role("button", name="Run now").click()
    page.wait_for_url(re.compile(r"/runs/beat_export_m"))
    expect(page.get_by_role("status")).to_contain_text("Asked for")
    page.evaluate("window.unchanged = true")
    expect(page.locator("h1 .mark.started")).to_be_visible(timeout=ENOUGH_MS)
    expect(page.locator("h1 .mark.succeeded")).to_be_visible(timeout=ENOUGH_MS)
    expect(page.get_by_text("42 rows written").last).to_be_visible()
    assert page.evaluate("window.unchanged"), "the page was not loaded again"
    assert "hunter2" not in page.content()
    page.get_by_role("link", name="export", exact=True).click()
    expect(page.locator("table.ledger .mark.succeeded").first).to_be_visible()
    page.locator("table.ledger summary").first.click()
    expect(page.locator("table.ledger details[open] p").first).to_contain_text("succeeded after 3")


def test_what_was_opened_and_typed_outlasts_the_next_look(page: Page, of: str, stage: Stage) -> None:
    page.goto(of)
    page.locator("table.ledger summary").first.click()
    page.get_by_label("What became of the tick at").fill("03:00")
    page.get_by_role("button", name="Ask").focus()
    wish = page.locator("input[name=request]").input_value()
    lines = page.locator("table.ledger tbody tr").count()
    stage.client.trigger("export", kwargs={"seconds": 0})
    expect(page.locator("table.ledger tbody tr")).to_have_count(lines + 1)
    assert page.locator("input[name=request]").input_value() == wish, "who presses again means the same run"
    expect(page.get_by_label("What became of the tick at")).to_have_value("03:00")
    expect(page.locator("table.ledger details[open]")).to_have_count(1)
    assert page.evaluate("document.activeElement.textContent") == "Ask", "the focus stays"


def test_a_pause_with_a_reason_and_its_end(page: Page, of: str) -> None:
    page.goto(of)
    page.get_by_role("link", name="Pause…").click()
    page.get_by_label("Why").fill("the disk is full")
    page.get_by_label("Until", exact=True).fill("2h")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_contain_text("Paused: its ticks are held")
    expect(page.locator("h1 .mark.paused")).to_be_visible()
    expect(page.locator(".notice", has_text="(the disk is full)")).to_be_visible()
    page.get_by_role("link", name="Resume…").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1 .mark.active")).to_be_visible()


def test_another_rule_is_seen_before_it_is_used(page: Page, of: str, stage: Stage) -> None:
    page.goto(f"{of}/reschedule")
    expect(page.locator("#same")).to_be_visible()
    page.get_by_label("Hour").fill("25")
    expect(page.locator("#preview")).to_contain_text("hour 25 is out of range 0-23")
    expect(page.locator("#at-hour")).to_have_text("↑ here")
    page.get_by_label("Hour").fill("6")
    page.get_by_label("Zone").fill("Europe/Berlin")
    expect(page.locator("#preview")).to_contain_text("at 06:00, on 1 January, Europe/Berlin time")
    expect(page.locator("#at-hour")).to_have_text("")
    page.get_by_label("Every", exact=True).fill("90m")
    expect(page.locator("#preview")).to_contain_text("every 1 hour 30 minutes")
    assert "?" not in page.url, "it was seen without loading another page"
    page.get_by_role("button", name="Use this rule").click()
    expect(page.get_by_role("status")).to_contain_text("It has another rule now")
    expect(page.locator("h1 + .lead .tag")).to_have_text("override")
    page.get_by_role("link", name="Reschedule…").click()
    page.get_by_role("button", name="Go back to the rule of the code").click()
    expect(page.get_by_role("status")).to_contain_text("Back to the rule of the code")
    assert stage.client.get("export").override is None


def test_who_was_not_the_first_is_told_kindly(browser: Browser, of: str, stage: Stage) -> None:
    page, said = browser.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(f"{of}/pause")
    page.get_by_label("Why").fill("kept")
    stage.client.pause("export", reason="I was faster")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#problem")).to_contain_text("This schedule has changed since you opened this page")
    expect(page.get_by_label("Why")).to_have_value("kept")
    expect(page.locator(".notice", has_text="I was faster")).to_be_visible()
    page.get_by_role("button", name="Change the pause").click()
    expect(page.locator(".notice", has_text="(kept)")).to_be_visible()
    assert all("409 (Conflict)" in each for each in said), "the browser says no more than what it was answered"
    stage.client.resume("export")
    page.close()


def test_every_page_of_it_is_for_everybody_and_for_every_screen(page: Page, of: str, stage: Stage) -> None:
    stage.client.reschedule("export", "30 6 1 1 *")
    run = stage.client.get("export").last_job
    for path in (
        "",
        f"/runs/{run}",
        "/run",
        "/pause",
        "/resume",
        "/reschedule?hour=25",
        "?why=nonsense&outcome=failed",
    ):
        page.goto(f"{of}{path}")
        looking.accessible(page)
        looking.fits(page)
    stage.client.reschedule("export", reset=True)


def test_everything_works_without_javascript(browser: Browser, of: str, stage: Stage) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(of)
    page.get_by_role("link", name="Run with…").click()
    page.get_by_label("seconds").fill("0")
    page.get_by_role("button", name="Run now").click()
    assert "/runs/beat_export_m" in page.url
    wait_for(lambda: (run := stage.client.get_run(page.url.rpartition("/")[2])) and run.state == "succeeded")
    page.reload()
    expect(page.locator("h1 .mark.succeeded")).to_be_visible()
    page.goto(f"{of}/reschedule")
    page.get_by_label("Minute").fill("77")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("minute 77 is out of range")
    expect(page.get_by_label("Minute")).to_have_value("77")
    page.get_by_role("link", name="daily at 09:00").click()
    expect(page.locator("#preview")).to_contain_text("at 09:00, every day")
    context.close()
