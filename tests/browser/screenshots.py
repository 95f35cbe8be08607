"""Every page, light and dark, narrow and wide: the schedules of a shop, three days of them, a real beat and workers.

python -m tests.browser.screenshots [directory]        docs/screenshots, unless another is named
"""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beat.history.records import Fired
from tests.browser import chromium, past
from tests.browser.stage import ROOT, Stage, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

LASTS = timedelta(days=3)
"""How long the shop has been there."""
PATIENCE_S = 60
REDIS = 16379
"""The port at which its Redis is seen."""
NOT_THERE = 404
SHOP = "tests.browser.shop"


class Look(NamedTuple):
    """One way to look at a page."""

    width: int
    scheme: str
    height: int = 900


LOOKS = [
    Look(1280, "light"),
    Look(1280, "dark"),
    Look(360, "light", 780),
    Look(360, "dark", 780),
    Look(2560, "light", 1300),
]
LOOKS += [Look(2560, "dark", 1300)]


def pages(stage: Stage) -> Iterator[tuple[str, str]]:
    """The name and the path of each page."""
    yield "overview", "/"
    yield "schedules", "/schedules"
    yield "schedule", "/schedules/inventory_sync"
    for line in stage.client.history("exchange_rates", outcome="failed", limit=1):
        assert isinstance(line, Fired)
        yield "run", f"/schedules/exchange_rates/runs/{line.job_id}"
    yield "system", "/system"


def take(browser: Browser, stage: Stage, where: Path, name: str, path: str) -> None:
    """Takes a page in all its looks; one that does not exist is left out, and said."""
    for look in LOOKS:
        options = {"viewport": {"width": look.width, "height": look.height}, "color_scheme": look.scheme}
        with chromium.window(browser, **options) as (page, _):
            answer = page.goto(f"{stage.address}{path}")
            if not answer or answer.status == NOT_THERE:
                sys.stdout.write(f"{path}: is not there, left out\n")
                return
            page.wait_for_function("document.cookie.includes('beat_tz')")
            page.reload()  # with the zone of who looks
            page.screenshot(path=where / f"{name}-{look.width}-{look.scheme}.png")
    sys.stdout.write(f"{name}\n")


def open_the_shop(stage: Stage) -> None:
    """With its past, its operators, a beat and workers."""
    registry = importlib.import_module("beat.schedule.registry").default_registry
    registry.load(SHOP)
    past.play(stage.url, registry, LASTS)
    stage.client.named("ann@ops").pause("newsletter", "18h", "the text is not approved yet")
    stage.client.named("ben@ops").reschedule("session_cleanup", "30 4 * * *", tz="Europe/Berlin")
    stage.beat(SHOP)
    for _ in range(2):
        stage.worker("default", "mail")
    wait_for(lambda: any(each.last_pass for each in stage.client.beats()), PATIENCE_S)
    run = stage.client.named("ann@ops").trigger("cache_warm")
    wait_for(lambda: (found := stage.client.get_run(run.job_id)) and found.state == "succeeded", PATIENCE_S)


def main(where: Path) -> None:
    """Nothing yet; then everything, once enough has happened; and Redis away."""
    where.mkdir(parents=True, exist_ok=True)
    with Stage(redis_port=REDIS) as stage, chromium.started() as browser:
        take(browser, stage, where, "empty", "/")
        open_the_shop(stage)
        for name, path in pages(stage):
            take(browser, stage, where, name, path)
        stage.redis.stop()
        take(browser, stage, where, "away", "/")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/screenshots")
