"""The page of one run."""

from __future__ import annotations

import json
import pickle
import re
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from beat.history import ledger
from beat.timing.interval import Every
from tests.support.lines import MINUTE, NINE, NOT_IMPORTED, SECOND, Ledger
from tests.support.many_schedules import Town, periodic
from tests.web.making import SCRIPT, daily, deploy, is_harmless
from tests.web.visitor import text

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat import Client
    from beat.storage.store import Store
    from tests.web.visitor import Visitor

OF = "/schedules/report/runs"
TRACEBACK = "Traceback (most recent call last):\n" + "".join(f"  line {n}\n" for n in range(60)) + "OSError: full\n"


class Canary:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self._path), "w")


def book(redis: Redis, **ended: Any) -> Ledger:
    """Three runs; the one in the middle ended so."""
    made = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(3):
        tick = NINE + n * MINUTE
        made.fired(tick).ended(tick, **(ended if n == 1 else {}))
    return made.keep(redis)


def middle(made: Ledger) -> str:
    return f"{OF}/{made.job(NINE + MINUTE)}"


def test_it_tells_the_way_of_a_run_from_its_tick_to_its_end(visitor: Visitor, redis: Redis) -> None:
    answer = visitor.get(middle(book(redis)))
    said = text(answer)
    assert "report succeeded" in said
    assert "Enqueued by web-2 4 ms late, started 2 s later by worker x, succeeded after 3.1 s." in said
    assert "due Mon 2026-11-16 09:01:00 enqueued Mon 2026-11-16 09:01:00 4 ms after it was due" in said
    assert "started Mon 2026-11-16 09:01:02 after 2 s in the queue" in said
    assert "ended Mon 2026-11-16 09:01:05 after 3.1 s of work" in said
    assert "RQ no longer has this job" in said
    assert "← Older" in said
    assert "Newer →" in said


def test_the_neighbours_are_links(visitor: Visitor, redis: Redis) -> None:
    made = book(redis)
    page = visitor.get(middle(made)).text
    for rel, tick in (("prev", NINE), ("next", NINE + 2 * MINUTE)):
        assert f'rel="{rel}" href="{OF}/{made.job(tick)}"' in page
        assert visitor.get(f"{OF}/{made.job(tick)}").status_code == 200


def test_a_run_that_is_asked_for_is_followed_from_the_queue_on(
    visitor: Visitor, store: Store, client: Client, redis: Redis
) -> None:
    deploy(store, daily())
    job = client.trigger("report").job_id
    assert "report queued" in text(visitor.get(f"{OF}/{job}"))
    redis.hset(f"rq:job:{job}", mapping={"status": "started", "started_at": "2026-11-16T09:00:00Z", "worker_name": "w"})
    said = text(visitor.get(f"{OF}/{job}"))
    assert "report started" in said
    assert "ended not yet" in said


def test_arguments_are_shown_and_secrets_are_not(visitor: Visitor, store: Store, client: Client) -> None:
    kwargs = {"copies": 2, "api_token": "hunter2", "to": {"password": "hunter2", "url": "amqp://ann:hunter2@host"}}
    deploy(store, daily(args=("plain",), kwargs=kwargs))
    answer = visitor.get(f"{OF}/{client.trigger('report').job_id}")
    assert "hunter2" not in answer.text
    said = text(answer)
    assert "argument 1 plain copies 2 api_token •••" in said
    assert "amqp://ann:•••@host" in said


def test_a_pickled_object_is_never_made(
    visitor: Visitor, store: Store, client: Client, redis: Redis, tmp_path: Path
) -> None:
    deploy(store, daily())
    job = client.trigger("report").job_id
    canary = pickle.dumps(("f", None, (Canary(tmp_path / "canary"),), {}))
    redis.hset(f"rq:job:{job}", "data", zlib.compress(canary))
    redis.hset(store.keys.template("report"), "data", zlib.compress(canary))
    assert "They are not shown: they are of classes that only the application can read." in text(
        visitor.get(f"{OF}/{job}")
    )
    assert "only the application can read" in text(visitor.get("/schedules/report/run"))
    assert not (tmp_path / "canary").exists()
    pickle.loads(canary)[2][0].close()  # noqa: S301 (our own)
    assert (tmp_path / "canary").exists(), "the canary sings"


@pytest.mark.parametrize(
    "data",
    [b"", b"no zlib", zlib.compress(b"no pickle"), zlib.compress(b"\x80\x05" + b"x" * 500_000), b"x" * 200_000,
     zlib.compress(pickle.dumps((1, 2, 3))), zlib.compress(pickle.dumps(("f", None, 5, 7)))],
    ids=["empty", "garbage", "no pickle", "bomb", "huge", "three", "kinds"],
)  # fmt: skip
def test_whatever_the_arguments_are_the_page_is_there(
    visitor: Visitor, store: Store, client: Client, redis: Redis, data: bytes
) -> None:
    deploy(store, daily())
    job = client.trigger("report").job_id
    redis.hset(f"rq:job:{job}", "data", data)
    redis.hset(store.keys.template("report"), "data", data)
    assert re.search("They are not shown|RQ no longer has this job", text(visitor.get(f"{OF}/{job}")))
    assert visitor.get("/schedules/report/run").status_code == 200


def test_a_long_traceback_is_folded_and_a_short_one_is_not(visitor: Visitor, redis: Redis) -> None:
    long = text(visitor.get(middle(book(redis, kind="failed", error=ledger.Error("OSError", "full", TRACEBACK)))))
    assert "OSError : full" in long
    assert "All 62 lines of the traceback" in long
    short = visitor.get(middle(book(redis, kind="failed", error=ledger.Error("OSError", "full", TRACEBACK[:100]))))
    assert "<details" not in short.text


def test_what_it_reported_is_shown_without_secrets(visitor: Visitor, redis: Redis) -> None:
    details = {"rows": [4, 8], "session_cookie": "hunter2"}
    answer = visitor.get(middle(book(redis, kind="failed", reported=True, message="3 rows refused", details=details)))
    assert "What it reported 3 rows refused rows" in text(answer)
    assert "hunter2" not in answer.text


REPLACED = "replaced by the tick of 2026-11-16T09:02:00Z"


def test_a_stopped_run_says_why_it_was_stopped_and_not_that_it_went_wrong(visitor: Visitor, redis: Redis) -> None:
    said = text(visitor.get(middle(book(redis, kind="stopped", reason=REPLACED))))
    assert f"Why it was stopped {REPLACED[:1].upper()}{REPLACED[1:]}." in said
    assert "What went wrong" not in said
    assert "omebody" not in said
    lost = text(visitor.get(middle(book(redis, kind="lost", reason="its worker died"))))
    assert "Why it counts as lost Its worker died." in lost


def test_passwords_in_urls_are_masked_wherever_they_were_written(visitor: Visitor, redis: Redis) -> None:
    said = "no answer: redis://ann:hunter2@host, https://bob:hunter2@host/x"
    made = book(redis, kind="failed", error=ledger.Error("OSError", said, TRACEBACK + said))
    redis.hset("beat:schedule:report", mapping={"last_error": said, "consecutive_failures": "1"})
    definition = json.loads(redis.hget("beat:schedule:report", "definition") or "{}")
    redis.hset("beat:schedule:report", "definition", json.dumps(definition | {"description": said}))
    pages = {path: visitor.get(path) for path in (middle(made), "/schedules/report", "/schedules", "/")}
    for path, answer in pages.items():
        assert answer.status_code == 200
        assert "hunter2" not in answer.text, path
    assert "redis://ann:•••@host, https://bob:•••@host/x" in text(pages[middle(made)])
    for path in ("schedules/report", "schedules", "schedules/report/history", "overview"):
        answer = visitor.get(f"/api/v1/{path}")
        assert answer.status_code == 200
        assert "hunter2" not in answer.text, path


def test_nothing_that_a_job_wrote_becomes_a_part_of_the_page(
    visitor: Visitor, redis: Redis, store: Store, client: Client
) -> None:
    deploy(store, daily(args=(SCRIPT,), kwargs={SCRIPT: SCRIPT, "long": SCRIPT * 2000}))
    job = client.trigger("report").job_id
    error = ledger.Error(SCRIPT, SCRIPT, SCRIPT * 100)
    now = client.now()
    ended = Ledger().ended(
        now, "failed", job=job, error=error, reason=SCRIPT, worker=SCRIPT, message=SCRIPT, details={SCRIPT: [SCRIPT]}
    )
    redis.lpush(store.keys.runs("report"), json.dumps(ledger.plain(ended.entries[0])))
    answer = visitor.get(f"{OF}/{job}")
    assert answer.status_code == 200
    assert "report failed" in text(answer)
    is_harmless(answer)


def test_a_broadcast_has_its_parts(visitor: Visitor, store: Store, client: Client) -> None:
    town = Town(store, periodic("report", queues=("a", "b<i>"), route="broadcast", timing=Every("1s")))
    assert town.codes("report") == ["OK"]
    [run] = [line for line in client.show("report").lines if getattr(line, "parts", ())]
    for job in (run.job_id, *run.job_ids):  # type: ignore[union-attr]
        said = text(visitor.get(f"{OF}/{job}"))
        assert "Its parts" in said
        assert "queue all of its queues" in said


@pytest.mark.parametrize(
    "job", ["beat_other_1", "x", "x" * 3000, "%00", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", "a%0Ab"]
)
def test_a_run_that_nothing_tells_of_is_not_found(visitor: Visitor, redis: Redis, job: str) -> None:
    book(redis)
    Ledger("other").fired(NINE, job="beat_other_1").keep(redis)
    answer = visitor.get(f"{OF}/{job}")
    assert answer.status_code == 404
    is_harmless(answer)


def test_why_is_told_where_it_says_more_than_the_story(visitor: Visitor, redis: Redis) -> None:
    made = Ledger().registered(NINE - MINUTE, NINE).fired(NINE).ended(NINE)
    made.fired(NINE, job="beat_report_b1_1", by="backfill", at=NINE + SECOND * 90)
    made.keep(redis)
    said = text(visitor.get(f"{OF}/{made.job(NINE)}"))
    assert "Why enqueued by web-2 4 ms late" in said
    assert "and once more" in said


def test_a_function_that_the_worker_could_not_import_is_explained_beside_rqs_words(
    visitor: Visitor, redis: Redis
) -> None:
    said = text(visitor.get(middle(book(redis, kind="failed", error=NOT_IMPORTED))))
    assert "ValueError: Invalid attribute name: app.report" in said
    assert "The worker could not import app.report. Start it where the code" in said
    assert "could not import" not in text(visitor.get(middle(book(redis, kind="failed"))))
