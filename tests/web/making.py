"""Schedules as a beat registers them, for the pages to show."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from beat.engine.registrar import Sync
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron

if TYPE_CHECKING:
    import httpx

    from beat.storage.store import Store

FUNC = "tests.support.job_functions.anything"
SCRIPT = "<script>alert('x')</script>\"'\u202e&amp;"
"""What nobody may write into a page."""


def deploy(store: Store, *schedules: Schedule) -> None:
    """A beat with this code starts, and registers it."""
    sync = Sync(store, schedules, beat="web-1", emit=lambda _event: None)
    sync.announce()
    sync.register()


def daily(schedule_id: str = "report", **options: Any) -> Schedule:
    """One that ticks every day at nine in New York."""
    given = {"func": FUNC, "timing": Cron("0 9 * * *", "America/New_York"), **options}
    return Schedule(id=schedule_id, **given)


def fields(answer: httpx.Response, path: str = "") -> dict[str, str]:
    """The hidden fields of the first form that is sent to that path."""
    form = next(each for each in re.findall(r"(?s)<form method=\"post\".*?</form>", answer.text) if path in each)
    return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))


def is_harmless(answer: httpx.Response) -> None:
    """Fails where something of what was written became a part of the page."""
    parts = _Parts()
    parts.feed(answer.text)
    scripts = [given for tag, given in parts.found if tag == "script"]
    assert all("/static/" in given.get("src", "") for given in scripts), scripts
    inline = [(tag, name) for tag, given in parts.found for name in given if name == "style" or name.startswith("on")]
    assert not inline, inline


class _Parts(HTMLParser):
    """The elements of a page, as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
