"""The overview, without a browser: what it says in each case, and that nothing on it is taken at its word."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest

from beat.history.ledger import Enqueued, Error
from beat.timing import clock
from beat.web.security import Access
from tests.support.facts import wait_until
from tests.support.lines import MINUTE, SECOND, Ledger
from tests.web.visitor import Visitor, text

if TYPE_CHECKING:
    from redis import Redis

    from beat import Client
    from beat.dev.embedded import PrivateRedis

HOSTILE = "</a><script>alert(1)</script>"


def kept(redis: Redis, client: Client, schedule_id: str = "report", *, due_s: float = 41.5, **fields: str) -> Ledger:
    """A schedule that is due in so many seconds, and ran a minute ago."""
    now = client.now()
    last = now.replace(second=0, microsecond=0) - 2 * MINUTE
    book = Ledger(schedule_id).registered(now - 60 * MINUTE, last)
    ended = {"error": Error("ValueError", fields["last_error"], "")} if "last_error" in fields else {}
    book.fired(last, now + due_s * SECOND).ended(last, "failed" if ended else "succeeded", **ended)
    if ended:
        fields = {"consecutive_failures": "1", "last_failure": clock.text(last), **fields}
        redis.sadd("beat:in:failing", schedule_id)
    book.keep(redis, **fields)
    redis.zadd("beat:due", {schedule_id: clock.to_ms(now + due_s * SECOND)})
    redis.zadd("beat:in:all", {schedule_id: 0})
    for entry in book.entries[1:]:
        kind = getattr(entry, "type", "enqueued")
        line = redis.lindex(f"beat:runs:{schedule_id}", 0 if kind != "enqueued" else 1)
        redis.xadd("beat:events", {"type": kind, "schedule": schedule_id, "entry": line or ""})
    return book


def ran(book: Ledger) -> str:
    """The job of its run."""
    return next(entry.job for entry in book.entries if isinstance(entry, Enqueued))


def alive(redis: Redis, client: Client, name: str = "web-1", **fields: str) -> None:
    now = client.now()
    redis.zadd("beat:instances", {name: clock.to_ms(now + MINUTE)})
    told: dict[Any, Any] = {
        "host": "vm",
        "pid": "7",
        "last_pass": clock.text(now),
        "seen_at": clock.text(now),
        **fields,
    }
    redis.hset(f"beat:instance:{name}", mapping=told)
    redis.pexpire(f"beat:instance:{name}", 60_000)


def summary(answer: Any) -> str:
    """The one sentence."""
    assert answer.status_code == 200, text(answer)
    found = re.search(r'(?s)<h1 id="summary".*?>(.*?)</h1>', answer.text)
    assert found
    return " ".join(re.sub("<[^>]*>", "", found[1]).split())


def section(answer: Any, name: str) -> str:
    """What one part of the page says; nothing where it is not there."""
    found = re.search(rf'(?s)<section[^>]*id="{name}">(.*?)</section>', answer.text)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", found[1])).split()) if found else ""


def test_without_schedules_it_shows_the_three_lines_to_write(visitor: Visitor) -> None:
    answer = visitor.get("/")
    assert summary(answer) == "There is no schedule yet. No scheduler is running."
    assert "from beat import periodic @periodic(every=" in text(answer)
    assert "beat run tasks.py" in text(answer)


def test_all_is_well_and_what_is_next(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client, "cache_warm")
    book = kept(redis, client, "report", due_s=3600)
    alive(redis, client)
    answer = visitor.get("/")
    assert re.fullmatch(r"All 2 schedules on time\. Next: cache_warm in 4[01] s\.", summary(answer))
    assert section(answer, "troubles") == ""
    assert 'href="/schedules/cache_warm"' in answer.text
    runs = section(answer, "latest")
    assert runs.count("succeeded 3.1 s") == 2
    assert f"/schedules/report/runs/{ran(book)}" in answer.text


def test_what_comes_next_is_not_read_aloud_again_and_again(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client)
    alive(redis, client)
    assert '<span class="next" aria-live="off">Next:' in visitor.get("/").text


def test_failing_comes_first_with_why_and_the_run(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client, "well")
    book = kept(redis, client, "bad", last_error="the upstream said 503")
    alive(redis, client)
    answer = visitor.get("/")
    assert summary(answer).startswith("1 of 2 schedules is failing. Next: ")
    told = section(answer, "troubles")
    assert "bad failing the upstream said 503" in told
    assert re.search(r"\dm\d*s? ago never Run now bad", told)
    assert f'/schedules/bad/runs/{ran(book)}"' in answer.text
    assert answer.text.index('id="troubles"') < answer.text.index('id="day"')
    assert "<title>✗ beat" in answer.text


def test_late_and_held_and_broken_are_told_with_why(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client, "late", due_s=-90)
    kept(redis, client, "held", due_s=-90, unannounced_at=clock.text(client.now()))
    kept(redis, client, "odd", state="broken", last_error="its rule cannot be read")
    redis.sadd("beat:in:broken", "odd")
    redis.srem("beat:in:failing", "odd")
    answer = visitor.get("/")
    assert (
        summary(answer) == "1 of 3 schedules is late, 1 is broken, 1 is held. No scheduler is running: nothing fires."
    )
    told = section(answer, "troubles")
    assert "odd broken its rule cannot be read" in told
    assert re.search(r"late late due for 1m3\ds, and not decided yet: no scheduler is running", told)
    assert re.search(r"held held due for 1m3\ds, and held: no running scheduler declares it", told)


def test_many_that_fail_are_counted_and_not_all_shown(visitor: Visitor, client: Client, redis: Redis) -> None:
    for n in range(13):
        kept(redis, client, f"bad_{n:02}", last_error="no")
    alive(redis, client)
    told = section(visitor.get("/"), "troubles")
    assert told.count("failing no") == 10
    assert told.endswith("3 more")


def test_without_a_beat_it_says_what_to_do(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client)
    redis.zadd("beat:instances", {"web-9": clock.to_ms(client.now() - MINUTE)})
    answer = visitor.get("/")
    assert summary(answer) == "No scheduler is running: nothing fires. 1 schedule waits for one."
    told = section(answer, "no-beat")
    assert re.match(r"No scheduler is running web-9 was the last, gone 1m ago", told)
    assert told.endswith("beat run app.tasks")


def test_a_beat_that_went_without_a_word_is_missing(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client)
    alive(redis, client)
    redis.zadd("beat:instances", {"web-2": clock.to_ms(client.now() - SECOND)})
    assert "The scheduler web-2 is missing." in summary(visitor.get("/"))
    told = section(visitor.get("/"), "beats")
    assert "web-1 running" in told
    assert "web-2 missing" in told


def test_a_beat_that_does_not_pass_is_stuck(visitor: Visitor, client: Client, redis: Redis) -> None:
    kept(redis, client)
    alive(redis, client, last_pass=clock.text(client.now() - 2 * MINUTE))
    answer = visitor.get("/")
    assert "The scheduler web-1 is stuck." in summary(answer)
    assert re.search("web-1 stuck checked 2m ago", section(answer, "beats"))


def test_the_day_is_drawn_and_told_as_a_table(visitor: Visitor, client: Client, redis: Redis) -> None:
    following = (client.now() + 60 * MINUTE).replace(minute=0, second=0, microsecond=0)
    for n in range(12):
        book = kept(redis, client, f"report_{n:02}")
        book.rule, book.next = {"cron": "0 * * * *", "tz": "UTC"}, following
        book.keep(redis)
    visitor.cookies.set("beat_tz", "Asia%2FKolkata")
    answer = wait_until(lambda: next((found for found in [visitor.get("/")] if 'class="strip"' in found.text), None))
    assert answer
    told = section(answer, "day")
    assert "hours of Kolkata" in told
    assert "12 succeeded" in told
    assert "to come" in told
    assert "Pile-ups." in told
    assert "12 schedules at once" in told
    assert "By hour, in Asia/Kolkata" in told
    assert '<svg class="strip" role="img"' in answer.text


def test_run_now_is_a_form_and_not_there_where_the_page_only_shows(
    client: Client, redis: Redis, server: PrivateRedis
) -> None:
    kept(redis, client, "bad", last_error="no")
    page = Visitor.of(server.url).get("/").text
    form, coming = re.findall(r'<form method="post" action="/schedules/bad/run".*?</form>', page)
    assert form == coming, "it is pressed where it fails, and where it comes up"
    assert re.findall(r'name="(csrf|request)" value="[A-Za-z0-9_-]{16,}"', form) == ["csrf", "request"]
    shown = Visitor.of(server.url, access=Access(read_only=True)).get("/").text
    assert '<form method="post"' not in shown
    assert "Run now" not in shown


@pytest.mark.parametrize("where", ["id", "error", "beat", "zone"])
def test_what_is_hostile_is_only_text(visitor: Visitor, client: Client, redis: Redis, where: str) -> None:
    names = {"id": HOSTILE if where == "id" else "report", "last_error": HOSTILE if where == "error" else "no"}
    kept(redis, client, names["id"], last_error=names["last_error"])
    alive(redis, client, HOSTILE if where == "beat" else "web-1")
    redis.pexpire(f"beat:instance:{HOSTILE}", 1000)
    visitor.cookies.set("beat_tz", "%3Cscript%3E" if where == "zone" else "UTC")
    answer = visitor.get("/")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    if where != "zone":
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text


def test_it_lives_under_any_path(client: Client, redis: Redis, server: PrivateRedis) -> None:
    from starlette.applications import Starlette  # noqa: PLC0415 (the only test that mounts)
    from starlette.routing import Mount  # noqa: PLC0415

    from beat.web import create_app  # noqa: PLC0415

    kept(redis, client, "bad", last_error="no")
    mounted = Visitor(Starlette(routes=[Mount("/ops/beat", create_app(server.url))]))
    page = mounted.get("/ops/beat/").text
    assert 'href="/ops/beat/schedules/bad"' in page
    assert 'action="/ops/beat/schedules/bad/run"' in page


def test_late_means_the_same_on_every_page(redis: Redis, client: Client, server: PrivateRedis) -> None:
    visitor = Visitor.of(server.url)
    for due_s, is_late in ((-3, False), (-60, True)):
        kept(redis, client, due_s=due_s)
        alive(redis, client)
        assert ("schedule is late" in text(visitor.get("/"))) == is_late
        assert ("no scheduler has decided it yet" in text(visitor.get("/schedules/report"))) == is_late
        assert ("due for" in text(visitor.get("/schedules"))) == is_late
        redis.flushdb()
