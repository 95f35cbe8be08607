"""The page of one schedule."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from beat import Client
from beat.history import ledger
from beat.timing import clock
from beat.web.app import made
from beat.web.security import Access
from tests.support.lines import MINUTE, MS, NINE, NOT_IMPORTED, SECOND, Ledger
from tests.web.inhabited import alive
from tests.web.making import SCRIPT, daily, deploy, is_harmless
from tests.web.visitor import Visitor, text

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store
    from tests.support.schedulers_in_turn import Crew

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def kept(redis: Redis, client: Client, runs: int = 5, **options: str) -> Ledger:
    """A ledger of hourly runs, the newest of which has just ended."""
    first = client.now().replace(minute=0, second=0, microsecond=0) - runs * HOUR
    book = Ledger("report", {"cron": "0 * * * *", "tz": "Europe/Berlin"}).registered(first - 30 * SECOND, first)
    for n in range(runs):
        tick = first + n * HOUR
        book.fired(tick, tick + HOUR).ended(tick, "failed" if n == 1 else "succeeded")
    return book.keep(redis, **options)


def test_it_says_what_it_is_when_it_ticks_and_how_it_stands(visitor: Visitor, store: Store) -> None:
    deploy(store, daily(jitter=timedelta(minutes=5), overlap="skip", description="Every day"))
    alive(store)
    said = text(visitor.get("/schedules/report"))
    assert "report active at 09:00, every day, America/New_York time" in said
    assert "The next 10 ticks, by the clocks of America/New_York" in said
    assert "with jitter at" in said
    assert "skip: while a run goes on, ticks are skipped" in said
    assert "each tick fires up to 5m after its time" in said
    assert "No live worker reads default" in said
    assert "It has not run yet." in said


@pytest.mark.parametrize("path", ["", "/pause", "/run", "/reschedule"])
def test_a_schedule_without_a_scheduler_says_so_first(visitor: Visitor, store: Store, path: str) -> None:
    deploy(store, daily())
    store.client.hset("beat:schedule:report", "next_run", clock.text(store.time() - 12 * SECOND))
    store.client.hset("beat:schedule:report", "due_at", clock.text(store.time() - 12 * SECOND))
    answer = visitor.get(f"/schedules/report{path}")
    said = text(answer).partition("Schedules / report")[2]
    assert said.index("No scheduler is running, so nothing fires.") < said.index("active, no scheduler")
    assert '<span class="mark active">' not in answer.text
    assert re.search(r"Due 1[2-4] s ago .* fires once a scheduler runs", said)
    assert "Next" not in said.partition("What comes next")[0].partition("active")[2].partition("fires once")[0]
    assert "has decided it yet" not in said
    alive(store)
    answer = visitor.get(f"/schedules/report{path}")
    assert "No scheduler is running" not in answer.text
    assert '<span class="mark active">active</span>' in answer.text


def test_a_finished_schedule_needs_no_scheduler(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    store.client.hset("beat:schedule:report", "state", "finished")
    assert "No scheduler is running" not in visitor.get("/schedules/report").text


def test_times_are_those_of_the_schedule_and_of_who_looks(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    assert "yours" not in text(visitor.get("/schedules/report"))
    visitor.cookies.set("beat_tz", "Asia%2FTokyo")
    assert re.search(r"Next in \S+ \w{3} \S+ 09:00 New York 2[23]:00 yours", text(visitor.get("/schedules/report")))


def test_what_is_not_there_is_not_found_and_the_nearest_is_named(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    for path in ("", "/run", "/pause", "/reschedule", "/runs/x"):
        answer = visitor.get(f"/schedules/reporr{path}")
        assert answer.status_code == 404
        assert "Did you mean 'report'?" in answer.text.replace("&#39;", "'")
    assert visitor.get(f"/schedules/{'x' * 5000}").status_code == 404


def test_an_override_is_told_with_both_rules_and_by_whom(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    client.reschedule("report", "30 10 * * *")
    said = text(visitor.get("/schedules/report"))
    assert "in force 30 10 * * * America/New_York at 10:30" in said
    assert "code says at 09:00, every day, America/New_York time" in said
    assert "by tester" in said


def test_what_somebody_should_know_stands_at_the_top(visitor: Visitor, redis: Redis, client: Client) -> None:
    kept(redis, client, consecutive_failures="3", last_error="OSError: disk full")
    assert "The last 3 runs failed: OSError: disk full" in text(visitor.get("/schedules/report"))
    redis.hset("beat:schedule:report", "last_error", "E" * 5000)
    assert visitor.get("/schedules/report").text.count("E" * 301) == 0, "all of it stands on the page of its run"
    kept(redis, client, state="broken", last_error="no cron")
    assert "Broken: no cron" in text(visitor.get("/schedules/report"))


def test_a_pause_says_by_whom_until_when_and_why(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    client.pause("report", reason="moving house")
    said = text(visitor.get("/schedules/report"))
    assert "Paused by tester since" in said
    assert "until an operator resumes it (moving house)" in said
    assert "Next none until an operator resumes it" in said


def test_every_day_of_the_calendar_says_what_it_was(visitor: Visitor, redis: Redis, client: Client) -> None:
    kept(redis, client, runs=48)
    page = visitor.get("/schedules/report").text
    titles = re.findall(r"<title>(\w{3} \d{4}-\d\d-\d\d: [^<]*)</title>", page)
    assert len(titles) == 90
    assert sum("1 failed" in each for each in titles) == 1
    before = sum("it was not there yet" in each for each in titles)
    assert all("it was not there yet" in each for each in titles[:before])
    assert sum(int(number) for each in titles[before:] for number in re.findall(r"(\d+) succeeded", each)) == 47
    assert 90 - before in {3, 4}, "at midnight it was registered on the day before, and the newest day is empty"
    day = re.search(r'href="(/schedules/report\?day=[^"#]*)#ledger" aria-label="[^"]*1 failed', page)
    assert day
    told = text(visitor.get(day[1]))
    assert ": show all days" in told
    assert len(re.findall(r'<tr id="line-', visitor.get(day[1]).text)) < 49


def test_the_ledger_is_paged_and_nothing_comes_twice_or_not_at_all(
    visitor: Visitor, redis: Redis, client: Client
) -> None:
    kept(redis, client, runs=60)
    seen: list[str] = []
    path: str | None = "/schedules/report"
    while path:
        page = visitor.get(path).text
        seen += re.findall(r'<tr id="(line-\w+)"', page)
        older = re.search(r'href="([^"]*before=[^"#]*)#ledger" rel="next"', page)
        path = older[1].replace("&amp;", "&") if older else None
    assert len(seen) == len(set(seen)) == 61


def test_lines_of_the_same_instant_stay_together(visitor: Visitor, redis: Redis, client: Client) -> None:
    now = client.now().replace(microsecond=0)
    book = Ledger("report").registered(now - HOUR, now - HOUR)
    for n in range(40):
        book.fired(now - HOUR + n * MINUTE, job=f"beat_report_{n}", at=now)
    book.keep(redis)
    assert len(re.findall(r'<tr id="line-', visitor.get("/schedules/report").text)) == 40


@pytest.mark.parametrize(("outcome", "number"), [("failed", 1), ("succeeded", 4), ("open", 0), ("skipped", 0)])
def test_the_ledger_is_filtered_by_outcome(
    visitor: Visitor, redis: Redis, client: Client, outcome: str, number: int
) -> None:
    kept(redis, client)
    answer = visitor.get(f"/schedules/report?outcome={outcome}")
    assert len(re.findall(r'<tr id="line-', answer.text)) == number
    assert ("The history has no such line." in text(answer)) == (number == 0)


@pytest.mark.parametrize("query", ["before=abc", "outcome=good", "day=monday", "day=2026-13-01", "before=2026-11-16"])
def test_what_cannot_be_asked_for_is_refused_in_words(visitor: Visitor, store: Store, query: str) -> None:
    deploy(store, daily())
    answer = visitor.get(f"/schedules/report?{query}")
    assert answer.status_code == 400
    assert "That did not work." in text(answer)


def test_why_is_answered_on_the_page(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    said = text(visitor.get("/schedules/report?why=03:17"))
    assert re.search(r"03:17 New York = 0?\d+:17Z : not a tick of this schedule|the schedule was not there yet", said)
    assert "is not a time: write 03:00" in text(visitor.get("/schedules/report?why=%3Cb%3Enever"))


def test_statistics_have_percentiles_and_skips_by_reason(visitor: Visitor, redis: Redis) -> None:
    book = Ledger("report").registered(NINE - MINUTE, NINE)
    for n in range(3):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE)
    book.skipped(NINE + 3 * MINUTE, NINE + 9 * MINUTE, 7).keep(redis)
    said = text(visitor.get("/schedules/report"))
    assert "100.0 % of 3 runs succeeded" in said
    assert "duration 3.1 s 3.1 s 3.1 s" in said
    assert "lateness 4 ms 4 ms 4 ms" in said
    assert "Skipped 7 misfire" in said


def test_nothing_that_anybody_wrote_becomes_a_part_of_the_page(
    visitor: Visitor, redis: Redis, store: Store, client: Client
) -> None:
    deploy(store, daily(description=SCRIPT.replace("\u202e", ""), queue="x<script>alert('x')</script>"))
    client.pause("report", reason=SCRIPT.replace("\u202e", ""))
    error = ledger.Error(SCRIPT, SCRIPT * 50, SCRIPT)
    now = client.now().replace(microsecond=0)
    book = Ledger("report").fired(now, job=SCRIPT, beat=SCRIPT, why=SCRIPT, queue=SCRIPT)
    book.ended(now, "failed", job=SCRIPT, error=error, worker=SCRIPT, message=SCRIPT)
    book.skipped(now, now, 1, reason=SCRIPT, behind=SCRIPT, why=SCRIPT)
    for entry in book.entries:
        redis.lpush(store.keys.runs("report"), json.dumps(ledger.plain(entry)))
    redis.hset(store.keys.schedule("report"), mapping={"last_error": SCRIPT, "source": SCRIPT, "app": SCRIPT})
    answer = visitor.get("/schedules/report?why=" + "%3Cscript%3Ealert('x')%3C/script%3E")
    assert answer.status_code == 200
    is_harmless(answer)
    for path in ("run", "pause", "reschedule?minute=%3Cscript%3Ealert('x')&tz=%22%3E%3Cscript%3Ealert('x')"):
        is_harmless(visitor.get(f"/schedules/report/{path}"))


@pytest.mark.parametrize(
    "fields",
    [
        {"rule": "{}", "definition": "no json", "tz": "Mars/Base"},
        {"state": "", "next_run": "never", "due_at": "x", "run_count": "many"},
        {"definition": '{"cron": 5, "queue": ["x"], "queues": 7}', "override": "[]", "declared": "3"},
        {"state": "x<b>", "version": "-1", "pause_until": "?"},
    ],
    ids=["rule", "times", "kinds", "state"],
)
def test_whatever_stands_in_redis_the_page_shows_something(
    visitor: Visitor, redis: Redis, client: Client, fields: dict[str, str]
) -> None:
    kept(redis, client, runs=5, **fields)
    for path in ("", "/run", "/pause", "/resume", "/reschedule"):
        answer = visitor.get(f"/schedules/report{path}")
        assert answer.status_code == 200, text(answer)


def test_where_nothing_may_be_changed_there_are_no_forms(server: PrivateRedis, store: Store) -> None:
    deploy(store, daily())
    visitor = Visitor.of(server.url, access=Access(read_only=True))
    answer = visitor.get("/schedules/report")
    assert 'method="post"' not in answer.text
    assert "Run now" not in answer.text
    for path in ("run", "pause", "resume", "reschedule", "preview"):
        assert "the web UI is read-only" in text(visitor.get(f"/schedules/report/{path}"))
        assert visitor.send(f"/schedules/report/{path}").status_code == 403


def test_a_page_that_is_mounted_links_to_nothing_outside(server: PrivateRedis, store: Store, client: Client) -> None:
    deploy(store, daily())
    client.trigger("report")
    app = made(Client(server.url), Access(hosts=None))
    visitor = Visitor(Starlette(routes=[Mount("/ops/beat", app)]))
    for path in ("", "/run", "/pause", "/resume", "/reschedule", f"/runs/{client.get('report').last_job}"):
        answer = visitor.get(f"/ops/beat/schedules/report{path}")
        assert answer.status_code == 200
        links = re.findall(r'(?:href|action|src|hx-get)="(/[^"]*)"', answer.text)
        assert links
        assert all(each.startswith("/ops/beat/") for each in links), links


def test_a_schedule_that_runs_every_second_is_quick_to_show(visitor: Visitor, redis: Redis, client: Client) -> None:
    now = client.now().replace(microsecond=0)
    book = Ledger("report", {"every": "1s", "tz": "UTC"})
    for n in reversed(range(1000)):
        book.fired(now - n * SECOND).ended(now - n * SECOND, started=now - n * SECOND + MS)
    book.keep(redis)
    answer = visitor.get("/schedules/report")
    assert answer.status_code == 200
    assert len(answer.content) < 200_000


def test_what_follows_another_has_no_rule_to_lay_over_and_says_after_what_it_comes(crew: Crew) -> None:
    visitor = Visitor.of(crew.url)
    answer = visitor.get("/schedules/load")
    assert "Next after the next success of report" in text(answer)
    assert "/schedules/load/reschedule" not in answer.text
    assert "/schedules/report/reschedule" in visitor.get("/schedules/report").text
    assert "Use this rule" not in visitor.get("/schedules/load/reschedule").text


def test_only_the_summary_is_read_aloud_when_it_changes(crew: Crew) -> None:
    visitor = Visitor.of(crew.url)
    of = "/schedules/report"
    for path in ("/", "/schedules", of, f"{of}/run", f"{of}/pause", f"{of}/reschedule?hour=25", "/system", "/nowhere"):
        page = visitor.get(path).text
        live = re.findall(r'<[^<>]* aria-live="(?:polite|assertive)"[^<>]*>', page)
        assert len(live) == 1, path
        assert 'id="summary"' in live[0], path


def test_a_function_that_the_worker_could_not_import_is_explained_until_a_run_succeeds(
    visitor: Visitor, redis: Redis, client: Client
) -> None:
    book = kept(redis, client)
    tick = book.next
    assert tick is not None
    book.fired(tick, tick + HOUR).ended(tick, "failed", error=NOT_IMPORTED).keep(redis)
    assert "The worker could not import app.report. Start it where the code" in text(visitor.get("/schedules/report"))
    book.fired(tick + HOUR, tick + 2 * HOUR).ended(tick + HOUR).keep(redis)
    assert "could not import" not in text(visitor.get("/schedules/report"))
