"""Every page, light and dark, narrow and wide, as it looks with real schedules, a real beat and a real worker.

python -m tests.browser.screenshots [directory]        docs/screenshots, unless another is named
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beat.history.lines import Fired
from tests.browser import chromium
from tests.browser.stage import ROOT, Stage, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

LONG_ENOUGH = 40
"""Runs of all schedules, so that there is something to see."""
PATIENCE_S = 120
NOT_THERE = 404


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
    yield "schedule", "/schedules/report"
    for line in stage.client.history("fragile", outcome="failed", limit=1):
        assert isinstance(line, Fired)
        yield "run", f"/schedules/fragile/runs/{line.job_id}"
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


def main(where: Path) -> None:
    """Nothing yet; then everything, once enough has happened; and Redis away."""
    where.mkdir(parents=True, exist_ok=True)
    with Stage() as stage, chromium.started() as browser:
        take(browser, stage, where, "empty", "/")
        stage.beat()
        stage.worker("default", "slow")
        wait_for(lambda: len(stage.client.history(limit=LONG_ENOUGH)) >= LONG_ENOUGH, PATIENCE_S)
        for name, path in pages(stage):
            take(browser, stage, where, name, path)
        stage.redis.stop()
        take(browser, stage, where, "away", "/")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/screenshots")
