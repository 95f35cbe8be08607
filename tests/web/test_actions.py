"""What one can do to a schedule on the page: run it, pause it, resume it, give it another rule."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from beat.storage.store import Store
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.job_functions import Owner
from tests.web.making import daily, deploy, fields
from tests.web.visitor import text

if TYPE_CHECKING:
    import httpx
    from redis import Redis

    from beat import Client
    from tests.web.visitor import Visitor

OF = "/schedules/report"


def sent(visitor: Visitor, path: str, **typed: str) -> httpx.Response:
    """The form of that page, as it comes, with what was typed."""
    return visitor.send(path, **{**fields(visitor.get(path), path), **typed})


def landed(visitor: Visitor, answer: httpx.Response) -> str:
    """What the page says to which one is sent after a change."""
    assert answer.status_code == 303, text(answer)
    return text(visitor.get(answer.headers["location"]))


def queued(redis: Redis) -> list[Any]:
    found: Any = redis.lrange("rq:queue:default", 0, -1)
    return list(found)


# Run now


def test_run_now_enqueues_a_run_and_goes_where_one_can_watch_it(visitor: Visitor, store: Store, redis: Redis) -> None:
    deploy(store, daily())
    answer = visitor.send(f"{OF}/run", **fields(visitor.get(OF), "/run"))
    [job] = queued(redis)
    assert answer.headers["location"] == f"{OF}/runs/{job}"
    watched = visitor.get(answer.headers["location"])
    assert 'beat_done=""' in str(watched.headers.get_list("set-cookie")), "it is said once"
    said = text(watched)
    assert "Asked for. This page follows the run by itself." in said
    assert "report queued" in said
    assert "Asked for by web" in said


def test_who_presses_twice_has_one_run(visitor: Visitor, store: Store, redis: Redis) -> None:
    deploy(store, daily())
    form = fields(visitor.get(OF), "/run")
    first, second = visitor.send(f"{OF}/run", **form), visitor.send(f"{OF}/run", **form)
    assert first.headers["location"] == second.headers["location"]
    assert len(queued(redis)) == 1


def test_who_presses_twice_skips_one_tick(visitor: Visitor, store: Store, redis: Redis, client: Client) -> None:
    deploy(store, daily())
    form = fields(visitor.get(f"{OF}/run"), "/run")
    answers = [visitor.send(f"{OF}/run", **form, skip_next="on") for _ in range(2)]
    assert [each.status_code for each in answers] == [303, 303]
    assert len(queued(redis)) == 1
    assert client.get("report").skip_count == 1


def test_only_what_was_changed_is_another_argument(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily(args=(1, "x"), kwargs={"copies": 2, "day": "5", "api_token": "hunter2", "to": {"a": [1]}}))
    page = visitor.get(f"{OF}/run")
    assert "hunter2" not in page.text
    answer = sent(visitor, f"{OF}/run", **{
        "arg:copies": "3", "arg:day": '"5"', "arg:api_token": "", "arg:to": '{"a": [1]}', "args": '[1, "x"]',
        "more": "kind=daily\n\n n=5 ",
    })  # fmt: skip
    assert answer.status_code == 303, text(answer)
    found = client.arguments("report", client.get("report").last_job)
    assert found
    assert list(found.args) == [1, "x"]
    own = {"copies": 3, "day": "5", "api_token": "hunter2", "to": {"a": [1]}}
    assert found.kwargs == own | {"kind": "daily", "n": 5}


def test_a_secret_and_the_arguments_without_a_name_can_be_written_over(
    visitor: Visitor, store: Store, client: Client
) -> None:
    deploy(store, daily(args=("redis://ann:hunter2@host",), kwargs={"api_token": "hunter2"}))
    assert "hunter2" not in visitor.get(f"{OF}/run").text
    sent(visitor, f"{OF}/run", **{"arg:api_token": "other", "args": "[7]"})
    found = client.arguments("report", client.get("report").last_job)
    assert found == ((7,), {"api_token": "other"}, "")


def test_a_url_that_was_typed_stays_as_it_was_typed(visitor: Visitor, store: Store) -> None:
    deploy(store, daily(kwargs={"to": "x"}))
    given = {"arg:to": "redis://ann:typed1@host", "args": '"redis://ann:typed2@host"'}
    answer = sent(visitor, f"{OF}/run", **given, more="no sign\nother=redis://ann:typed3@host")
    assert answer.status_code == 400
    for n in (1, 2, 3):
        assert f"redis://ann:typed{n}@host" in answer.text, "a mask in a field would become the argument"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"more": "no sign"}, "argument 'no sign' has no value"),
        ({"args": "5"}, "are no list of JSON: write [1, 2]"),
        ({"request": "../x"}, "must be 8 to 40 ASCII letters and digits"),
        ({"version": "1e5"}, "is no number: load the page again"),
    ],
)
def test_what_is_wrong_is_told_at_the_form_and_what_was_typed_is_kept(
    visitor: Visitor, store: Store, redis: Redis, typed: dict[str, str], problem: str
) -> None:
    deploy(store, daily(kwargs={"copies": 2}))
    answer = sent(visitor, f"{OF}/run", **{"arg:copies": "77", "force": "on", **typed})
    assert answer.status_code == 400
    assert problem in answer.text.replace("&#39;", "'")
    assert 'value="77"' in answer.text
    assert re.search(r'name="force"\s+checked', answer.text)
    assert typed.get("more", "") in answer.text
    assert queued(redis) == []


def test_arguments_of_classes_are_not_read_and_it_runs_as_it_is(visitor: Visitor, store: Store, redis: Redis) -> None:
    deploy(store, daily(kwargs={"owner": Owner("ann")}))
    assert "they are of classes that only the application can read" in text(visitor.get(f"{OF}/run"))
    refused = sent(visitor, f"{OF}/run", more="copies=2")
    assert "give all of them" in text(refused)
    assert sent(visitor, f"{OF}/run").status_code == 303
    assert len(queued(redis)) == 1


def test_a_run_may_take_the_place_of_the_next_tick(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    before = client.get("report").next_run
    assert "instead of the next tick, which passes" in landed(visitor, sent(visitor, f"{OF}/run", skip_next="on"))
    after = client.get("report").next_run
    assert before
    assert after
    assert after > before


def test_a_run_that_may_not_overlap_is_refused_unless_it_is_forced(
    visitor: Visitor, store: Store, redis: Redis
) -> None:
    deploy(store, daily(overlap="skip"))
    assert sent(visitor, f"{OF}/run").status_code == 303
    refused = sent(visitor, f"{OF}/run")
    assert refused.status_code == 409
    assert "has not ended: wait for that run to end, or run it anyway" in text(refused)
    assert sent(visitor, f"{OF}/run", force="on").status_code == 303
    assert len(queued(redis)) == 2


# Pause and resume


def test_a_pause_has_an_end_and_a_reason(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    said = landed(visitor, sent(visitor, f"{OF}/pause", until="2h", reason="the disk is full"))
    assert "Paused: its ticks are held" in said
    assert "(the disk is full)" in said
    pause = client.get("report").pause
    assert pause
    assert pause.by == "web"
    assert pause.until
    assert timedelta(minutes=119) < pause.until - client.now() <= timedelta(hours=2, seconds=1)
    again = visitor.get(f"{OF}/pause").text
    assert 'value="the disk is full"' in again
    assert "Change the pause" in again


def test_the_end_may_be_picked_in_the_zone_of_the_schedule(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    assert sent(visitor, f"{OF}/pause", picked="2030-07-01T09:00").status_code == 303
    pause = client.get("report").pause
    assert pause
    assert pause.until
    assert pause.until.isoformat() == "2030-07-01T13:00:00+00:00"


@pytest.mark.parametrize("until", ["yesterday", "2020-01-01", "<script>", "x" * 300, "2h ago"])
def test_an_end_that_is_none_is_told_beside_its_field(visitor: Visitor, store: Store, until: str) -> None:
    deploy(store, daily())
    answer = sent(visitor, f"{OF}/pause", until=until, reason="kept")
    assert answer.status_code == 400
    assert 'aria-describedby="error-until"' in answer.text
    assert 'id="error-until"' in answer.text
    assert 'value="kept"' in answer.text
    assert "<script>" not in re.sub(r"<script src=[^>]*></script>", "", answer.text)


def test_of_two_ends_neither_is_taken(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    answer = sent(visitor, f"{OF}/pause", until="2h", picked="2030-07-01T09:00")
    assert "two ends were given" in text(answer)
    assert client.get("report").state == "active"


def test_a_reason_of_two_lines_is_refused_beside_its_field(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    answer = sent(visitor, f"{OF}/pause", reason="a\nb")
    assert 'id="error-reason"' in answer.text


@pytest.mark.parametrize(("catch_up", "words"), [("no", "has passed"), ("yes", "left to its misfire policy")])
def test_a_pause_is_ended(visitor: Visitor, store: Store, client: Client, catch_up: str, words: str) -> None:
    deploy(store, daily())
    client.pause("report")
    assert "No tick is held by now." in text(visitor.get(f"{OF}/resume"))
    assert words in landed(visitor, sent(visitor, f"{OF}/resume", catch_up=catch_up))
    assert client.get("report").state == "active"


def test_what_is_not_paused_cannot_be_resumed(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    answer = sent(visitor, f"{OF}/resume")
    assert answer.status_code == 409
    assert "report is active, not paused: nothing was changed" in text(answer)


# Another rule


def test_a_rule_is_built_field_by_field_with_its_ticks_before_ones_eyes(
    visitor: Visitor, store: Store, client: Client
) -> None:
    deploy(store, daily())
    page = visitor.get(f"{OF}/reschedule")
    values = dict(re.findall(r'<input id="f-\w+" name="(\w+)" value="([^"]*)"', page.text))
    assert values == {
        "minute": "0", "hour": "9", "day": "*", "month": "*", "weekday": "*", "second": "", "every": "",
        "tz": "America/New_York",
    }  # fmt: skip
    assert "This is the rule that it has." in text(page)
    built = visitor.get(f"{OF}/reschedule?minute=30&hour=10&weekday=mon-fri&tz=Europe/Paris")
    assert "at 10:30, Monday to Friday, Europe/Paris time" in text(built)
    assert "The next 5 ticks would be, by the clocks of Europe/Paris" in text(built)
    form = fields(built, 'value="rule"')
    assert "It has another rule now." in landed(visitor, visitor.send(f"{OF}/reschedule", **form))
    found = client.get("report")
    assert found.override
    assert found.override.by == "web"
    assert dict(found.override.rule) == {"cron": "30 10 * * mon-fri", "tz": "Europe/Paris"}


def test_seconds_and_intervals_are_rules_too(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    for query, rule in (
        ("second=15&minute=0", {"cron": "15 0 9 * * *", "seconds": True, "tz": "America/New_York"}),
        ("kind=every&every=90m", {"every": "1h30m"}),
    ):
        form = fields(visitor.get(f"{OF}/reschedule?{query}"), 'value="rule"')
        assert visitor.send(f"{OF}/reschedule", **form).status_code == 303
        found = client.get("report").override
        assert found
        assert dict(found.rule) == rule
    assert re.search(r'value="every" checked', visitor.get(f"{OF}/reschedule").text)


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("hour=25", "hour", "hour 25 is out of range 0-23"),
        ("minute=60", "minute", "minute 60 is out of range"),
        ("weekday=foo", "weekday", "foo"),
        ("second=99", "second", "99"),
        ("tz=Mars", "tz", "Mars"),
        ("kind=every&every=0s", "every", "every"),
        ("kind=every&every=", "every", "every"),
        ("minute=%D9%A1", "minute", "\u0661"),
        ("day=30&month=2", "", "never"),
        (f"minute={'*' * 5000}", "", "cron"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_beside_its_field(
    visitor: Visitor, store: Store, query: str, field: str, words: str
) -> None:
    deploy(store, daily())
    whole = visitor.get(f"{OF}/reschedule?{query}")
    piece = visitor.get(f"{OF}/preview?{query}")
    for answer in (whole, piece):
        assert answer.status_code == 200
        assert words in text(answer)
        assert "Use this rule" not in answer.text
        if field:
            assert re.search(rf'id="at-{field}"[^>]*>↑ here', answer.text)
    assert "<html" not in piece.text, "only a piece of the page"


def test_the_preview_points_at_the_place(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    assert "    0 25 * * *\n      ^^\n" in visitor.get(f"{OF}/preview?hour=25").text


def test_presets_are_links_that_work_without_javascript(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    links = re.findall(r'href="([^"]*reschedule\?[^"]*)"', visitor.get(f"{OF}/reschedule").text)
    assert len(links) == 6
    for link in links:
        answer = visitor.get(link.replace("&amp;", "&"))
        assert "Use this rule" in answer.text or "This is the rule that it has" in answer.text


def test_the_next_tick_is_moved_once(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily(timing=Every("1d")))
    form = fields(visitor.get(f"{OF}/reschedule"), 'value="at"')
    said = landed(visitor, visitor.send(f"{OF}/reschedule", **form, at="1s"))
    assert "The next tick is moved, once" in said
    assert "moved to" in said
    assert client.get("report").deferred_by == "web"
    wrong = visitor.send(f"{OF}/reschedule", **{**form, "version": ""}, at="2020-01-01")
    assert wrong.status_code == 400
    assert 'id="error-at"' in wrong.text
    assert 'value="2020-01-01"' in wrong.text


def test_the_way_back_to_the_code_says_where_it_leads(visitor: Visitor, store: Store, client: Client) -> None:
    deploy(store, daily())
    assert "Back to the code" not in visitor.get(f"{OF}/reschedule").text
    client.reschedule("report", "30 10 * * *")
    page = visitor.get(f"{OF}/reschedule")
    assert "The code says: at 09:00, every day, America/New_York time" in text(page)
    assert "Back to the rule of the code." in landed(
        visitor, visitor.send(f"{OF}/reschedule", **fields(page, 'value="reset"'))
    )
    assert client.get("report").override is None


# Somebody else was faster


@pytest.mark.parametrize("path", ["run", "pause", "resume"])
def test_who_looks_at_an_old_page_is_told_so(visitor: Visitor, store: Store, client: Client, path: str) -> None:
    deploy(store, daily())
    client.pause("report") if path == "resume" else None
    form = fields(visitor.get(f"{OF}/{path}"), f"/{path}")
    client.reschedule("report", "30 10 * * *")
    answer = visitor.send(f"{OF}/{path}", **form, reason="kept", more="kept=1")
    assert answer.status_code == 409
    assert "This schedule has changed since you opened this page" in text(answer)
    assert "kept" in answer.text or path == "resume"
    again = visitor.send(f"{OF}/{path}", **fields(answer, f"/{path}"))
    assert again.status_code == 303, "what is sent again from the page that came back is done"


def test_a_rule_that_was_built_on_an_old_page_is_not_laid_over_a_new_one(
    visitor: Visitor, store: Store, client: Client
) -> None:
    deploy(store, daily())
    built = fields(visitor.get(f"{OF}/reschedule?minute=30"), 'value="rule"')
    client.reschedule("report", "45 11 * * *")
    answer = visitor.send(f"{OF}/reschedule", **built)
    assert answer.status_code == 409
    assert "This schedule has changed since you opened this page" in text(answer)
    assert client.get("report").definition["cron"] == "45 11 * * *"
    assert 'name="minute" value="30"' in answer.text


# Redis goes in the middle


def lost(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on Redis does what it is told by that, and its answer never arrives."""
    whole = getattr(Store, name)

    def silent(*args: Any, **named: Any) -> Any:
        whole(*args, **named)
        raise RedisConnectionError("Connection closed by server.")

    monkeypatch.setattr(Store, name, silent)


def test_what_may_have_been_run_is_sent_again_and_runs_once(
    visitor: Visitor, store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(store, daily())
    form = fields(visitor.get(OF), "/run")
    with monkeypatch.context() as away:
        lost(away, "fire")
        answer = visitor.send(f"{OF}/run", **form)
    assert answer.status_code == 503
    assert "What you sent may have been done, or not" in text(answer)
    again = visitor.send(f"{OF}/run", **fields(answer, 'id="again"'))
    [job] = queued(redis)
    assert again.headers["location"] == f"{OF}/runs/{job}"


def test_what_may_have_been_changed_is_sent_again_and_changed_once(
    visitor: Visitor, store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(store, daily())
    form = fields(visitor.get(f"{OF}/reschedule?minute=30"), 'value="rule"')
    with monkeypatch.context() as away:
        lost(away, "register")
        answer = visitor.send(f"{OF}/reschedule", **form)
    assert answer.status_code == 503
    assert fields(answer, 'id="again"')["minute"] == "30", "what was typed is kept"
    before = client.get("report").version
    again = visitor.send(f"{OF}/reschedule", **fields(answer, 'id="again"'))
    assert again.status_code == 409, "it had been done"
    assert "by another operator or by what you sent before" in text(again)
    assert client.get("report").version == before


@pytest.mark.parametrize("path", ["/schedules", OF, f"{OF}/run"])
def test_wherever_run_now_is_pressed_twice_is_once(visitor: Visitor, store: Store, redis: Redis, path: str) -> None:
    deploy(store, daily())
    form = fields(visitor.get(path), "request")
    for _ in range(2):
        assert visitor.send(f"{OF}/run", **form).status_code == 303
    assert len(queued(redis)) == 1
    assert fields(visitor.get(path), "request")["request"] != form["request"], "another page is another wish"


# Who may not


def test_a_form_without_the_pages_word_is_refused(visitor: Visitor, store: Store, redis: Redis) -> None:
    deploy(store, daily())
    for path in ("run", "pause", "resume", "reschedule"):
        answer = visitor.ask("POST", f"{OF}/{path}", data={"csrf": "guessed"})
        assert answer.status_code == 409
        assert visitor.get(f"{OF}/{path}").status_code == 200
    assert queued(redis) == []


def test_a_notice_is_one_of_ours_or_nothing(visitor: Visitor, store: Store) -> None:
    deploy(store, daily())
    for said in ("<b>gotcha</b>", "gotcha", "paused%3Cb%3E"):
        visitor.cookies.set("beat_done", said)
        answer = visitor.get(OF)
        assert "gotcha" not in answer.text
        assert 'role="status"' not in answer.text


@pytest.mark.parametrize("what", ["", "other", "rule "])
def test_a_form_that_is_none_of_the_page_is_refused(visitor: Visitor, store: Store, what: str) -> None:
    deploy(store, daily(timing=Cron("0 9 * * *")))
    assert visitor.send(f"{OF}/reschedule", what=what).status_code == 400
