"""The list of schedules in a browser: it counts, it filters as one types, and it leaves alone what somebody is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import looking
from tests.browser.stage import EVERYBODY, wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.browser.stage import Stage

AWAY = "#s-slow_import .next time.away"
IDS = "() => [...document.querySelectorAll('table.schedules tbody tr')].map(e => e.id.slice(2))"
FOCUS = "() => (e => [e.id, e.value, e.selectionStart])(document.activeElement)"
REACHED = "() => (e => (e.innerText || '').split('\\n')[0].trim() || e.id)(document.activeElement)"


@pytest.fixture(scope="module", autouse=True)
def beat(stage: Stage) -> None:
    """A real one, which has registered them all when its heartbeat is there."""
    stage.beat()
    wait_for(stage.client.beats)


def settled(page: Page, *ids: str) -> None:
    """Returns when just these are shown."""
    page.wait_for_function(f"ids => ({IDS})().join() === ids", arg=",".join(ids))


def test_the_countdown_counts_between_two_answers(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/schedules")
    page.wait_for_function(f"() => /^in ([5-9]|1\\d) s$/.test(document.querySelector('{AWAY}').textContent)")
    page.evaluate(
        "() => document.addEventListener('htmx:beforeRequest', e => e.preventDefault())"
    )  # no answer any more
    before = page.locator(AWAY).inner_text()
    page.wait_for_function(f"before => document.querySelector('{AWAY}').textContent !== before", arg=before)


def test_typing_filters_and_the_focus_stays_while_the_page_asks_again(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/schedules")
    box = page.locator("#match")
    box.press_sequentially("ba", delay=20)
    settled(page, "nightly_backup")
    page.wait_for_url(f"{stage.address}/schedules?match=ba")
    box.press("ArrowLeft")
    looking.polled(page)
    assert page.evaluate(FOCUS) == ["match", "ba", 1]
    assert page.evaluate(IDS) == ["nightly_backup"]
    page.keyboard.press("Delete")
    page.keyboard.type("il")
    settled(page, "billing")
    assert page.evaluate(FOCUS) == ["match", "bil", 3]
    page.go_back()
    page.wait_for_url(f"{stage.address}/schedules")
    page.wait_for_function("number => document.querySelectorAll('tbody tr').length === number", arg=EVERYBODY)
    assert page.locator("#match").input_value() == ""


def test_other_filters_and_the_order_follow_at_once(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/schedules")
    page.locator("#more > summary").click()
    page.locator("#queue").fill("slow")
    settled(page, "billing")
    page.locator("#queue").fill("nobody")
    page.get_by_role("heading", name="Nothing matches.").wait_for()
    page.locator("#queue").fill("")
    page.locator("#sort").select_option("next")
    page.wait_for_url("**/schedules?sort=next")
    assert page.locator("th[aria-sort]").inner_text().startswith("Next")
    page.locator("#match").fill("a b")
    page.get_by_text("That cannot be looked for.").wait_for()
    page.get_by_role("link", name=f"All {EVERYBODY}", exact=True).first.click()
    page.wait_for_url("**/schedules?sort=next")
    assert page.locator("#sort").input_value() == "next"
    assert page.locator("#match").input_value() == ""


def test_run_now_is_one_press_and_the_list_follows_it_by_itself(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/schedules?match=billing")
    page.evaluate("() => { document.querySelector('#s-billing').mine = 1; }")
    page.locator("#run-billing").focus()
    stage.client.trigger("billing")
    page.locator("#s-billing .mark.queued").wait_for()
    worker = stage.worker("slow")
    page.locator("#s-billing .mark.succeeded").wait_for()
    page.get_by_text("1 run: 1 succeeded").wait_for()
    assert page.evaluate("() => document.querySelector('#s-billing').mine") == 1, "the row was drawn anew"
    assert page.evaluate(FOCUS)[0] == "run-billing"
    page.keyboard.press("Enter")
    page.wait_for_url("**/schedules/billing/**")
    wait_for(lambda: stage.client.get("billing").run_count == 2)
    worker.terminate()


def test_everything_is_reached_by_the_keyboard_and_read_aloud(stage: Stage, page: Page) -> None:
    wait_for(lambda: stage.client.show("cache_warm").open_runs)
    page.goto(f"{stage.address}/schedules?match=cache")
    page.locator("#match").focus()
    reached: list[str] = []
    while "Run now" not in reached and len(reached) < 25:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(REACHED))
    assert reached[1:3] == ["Show", "More filters"]
    assert reached[3].startswith("All")
    assert [each for each in reached if each in {"cache_warm", "queued", "Run now"}] == [
        "cache_warm",
        "queued",
        "Run now",
    ]
    page.goto(f"{stage.address}/schedules")
    looking.accessible(page)
    page.goto(f"{stage.address}/schedules?match=nobody&state=paused")
    looking.accessible(page)


def test_it_works_without_javascript(stage: Stage, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{stage.address}/schedules")
    page.locator("#match").fill("report")
    page.get_by_role("button", name="Show").click()
    assert page.locator("tbody tr").count() == 1
    page.locator(".chips a").click()
    assert page.locator("tbody tr").count() == EVERYBODY
    context.close()


def test_no_screen_is_too_narrow_or_too_wide(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/schedules")
    looking.fits(page, 360, 800, 1121, 2560)
    page.set_viewport_size({"width": 2560, "height": 900})
    assert page.locator("tbody tr").first.evaluate("e => e.getBoundingClientRect().width") > 2200
