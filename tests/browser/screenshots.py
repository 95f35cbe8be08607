"""Every page, light and dark, narrow and wide, as it looks with real schedules, a real beat and a real worker.

python -m tests.browser.screenshots [directory]        docs/screenshots, unless another is named
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.browser import chromium
from tests.browser.stage import ROOT, Stage, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

LONG_ENOUGH = 40
"""Runs of all schedules, so that there is something to see."""
PATIENCE_S = 120


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
    failed = next((run for run in stage.client.runs("fragile") if run.job_id), None)
    if failed:
        yield "run", f"/schedules/fragile/runs/{failed.job_id}"
    yield "system", "/system"


def take(browser: Browser, stage: Stage, where: Path) -> list[Path]:
    """Takes all of them; a page that does not exist is left out, and said."""
    taken = []
    for name, path in pages(stage):
        for look in LOOKS:
            options = {"viewport": {"width": look.width, "height": look.height}, "color_scheme": look.scheme}
            with chromium.window(browser, **options) as (page, _):
                answer = page.goto(f"{stage.address}{path}")
                if not answer or not answer.ok:
                    sys.stdout.write(f"{path}: {answer.status if answer else 'no answer'}, left out\n")
                    break
                page.wait_for_function("document.fonts.status === 'loaded' && document.cookie.includes('beat_tz')")
                page.reload()  # with the zone of who looks
                taken.append(where / f"{name}-{look.width}-{look.scheme}.png")
                page.screenshot(path=taken[-1])
    return taken


def main(where: Path) -> None:
    """Waits until enough has happened, and takes them."""
    where.mkdir(parents=True, exist_ok=True)
    with Stage() as stage, chromium.started() as browser:
        stage.beat()
        stage.worker("default", "slow")
        wait_for(lambda: _runs(stage) >= LONG_ENOUGH, PATIENCE_S)
        for each in take(browser, stage, where):
            sys.stdout.write(f"{each.relative_to(Path.cwd()) if each.is_relative_to(Path.cwd()) else each}\n")


def _runs(stage: Stage) -> int:
    return sum(each.run_count for each in stage.client.schedules())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/screenshots")
