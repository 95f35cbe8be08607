"""The frame of the page: colours, keyboard, no JavaScript, and what is told when something is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect
from redis import Redis

from beat.dev import embedded
from beat.storage.keys import Keys
from beat.storage.store import Store
from tests.browser import chromium
from tests.browser.looking import accessible, fits
from tests.web.making import daily, deploy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

    from tests.browser.stage import Stage

NOT_MODIFIED = 304


def test_the_colours_are_the_viewers_choice(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.address}/?q=a%20b")
    for name, theme in (("Dark", "dark"), ("Light", "light"), ("Auto", None)):
        page.locator("form.theme button").click()
        expect(page.locator("form.theme button")).to_contain_text(name)
        assert page.locator("html").get_attribute("data-theme") == theme
        assert page.url == f"{stage.address}/?q=a%20b"


def test_the_keyboard_reaches_the_content_at_once(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    page.keyboard.press("Tab")
    expect(page.locator(".skip-link")).to_be_focused()
    expect(page.locator(".skip-link")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_everybody_can_read_it_on_any_screen(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    accessible(page)
    fits(page)


def test_it_works_without_javascript(stage: Stage, browser: Browser) -> None:
    with chromium.window(browser, java_script_enabled=False) as (page, _):
        page.goto(stage.address)
        for name in ("Schedules", "System", "Overview"):
            page.get_by_role("navigation").get_by_role("link", name=name).click()
            expect(page.get_by_role("navigation").locator("[aria-current]")).to_have_text(name)
        page.locator("form.theme button").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_what_is_not_there_says_so(stage: Stage, browser: Browser) -> None:
    with chromium.window(browser) as (page, _):  # a browser counts a 404 among its errors
        page.goto(f"{stage.address}/nowhere")
        expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here.")
        accessible(page)
        fits(page)


def test_long_words_stay_in_their_boxes(stage: Stage, page: Page) -> None:
    name, word = "x" * 100, "w" * 3000
    with Redis.from_url(stage.redis.url) as redis:
        deploy(Store(redis, Keys()), daily(name, description=word[:400]), daily("loud"))
        redis.hset("beat:schedule:loud", mapping={"last_error": word, "consecutive_failures": "2"})
    for path in ("/", "/schedules", f"/schedules/{name}", "/schedules/loud", f"/schedules/{name}/reschedule"):
        page.goto(f"{stage.address}{path}")
        fits(page, 360, 1280)


def test_an_open_page_is_sent_again_only_when_it_has_changed(stage: Stage, page: Page) -> None:
    def is_unchanged(answer: Response) -> bool:
        return answer.request.resource_type == "xhr" and answer.status == NOT_MODIFIED

    with Redis.from_url(stage.redis.url) as redis:
        deploy(Store(redis, Keys()), daily("quiet"))
    page.goto(f"{stage.address}/schedules/quiet")
    with page.expect_response(is_unchanged):
        pass
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("#live h1")).to_contain_text("quiet active")
    stage.client.pause("quiet", reason="the disk is full")
    expect(page.locator("#live")).to_contain_text("the disk is full", timeout=10_000)
    with page.expect_response(is_unchanged):
        pass
    expect(page.locator("#live")).to_contain_text("the disk is full")


def test_redis_goes_and_comes_back_before_an_open_page(stage: Stage, page: Page) -> None:
    page.goto(stage.address)
    before = page.locator("h1").inner_text()
    page.evaluate("window.stays = true")
    stage.redis.stop()
    expect(page.locator("h1")).to_have_text("Redis does not answer.", timeout=15_000)
    expect(page.locator("#live")).to_contain_text("Since ")
    expect(page.locator("#live")).to_contain_text("Nothing is lost")
    accessible(page)
    fits(page)
    stage.redis = embedded.start(stage.home / "redis")
    expect(page.locator("h1")).to_have_text(before, timeout=15_000)
    assert page.evaluate("window.stays"), "it was loaded again"


def test_the_server_of_the_page_goes_and_comes_back(stage: Stage, browser: Browser) -> None:
    with chromium.window(browser) as (page, _):  # a browser counts what is not answered among its errors
        page.goto(stage.address)
        before = page.locator("h1").inner_text()
        expect(page.get_by_role("alert")).to_be_hidden()
        stage.serving.stop()
        expect(page.get_by_role("alert")).to_contain_text("has not answered since", timeout=15_000)
        expect(page.locator("h1")).to_have_text(before)
        stage.serve_again()
        expect(page.get_by_role("alert")).to_be_hidden(timeout=15_000)


def test_an_answer_that_is_no_page_leaves_what_is_there(stage: Stage, browser: Browser) -> None:
    with chromium.window(browser) as (page, _):
        page.goto(stage.address)
        before = page.locator("h1").inner_text()
        page.route(f"{stage.address}/", lambda route: route.fulfill(status=403, body="sign in first"))
        expect(page.get_by_role("alert")).to_contain_text("no longer shows this page (403)", timeout=15_000)
        expect(page.locator("h1")).to_have_text(before)
        page.unroute(f"{stage.address}/")
        expect(page.get_by_role("alert")).to_be_hidden(timeout=15_000)
