"""Every page on the screen of a phone: nothing has to be scrolled sideways, neither the page nor a part of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from beat.history.ledger import Error
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.timing import clock
from tests.browser.looking import NARROW, accessible, fits
from tests.support.lines import Ledger
from tests.web.inhabited import alive
from tests.web.making import daily, deploy

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.stage import Stage

LONG, WORD = "inventory_of_all_warehouses_" * 3, "w" * 400
HOUR, RUNS = timedelta(hours=1), 30
OPEN_ALL = "() => document.querySelectorAll('details').forEach(each => { each.open = true; })"
SIDEWAYS = """() => [...document.querySelectorAll("body *")]
    .filter(each => ["auto", "scroll"].includes(getComputedStyle(each).overflowX))
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => `${each.tagName}.${each.className}: ${each.textContent.slice(0, 80)}`)"""
OF = "/schedules/import"
PAGES = {
    "overview": "/",
    "schedules": "/schedules",
    "filtered": f"/schedules?match={LONG[:20]}&state=active&queue=mail*&overridden=1",
    "no match": "/schedules?match=nothing",
    "schedule": OF,
    "why": f"{OF}?why=03:00",
    "paused": "/schedules/paused",
    "broken": "/schedules/broken",
    "long id": f"/schedules/{LONG}",
    "run": "",
    "run with": f"{OF}/run",
    "pause": f"{OF}/pause",
    "resume": "/schedules/paused/resume",
    "reschedule": f"{OF}/reschedule",
    "system": "/system",
    "api": "/api",
}


NAME = f"scheduler-of-a-host-with-a-long-name.example.com-{'1' * 40}"


@pytest.fixture(scope="module")
def paths(stage: Stage) -> dict[str, str]:
    """The addresses of all pages, over schedules with much to tell."""
    with Redis.from_url(stage.redis.url) as redis:
        store = Store(redis, Keys())
        deploy(store, daily(LONG, description=WORD), daily("paused", tz="America/New_York"), daily("broken"))
        redis.hset("beat:schedule:broken", mapping={"state": "broken", "last_error": WORD})
        job = busy(redis, store)
    stage.client.pause("paused", until=stage.client.now() + 14 * 24 * HOUR, reason=WORD)
    stage.client.reschedule(LONG, "5,10,15,20,25,30,35,40,45 0-23 1-28 * mon-fri", tz="America/Argentina/Buenos_Aires")
    return {**PAGES, "run": f"{OF}/runs/{job}"}


def busy(redis: Redis, store: Store) -> str:
    """A schedule with outcomes of all kinds, each after many hours; the job of one that failed."""
    rule = {"cron": "0 * * * *", "tz": "America/Argentina/Buenos_Aires"}
    first = store.time().replace(minute=0, second=0, microsecond=0) - RUNS * HOUR
    book = Ledger("import", rule, beat="scheduler-1.example.com-12345").registered(first - HOUR, first)
    for n in range(RUNS):
        tick, kind = first + n * HOUR, ("succeeded", "failed", "stopped", "lost")[n % 4]
        end = tick + timedelta(seconds=85_000 + n)
        book.fired(tick, tick + HOUR, late_ms=12_345_678).ended(
            tick, kind, started=tick + 7 * HOUR, ended=end, duration=59_999.5 + n, at=end, worker=WORD,
            error=Error("ConnectionError", WORD, f"Traceback\n{WORD}\n") if kind == "failed" else None,
            reported=True, message=WORD, details={"rows": WORD, WORD: 1},
        )  # fmt: skip
        book.skipped(tick + HOUR / 2, tick + HOUR / 2, 1, at=end)
    book.keep(redis, last_error=WORD, consecutive_failures="12", last_success=clock.text(store.time()))
    return book.job(first + HOUR)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(stage: Stage, page: Page, paths: dict[str, str], name: str) -> None:
    with Redis.from_url(stage.redis.url) as redis:
        alive(Store(redis, Keys()), NAME)
    page.set_viewport_size({"width": NARROW, "height": 780})
    page.goto(f"{stage.address}{paths[name]}")
    page.wait_for_function("document.cookie.includes('beat_tz')")
    page.reload()  # from now on with the viewer's times, too
    page.wait_for_function("() => !document.querySelector('.strip-room')")
    page.evaluate(OPEN_ALL)
    fits(page, NARROW)
    assert page.evaluate(SIDEWAYS) == []


def test_no_page_scrolls_sideways_without_a_scheduler(stage: Stage, page: Page, paths: dict[str, str]) -> None:
    with Redis.from_url(stage.redis.url) as redis:
        redis.delete(Keys().instance(NAME), Keys().instances)
    for name in ("overview", "schedules", "schedule", "pause"):
        page.goto(f"{stage.address}{paths[name]}")
        fits(page, NARROW)
        accessible(page)
