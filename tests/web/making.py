"""Schedules as a beat registers them, for the pages to show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from beat.cron import Cron
from beat.schedule import Schedule
from beat.sync import Sync

if TYPE_CHECKING:
    import httpx

    from beat.store import Store

FUNC = "tests.redis.job_functions.anything"
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
    assert "<script>alert" not in answer.text
    assert not re.search(r"<[^>]*\s(?:style|on[a-z]+)=", answer.text), "an inline style or script"
    assert "alert(&#39;x&#39;)" in answer.text or "alert" not in answer.text
