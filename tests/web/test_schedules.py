"""The list of schedules: every filter, every page and every row, and nothing that anybody wrote is believed."""

from __future__ import annotations

import html
import itertools
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from beat.history.ledger import Enqueued
from beat.timing import clock
from beat.web import create_app
from beat.web.auth import Access
from tests.support.builders import registration, second
from tests.support.lines import Ledger
from tests.web.inhabited import alive
from tests.web.visitor import Visitor, text

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from redis import Redis

    from beat import Client
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

HOUR = timedelta(hours=1)
ENDED = (
    '"tick": null, "started": null, "ended": null, "duration": 1e9, "worker": null, "attempts": 1, '
    '"at": "2026-11-16T09:00:00Z", "beat": "<i>"'
)
HOSTILE = """"'><script>alert(1)</script>{{ 7 * 7 }}&amp;"""


@pytest.fixture
def keep(store: Store, redis: Redis) -> Callable[..., Ledger]:
    """Puts a schedule into Redis, with a ledger of so many runs, one an hour, and takes it into the indexes."""

    def kept(schedule_id: str, runs: int = 0, rule: Any = None, outcome: str = "succeeded", **fields: str) -> Ledger:
        now = clock.at(second(store))
        book = Ledger(schedule_id, rule or {"cron": "0 * * * *", "tz": "UTC"}).registered(now - HOUR, now + HOUR)
        for n in range(runs, 0, -1):
            book.fired(now - n * HOUR, now + HOUR).ended(now - n * HOUR, outcome)
        book.keep(redis, **fields)
        store.repair([schedule_id])
        return book

    return kept


def many(store: Store, number: int, begin: int = 0) -> list[str]:
    """So many plain schedules, whose ids are in order."""
    ids = [f"s{n:04d}" for n in range(begin, begin + number)]
    store.register([registration(each, second(store) + 3600) for each in ids], beat="web-1")
    return ids


def shown(answer: httpx.Response) -> list[str]:
    """The ids of the rows, in their order."""
    return re.findall(r'<tr id="s-([^"]+)"', answer.text)


def row(answer: httpx.Response, schedule_id: str) -> str:
    """What a row says."""
    found = re.search(rf'(?s)<tr id="s-{schedule_id}".*?</tr>', answer.text)
    assert found, text(answer)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", found[0])).split())


def links(answer: httpx.Response, within: str = "") -> list[str]:
    """Where its links lead that begin so."""
    found = map(html.unescape, re.findall(r'href="([^"]+)"', answer.text))
    return list(dict.fromkeys(each for each in found if each.startswith(within or "/")))


def test_the_list_without_a_scheduler_says_so_first(
    visitor: Visitor, keep: Callable[..., Ledger], store: Store
) -> None:
    keep("report")
    answer = visitor.get("/schedules")
    said = text(answer)
    assert said.index("No scheduler is running, so nothing fires.") < said.index("active, no scheduler")
    assert '<span class="mark active">' not in answer.text
    alive(store)
    answer = visitor.get("/schedules")
    assert "No scheduler is running" not in answer.text
    assert '<span class="mark active">active</span>' in answer.text


def test_a_pause_that_ends_in_two_weeks_has_a_date(
    visitor: Visitor, keep: Callable[..., Ledger], client: Client
) -> None:
    keep("paused")
    until = client.now().replace(microsecond=0) + 14 * 24 * HOUR
    client.pause("paused", until=until)
    assert re.search(rf"paused until {until.date()} \d\d:\d\d(:\d\d)? UTC", row(visitor.get("/schedules"), "paused"))


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_row_says_what_when_next_and_last(visitor: Visitor, keep: Callable[..., Ledger]) -> None:
    keep("report", 3, {"cron": "0 9 * * mon-fri", "tz": "America/New_York"})
    said = row(visitor.get("/schedules"), "report")
    assert "at 09:00, Monday to Friday, America/New_York time 0 9 * * mon-fri" in said
    assert re.search(r"in (59m\d\ds|1h) (\w{3} )?\d\d:\d\d(:\d\d)? New York", said)
    assert re.search(r"succeeded 3.1 s (59m\d\ds|1h) ago", said)
    assert "3 runs: 3 succeeded · median 3.1 s" in said
    assert "active" in said
    assert "Run now : report" in said


def test_the_time_is_the_schedules_and_the_viewers_where_they_differ(
    visitor: Visitor, keep: Callable[..., Ledger]
) -> None:
    keep("there", rule={"cron": "0 9 * * *", "tz": "Asia/Tokyo"})
    keep("here", rule={"cron": "0 9 * * *", "tz": "Europe/Berlin"})
    visitor.cookies.set("beat_tz", "Europe%2FBerlin")
    answer = visitor.get("/schedules")
    assert re.search(r"\d Tokyo (\w{3} )?\d\d:\d\d(:\d\d)? yours", row(answer, "there"))
    assert "yours" not in row(answer, "here")


def test_a_run_that_goes_on_says_so_and_since_when(
    visitor: Visitor, keep: Callable[..., Ledger], redis: Redis, store: Store
) -> None:
    book = keep("slow", 1)
    tick = clock.at(second(store) - 40)
    book.fired(tick, tick + HOUR).keep(redis)
    assert re.search(r"open (39|4\d) s ago", row(visitor.get("/schedules"), "slow"))
    job = f"rq:job:{book.job(tick)}"
    redis.hset(job, mapping={"status": "started", "started_at": clock.text(tick + timedelta(seconds=5))})
    said = row(visitor.get("/schedules"), "slow")
    assert re.search(r"running began 3\d s ago", said)
    assert "2 runs: 1 succeeded, 1 not ended" in said
    redis.delete(job)


def test_every_bar_leads_to_its_run_and_says_what_became_of_it(visitor: Visitor, keep: Callable[..., Ledger]) -> None:
    book = keep("report", 40, outcome="failed", consecutive_failures="40", last_error="ValueError: no")
    answer = visitor.get("/schedules")
    runs = links(answer, "/schedules/report/runs/")
    jobs = [each.job for each in book.entries if isinstance(each, Enqueued)]
    assert runs[0] == f"/schedules/report/runs/{jobs[-1]}"  # the last run, by its mark
    assert set(runs) == {f"/schedules/report/runs/{each}" for each in jobs[-30:]}
    assert re.search(r"<title>\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?: failed in 3.1 s</title>", answer.text)
    assert "30 runs: 30 failed" in row(answer, "report")
    assert "40 failed in a row: ValueError: no" in row(answer, "report")


def test_states_are_told_with_their_reasons(
    visitor: Visitor, keep: Callable[..., Ledger], client: Client, redis: Redis
) -> None:
    keep("paused")
    keep("for_good")
    keep("moved", override="{}", overridden_by="ann@ops")
    keep("held", unannounced_at=clock.text(client.now()))
    for each in ("retired", "broken", "finished", "disabled"):
        keep(each)
        redis.hset(f"beat:schedule:{each}", mapping={"state": each, "last_error": "it is odd"})
    until = client.now().replace(microsecond=0) + 3 * HOUR
    client.pause("paused", until=until, reason="the provider is away")
    client.pause("for_good")
    answer = visitor.get("/schedules")
    shown = f"{until:%a} {until.time().isoformat('seconds' if until.second else 'minutes')} UTC"
    assert re.search(r"resumes in (2h59m|3h) .* paused by tester: the provider", row(answer, "paused"))
    assert f"paused until {shown} " in row(answer, "paused")
    assert "none while it is paused" in row(answer, "for_good")
    assert "override" in row(answer, "moved")
    assert "rule by ann@ops" in row(answer, "moved")
    assert "none while it is held" in row(answer, "held")
    assert "active, held no running scheduler declares it" in row(answer, "held")
    assert "broken it is odd" in row(answer, "broken")
    for each in ("retired", "finished", "disabled"):
        assert re.search(rf"none .*{each} Run now", row(answer, each))


def test_what_is_late_says_for_how_long(visitor: Visitor, keep: Callable[..., Ledger], client: Client) -> None:
    ago = clock.text(client.now() - timedelta(minutes=5))
    keep("late", next_run=ago, due_at=ago)
    assert re.search(r"due for 5m(\ds)?", row(visitor.get("/schedules"), "late"))


def test_one_that_follows_another_leads_there(visitor: Visitor, keep: Callable[..., Ledger], redis: Redis) -> None:
    keep("first")
    keep("second", rule={"follows": "first", "tz": "UTC"})
    redis.hdel("beat:schedule:second", "next_run", "due_at")
    answer = visitor.get("/schedules")
    assert "after first" in row(answer, "second")
    assert "/schedules/first" in links(answer)


def test_whatever_was_written_is_shown_as_text(visitor: Visitor, keep: Callable[..., Ledger], redis: Redis) -> None:
    definition = '{"cron": %s, "description": %s, "func": %s, "follows": %s}' % ((f'"{HOSTILE[1:]}"',) * 4)
    keep("odd", 1, state="paused", pause_reason=HOSTILE, paused_by=HOSTILE, last_error=HOSTILE, definition=definition)
    keep("wrong", 1, state="broken", last_error=HOSTILE, tz=HOSTILE)
    redis.hset("beat:schedule:wrong", "rule", HOSTILE)
    keep("jobs", state="active")
    redis.lpush("beat:runs:jobs", f'{{"type": "succeeded", "job": "a/../<b>\\"%00 x", {ENDED}}}')
    for path in ("/schedules", "/schedules?match=<script>", "/schedules?queue=<script>alert(1)</script>&sort=<b>"):
        answer = visitor.get(path)
        assert not re.search(r"<(script|b|i)>", answer.text), path
    answer = visitor.get("/schedules")
    assert HOSTILE[1:] in row(answer, "odd")
    assert "/schedules/jobs/runs/a%2F..%2F%3Cb%3E%22%2500%20x" in links(answer)


def test_what_is_no_hash_is_a_row_that_says_so(visitor: Visitor, keep: Callable[..., Ledger], redis: Redis) -> None:
    keep("fine")
    redis.sadd("beat:schedules", "no_hash")
    redis.set("beat:schedule:no_hash", "x")
    assert "beat:schedule:no_hash is no hash" in row(visitor.get("/schedules"), "no_hash")
    redis.delete("beat:schedule:no_hash")


def test_who_may_only_look_has_no_button(keep: Callable[..., Ledger], server: PrivateRedis) -> None:
    keep("report", 1)
    answer = Visitor.of(server.url, access=Access(read_only=True)).get("/schedules")
    assert shown(answer) == ["report"]
    assert "Run now" not in text(answer)
    assert 'method="post"' not in answer.text


def test_run_now_is_a_form_and_pressed_twice_it_is_one_run(visitor: Visitor, client: Client, store: Store) -> None:
    store.announce({}, ["app.tasks.report"], digest="d", ttl=60_000)
    client.add("report", func="app.tasks.report", every="1h")
    answer = visitor.get("/schedules?match=rep&sort=next")
    assert shown(answer) == ["report"]
    assert 'formaction="/schedules/report/run"' in answer.text
    form = re.search(r'(?s)<form method="post" id="run".*?</form>', answer.text)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0] if form else ""))
    assert [visitor.ask("POST", "/schedules/report/run", data=fields).status_code for _ in range(2)] == [303, 303]
    assert client.get("report").run_count == 1
    assert "1 run: 1 not ended" in row(visitor.get("/schedules"), "report")


# --- what is looked for ----------------------------------------------------------------------------------------------


def test_every_filter_and_order_is_an_address(visitor: Visitor, keep: Callable[..., Ledger], client: Client) -> None:
    keep("mail_all", queue="mail", func="app.mail.send", app="shop")
    keep("report_de", 2, outcome="failed", consecutive_failures="2", last_enqueued="2026-11-16T09:00:00Z")
    keep("report_fr", 1, last_enqueued="2026-11-17T09:00:00Z", queue="low", override="{}", func="app.tasks.report")
    client.pause("mail_all")
    for query, ids in {
        "": ["mail_all", "report_de", "report_fr"],
        "match=port": ["report_de", "report_fr"],
        "match=report_*": ["report_de", "report_fr"],
        "match=*_fr": ["report_fr"],
        "match=%20mail%20": ["mail_all"],
        "state=paused": ["mail_all"],
        "state=active&match=f": ["report_fr"],
        "failing=1": ["report_de"],
        "failing=on&overridden=": ["report_de"],
        "overridden=true": ["report_fr"],
        "queue=l*": ["report_fr"],
        "app=shop": ["mail_all"],
        "func=app.*": ["mail_all", "report_fr"],
        "sort=next": ["report_de", "report_fr", "mail_all"],
        "sort=last": ["report_fr", "report_de", "mail_all"],
        "sort=failures": ["report_de", "mail_all", "report_fr"],
        "match=&state=&queue=&sort=id&page=7&utm=x": ["mail_all", "report_de", "report_fr"],
    }.items():
        answer = visitor.get(f"/schedules?{query}")
        assert (answer.status_code, shown(answer)) == (200, ids), query


def test_the_form_holds_what_is_looked_for(visitor: Visitor, store: Store) -> None:
    many(store, 3)
    answer = visitor.get("/schedules?match=s0%26&state=paused&sort=last&failing=1&queue=%22x").text
    for each in (
        'name="match" type="search" value="s0&amp;"', "<option selected>paused", '<option value="last" selected>',
        'name="failing" value="1" checked', 'name="queue" value="&#34;x"', '<details id="more" class="more" open>',
    ):  # fmt: skip
        assert each in answer, each


def test_tabs_count_and_show_just_these(visitor: Visitor, keep: Callable[..., Ledger], client: Client) -> None:
    for each in ("a", "b", "c"):
        keep(each, consecutive_failures="1" if each == "b" else "0")
    client.pause("c")
    answer = visitor.get("/schedules?match=zzz&sort=next")
    assert "All 3 Failing 1 Active 2 Paused 1" in text(answer)
    counted = {"/schedules?sort=next": 3, "/schedules?failing=1&sort=next": 1, "/schedules?state=active&sort=next": 2}
    for path, number in counted.items():
        assert path in links(answer)
        assert len(shown(visitor.get(path))) == number
    current = re.findall(r'href="([^"]+)" aria-current="true"', visitor.get("/schedules?state=paused").text)
    assert current == ["/schedules?state=paused"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "state=pausd",
            "state 'pausd' must be one of active, paused, disabled, finished, retired, broken. Did you mean",
        ),
        ("sort=name", "sort 'name' must be one of id, next, last, failures"),
        ("match=a%20b", "match 'a b' must be an id, with * ? or [a-z] for what may differ"),
        ("match=%0a", "All 2 schedules"),
        ("match=a%00b", r"match 'a\x00b' must be one line"),
        (f"queue={'x' * 500}", "must be one line of at most 200 characters"),
        ("failing=perhaps", "failing 'perhaps' must be 1, or be left out"),
        ("sort=next&after=soon:s0001", "after 'soon:s0001' must be an id"),
        ("sort=next&after=nobody", "there is no schedule 'nobody'"),
    ],
    ids=lambda value: value[:20] if "=" in value else "",
)
def test_what_cannot_be_looked_for_is_told_on_the_page(visitor: Visitor, store: Store, query: str, words: str) -> None:
    many(store, 2)
    answer = visitor.get(f"/schedules?{query}")
    assert words in html.unescape(text(answer))
    assert answer.status_code == (200 if words.startswith("All") else 400)
    assert 'id="finder"' in answer.text
    assert visitor.get(f"/schedules?{query}", headers={"hx-request": "true"}).status_code == 200


def test_where_nothing_matches_it_says_what_would_help(visitor: Visitor, keep: Callable[..., Ledger]) -> None:
    keep("nightly_backup")
    keep("report")
    answer = visitor.get("/schedules?match=nigthly_bakup&sort=next")
    assert "Nothing matches. Did you mean nightly_backup ?" in text(answer)
    assert "/schedules?match=nightly_backup&sort=next" in links(answer)
    answer = visitor.get("/schedules?match=report&state=paused")
    assert "take one of them away above" in text(answer)
    assert {"/schedules?match=report", "/schedules?state=paused"} <= set(links(answer))
    assert "Did you mean" not in text(visitor.get("/schedules?match=xyz"))


def test_where_there_is_no_schedule_it_shows_the_lines_to_write(visitor: Visitor) -> None:
    answer = visitor.get("/schedules")
    assert answer.status_code == 200
    assert "There is no schedule yet." in text(answer)
    assert '@periodic(every="10s")' in html.unescape(answer.text)
    assert "beat run tasks.py" in text(answer)


# --- pages -----------------------------------------------------------------------------------------------------------


def walked(visitor: Visitor, path: str, meanwhile: Callable[[int], None] = lambda _: None) -> list[list[str]]:
    """The ids of each page, from link to link."""
    found = []
    for turn in range(20):
        answer = visitor.get(path)
        assert answer.status_code == 200, text(answer)
        found.append(shown(answer))
        following = re.search(r'rel="next" href="([^"]+)"', answer.text)
        if not following:
            return found
        path = html.unescape(following[1])
        meanwhile(turn)
    raise AssertionError("there is no end of pages")


@pytest.mark.parametrize("sort", ["id", "next", "last", "failures"])
def test_pages_have_every_schedule_once(visitor: Visitor, store: Store, sort: str) -> None:
    ids = many(store, 120)
    found = walked(visitor, f"/schedules?sort={sort}")
    assert [len(each) for each in found] == [50, 50, 20]
    assert sorted(itertools.chain.from_iterable(found)) == ids


def test_pages_have_every_schedule_once_while_others_come_and_go(visitor: Visitor, store: Store) -> None:
    stay = many(store, 120)
    goes = [f"{each}_goes" for each in stay[::6]]
    store.register([registration(each, second(store) + 3600) for each in goes], beat="web-1")

    def meanwhile(turn: int) -> None:
        gone = goes[turn::3]
        store.client.delete(*map(store.keys.schedule, gone))
        store.repair(gone)
        store.register([registration(f"s00{turn}5_came", second(store) + 3600)], beat="web-1")

    found = list(itertools.chain.from_iterable(walked(visitor, "/schedules?match=s", meanwhile)))
    assert [each for each in found if each in stay] == stay
    assert len(set(found)) == len(found)


def test_the_first_page_is_full_when_there_are_just_so_many(visitor: Visitor, store: Store) -> None:
    many(store, 50)
    answer = visitor.get("/schedules")
    assert len(shown(answer)) == 50
    assert "Next page" not in text(answer)
    answer = visitor.get("/schedules?after=s0049")
    assert "The list ends before that." in text(answer)
    assert "/schedules" in links(answer)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "The first 50 of 60 schedules."),
        ("after=s0049", "10 of 60 schedules."),
        ("match=s0&sort=next", "The first 50 schedules that match, by next tick."),
        ("match=s000&state=active", "10 schedules that match."),
        ("match=s0007", "1 schedule that matches."),
        ("match=s0007&after=s0008", "There are no more schedules after that place."),
        ("queue=nobody", "No schedule is like that."),
    ],
    ids=["first", "second", "sorted", "several", "one", "after", "none"],
)
def test_the_list_says_how_much_of_all_it_shows(visitor: Visitor, store: Store, query: str, words: str) -> None:
    many(store, 60)
    assert f'<p id="summary" aria-live="polite">{words}</p>' in visitor.get(f"/schedules?{query}").text


def test_the_second_page_leads_to_the_first_with_all_filters(visitor: Visitor, store: Store) -> None:
    many(store, 60)
    answer = visitor.get("/schedules?match=s00&after=s0049")
    assert len(shown(answer)) == 10
    assert "/schedules?match=s00" in links(answer)
    assert "This is the last page." in text(answer)


# --- the frame -------------------------------------------------------------------------------------------------------


def test_every_link_of_the_list_answers(
    visitor: Visitor, keep: Callable[..., Ledger], store: Store, client: Client
) -> None:
    keep("s_report", 2)
    many(store, 55)
    client.pause("s0001", reason="x")
    found = dict.fromkeys(links(visitor.get("/schedules?match=s&sort=next")))
    found |= dict.fromkeys(links(visitor.get("/schedules?match=s_&state=paused")))
    found |= dict.fromkeys(links(visitor.get("/schedules?match=s_rep")))
    assert sum(each.startswith("/schedules/s_report/runs/") for each in found) == 2
    schedules = [each for each in found if re.fullmatch(r"/schedules/s\d+", each)]
    for each in found.keys() - set(schedules[3:]):
        assert visitor.get(each).status_code == 200, each


def test_under_a_prefix_every_address_has_it(store: Store, server: PrivateRedis) -> None:
    many(store, 60)
    visitor = Visitor(Starlette(routes=[Mount("/ops/beat", create_app(server.url))]))
    answer = visitor.get("/ops/beat/schedules?match=s")
    assert len(shown(answer)) == 50
    assert all(each.startswith("/ops/beat/") for each in links(answer))
    assert 'hx-get="/ops/beat/schedules?match=s"' in answer.text


def test_who_types_on_has_one_step_back(visitor: Visitor, store: Store) -> None:
    many(store, 3)

    def typed(now: str, before: str) -> dict[str, str]:
        headers = {"hx-request": "true", "hx-trigger": "finder", "hx-current-url": f"http://x/schedules{before}"}
        answer = visitor.get(f"/schedules?match={now}&state=&queue=", headers=headers)
        return {name: value for name, value in answer.headers.items() if name.startswith("hx-")}

    assert typed("s", "") == {"hx-push-url": "/schedules?match=s"}
    assert typed("s0", "?match=s") == {"hx-replace-url": "/schedules?match=s0"}
    assert typed("s0", "?match=s&state=paused") == {"hx-push-url": "/schedules?match=s0"}
    assert typed("", "?match=s") == {"hx-push-url": "/schedules"}
    assert "hx-push-url" not in visitor.get("/schedules", headers={"hx-request": "true", "hx-trigger": "live"}).headers
