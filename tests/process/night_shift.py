"""The stage of the guide for the night: a report that failed at three, a worker, and nobody but a reader."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from redis import Redis

from beat.dev import embedded
from beat.engine.registrar import Sync
from beat.history.ledger import Error
from beat.storage.keys import Keys
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.cron import Cron
from tests.support.builders import schedule
from tests.support.files import lay_out
from tests.support.lines import Ledger
from tests.support.rq_worker import Steps, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beat.schedule.schedule import Schedule

ZONE = "Europe/Berlin"
NIGHTLY = {"cron": "0 3 * * *", "tz": ZONE}
SAID = "[Errno 28] No space left on device"
TRACEBACK = f'Traceback (most recent call last):\n  File "warehouse.py", line 7, in report\nOSError: {SAID}\n'
FULL = Error("OSError", SAID, TRACEBACK)


@contextlib.contextmanager
def night_shift(home: Path) -> Iterator[None]:
    """Within it a private Redis runs in `home`, as that of `beat dev` would, and a worker."""
    lay_out(home, {"pyproject.toml": "", "warehouse.py": "def report(): ..."})
    with embedded.start(home / embedded.DIRECTORY) as private, Worker(private.url, Steps(home / "steps.log")):
        with Redis.from_url(private.url) as client:
            _three_nights(
                Store(client, Keys()), schedule(func="warehouse.report", timing=Cron("0 3 * * *", ZONE), tz=ZONE)
            )
        yield


def _three_nights(store: Store, report: Schedule) -> None:
    """Two that went well, and one that did not."""
    Sync(store, [report], beat="web-2", emit=lambda _event: None).register()
    found: Any = store.client.hgetall("beat:schedule:report")
    kept = {name.decode(): value.decode() for name, value in found.items()}
    third = report.before(store.time()) or clock.EPOCH
    second = report.before(third) or clock.EPOCH
    first = report.before(second) or clock.EPOCH
    book = Ledger("report", NIGHTLY).registered(report.before(first) or clock.EPOCH, first)
    for tick in (first, second):
        book.fired(tick, report.after(tick)).ended(tick)
    book.fired(third, report.after(third)).ended(third, "failed", error=FULL)
    book.keep(store.client, **{name: kept[name] for name in ("definition", "rule", "rev")})
