"""What services are sent: URLs and bodies as healthchecks.io and Sentry Crons document them, and how often."""

from __future__ import annotations

import json
import threading
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from beat.config import sentry_dsn
from beat.engine.events import Event
from beat.events import Notice
from beat.notify import delivery
from beat.notify.delivery import Lane, Letter
from beat.notify.http import Failure, send_ping
from beat.notify.monitors import healthchecks, sentry
from beat.notify.monitors.pings import Ping, Request, ended
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.support.facts import wait_until
from tests.support.stand_in import Answer
from tests.support.watching_service import Watch

JOB = "beat_report_1794819600"
URL = "https://hc-ping.com/5f3c/"
DSN = sentry_dsn.Dsn("key", "o1.ingest.sentry.io", "https://o1.ingest.sentry.io/api/42/envelope/")
NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)


def schedule(**given: Any) -> Schedule:
    known = {"id": "report", "func": "app.tasks.report", "timing": Every("1h"), "monitor": "sentry"}
    return Schedule(**{**known, **given})


def ping(kind: str, **given: Any) -> Ping:
    return Ping(kind, schedule(), JOB, ("1-0",), **given)


def notice(type_: str, **entry: Any) -> Notice:
    return Notice("1-0", type_, "report", NINE, JOB, "beat-1", NINE, entry)


def test_a_run_has_the_same_id_whoever_asks() -> None:
    assert ping("start").run_id == ping("ok").run_id
    assert str(ping("ok").run_id) == "16ce7572-c5e3-5def-abac-5c8f35061eb7"
    assert ping("ok")._replace(job_id="other").run_id != ping("ok").run_id


# --- what is said of an end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "entry", "kind", "seconds", "words"),
    [
        ("succeeded", {"duration": 3.1}, "ok", 3.1, "succeeded"),
        ("failed", {"duration": 3, "error": {"type": "KeyError", "message": "no"}}, "fail", 3, "failed: KeyError: no"),
        ("failed", {"reported": True, "message": "3 of 7 rows"}, "fail", None, "failed: 3 of 7 rows"),
        ("lost", {"reason": "its worker died"}, "fail", None, "lost: its worker died"),
        ("stopped", {"reason": "somebody stopped it"}, "fail", None, "stopped: somebody stopped it"),
        ("failed", {"duration": "long", "error": "garbled"}, "fail", None, "failed: no reason is known"),
        ("succeeded", {"duration": -1}, "ok", None, "succeeded"),
        ("succeeded", {"duration": True}, "ok", None, "succeeded"),
    ],
)
def test_an_end_is_told_as_the_ledger_has_it(
    type_: str, entry: dict[str, Any], kind: str, seconds: float | None, words: str
) -> None:
    found = ended(notice(type_, **entry), schedule())
    assert (found.kind, found.seconds, found.words, found.settles) == (kind, seconds, words, ("1-0",))


def test_no_traceback_is_sent() -> None:
    error = {"type": "KeyError", "message": "no", "traceback": "File canary"}
    assert "canary" not in ended(notice("failed", error=error), schedule()).words


# --- healthchecks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path"), [("start", "/5f3c/start"), ("ok", "/5f3c"), ("fail", "/5f3c/fail")], ids=["start", "ok", "fail"]
)
def test_a_ping_url_has_the_word_and_the_run(kind: str, path: str) -> None:
    made = healthchecks.request(ping(kind), URL)
    assert made.url == f"https://hc-ping.com{path}?rid={ping(kind).run_id}"
    assert made.service == "hc-ping.com"


def test_a_query_of_its_own_stays() -> None:
    made = healthchecks.request(ping("ok"), "http://x:8000/ping/a?create=1")
    assert made.url == f"http://x:8000/ping/a?create=1&rid={ping('ok').run_id}"
    assert made.service == "x:8000"


def test_the_body_is_for_people() -> None:
    made = healthchecks.request(ping("fail", seconds=3.1, words="failed: KeyError: größe \ud800"), URL)
    assert made.body.decode().splitlines() == ["report: failed: KeyError: größe ?", "after 3.1 s", JOB]
    assert healthchecks.request(ping("start"), URL).body.decode() == JOB


# --- Sentry ----------------------------------------------------------------------------------------------------------


def item(made: Request) -> dict[str, Any]:
    lines = [json.loads(line) for line in made.body.decode().split("\n")]
    assert [lines[0].keys(), lines[1]["type"]] == [{"event_id"}, "check_in"]
    found: dict[str, Any] = lines[2]
    return found


@pytest.mark.parametrize(("kind", "status"), [("start", "in_progress"), ("ok", "ok"), ("fail", "error")])
def test_a_check_in_has_the_id_of_the_run_and_its_status(kind: str, status: str) -> None:
    made = sentry.request(ping(kind, seconds=3.1), DSN)
    assert made.url == DSN.envelopes
    assert "sentry_key=key" in made.headers["X-Sentry-Auth"]
    found = item(made)
    assert uuid.UUID(found["check_in_id"]) == ping(kind).run_id
    assert (found["monitor_slug"], found["status"], found["duration"]) == ("report", status, 3.1)


@pytest.mark.parametrize(
    ("given", "sent"),
    [("staging", "staging"), (None, None), ("", None), ("a/b", None), ("a\nb", None), ("x" * 65, None)],
    ids=["a name", "none", "empty", "a slash", "two lines", "too long"],
)
def test_a_check_in_is_of_an_environment_that_sentry_takes(given: str | None, sent: str | None) -> None:
    assert item(sentry.request(ping("ok"), DSN, given)).get("environment") == sent


CRONTAB = {"type": "crontab", "value": "0 9 * * 1-5"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"timing": Cron("0 9 * * mon-fri", "Europe/Paris")},
            {"schedule": CRONTAB, "timezone": "Europe/Paris"},
        ),
        ({"timing": Cron("0 0 9 * * mon-fri", seconds=True)}, {"schedule": CRONTAB, "timezone": "UTC"}),
        ({"timing": Cron("*/10 * * * * *", seconds=True)}, {}),
        ({"timing": Cron("@daily")}, {"schedule": {"type": "crontab", "value": "0 0 * * *"}, "timezone": "UTC"}),
        ({"timing": Every("15m")}, {"schedule": {"type": "interval", "value": 15, "unit": "minute"}}),
        ({"timing": Every("90m")}, {"schedule": {"type": "interval", "value": 90, "unit": "minute"}}),
        ({"timing": Every("2h")}, {"schedule": {"type": "interval", "value": 2, "unit": "hour"}}),
        ({"timing": Every("1d")}, {"schedule": {"type": "interval", "value": 1, "unit": "day"}}),
        ({"timing": Every("2w")}, {"schedule": {"type": "interval", "value": 2, "unit": "week"}}),
        ({"timing": Every("90s")}, {}),
        ({"timing": Every("10s")}, {}),
        ({"timing": Follows("extract")}, {}),
        ({"exclude": "2026-12-25"}, {}),
        (
            {"monitor": "sentry grace=5m max_runtime=90m", "jitter": "30s"},
            {"schedule": {"type": "interval", "value": 1, "unit": "hour"}, "checkin_margin": 6, "max_runtime": 90},
        ),
        (
            {"job_timeout": 61},
            {"schedule": {"type": "interval", "value": 1, "unit": "hour"}, "max_runtime": 2},
        ),
        ({"end": NINE}, {}),  # after the last run it would raise the alarm for ever
        ({"max_runs": 3}, {}),
        (
            {"monitor": "sentry grace=4w", "jitter": "5m", "job_timeout": 3_000_000},
            {
                "schedule": {"type": "interval", "value": 1, "unit": "hour"},
                "checkin_margin": 40_320,
                "max_runtime": 40_320,
            },
        ),
        ({"job_timeout": -1}, {"schedule": {"type": "interval", "value": 1, "unit": "hour"}}),
    ],
    ids=str,
)
def test_sentry_learns_the_schedule_where_it_can_be_said_truly(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sentry.config(schedule(**given)) == expected


def test_h_is_told_as_the_id_decides_it() -> None:
    made = schedule(timing=Cron("H H * * *"))
    assert isinstance(made.timing, Cron)
    assert sentry.config(made)["schedule"] == {"type": "crontab", "value": made.timing.normalised}
    assert "H" not in made.timing.normalised


# --- the way to a service --------------------------------------------------------------------------------------------


class Service:
    """Answers with these, one after the other, then takes everything."""

    def __init__(self, *answers: Failure | None) -> None:
        self._answers = list(answers)
        self.taken: list[str] = []
        self.tries = 0

    def send(self, request: Request) -> Failure | None:
        self.tries += 1
        answer = self._answers.pop(0) if self._answers else None
        if answer is None:
            self.taken.append(request.url)
        return answer


AWAY = Failure("no answer within 5 s", final=False)
BUSY = Failure("it answers 429 Too Many Requests", final=False, alone=True)
REFUSED = Failure("it answers 404 Not Found", final=True, alone=True)
LIMITED = Failure("it takes no more pings for this check now", final=True)


def letter(name: str, done: list[str], seconds: float = 900, schedule_id: str = "report") -> Letter:
    made = Request("hc-ping.com", name, {}, b"")
    return Letter(schedule_id, made, lambda: done.append(name), time.monotonic() + seconds)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_S", 0.001)


@pytest.mark.usefixtures("hasty")
def test_what_a_service_does_not_take_is_tried_again_in_order_and_told_once() -> None:
    service, done, events = Service(AWAY, AWAY, AWAY), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    for name in ("1", "2", "3"):
        way.put(letter(name, done))
    wait_until(lambda: done == ["1", "2", "3"])
    assert service.taken == done
    assert [event.name for event in events] == ["monitor_failed", "monitor_back"]
    assert events[0].fields == {"service": "hc-ping.com", "error": "no answer within 5 s"}
    way.stop()


@pytest.mark.usefixtures("hasty")
def test_what_is_refused_for_good_is_given_up_at_once_and_told_once() -> None:
    service, done, events = Service(REFUSED, REFUSED), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    for name in ("1", "2", "3"):
        way.put(letter(name, done))
    wait_until(lambda: done == ["1", "2", "3"])
    assert (service.taken, service.tries, len(events)) == (["3"], 3, 1)
    way.stop()


@pytest.mark.parametrize(("failure", "times"), [(REFUSED, 2), (LIMITED, 1)], ids=["refused", "limited"])
def test_what_comes_and_goes_with_every_ping_is_not_told_each_time(failure: Failure, times: int) -> None:
    service, done, events = Service(failure, None, failure, None), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    for name in ("1", "2", "3", "4"):
        way.put(letter(name, done))
    wait_until(lambda: len(done) == 4)
    assert [event.name for event in events] == ["monitor_failed"] * times
    way.stop()


@pytest.mark.usefixtures("hasty")
def test_after_a_while_it_is_given_up_and_said_when_the_service_is_back() -> None:
    service, done, events = Service(AWAY), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    way.put(letter("1", done, seconds=0))
    wait_until(lambda: done == ["1"])
    assert service.taken == []
    assert [event.name for event in events] == ["monitor_failed"]
    way.put(letter("2", done))
    wait_until(lambda: len(events) == 3)
    assert [event.name for event in events[1:]] == ["monitor_back", "monitor_missed"]
    assert events[2].fields == {"count": 1, "why": "hc-ping.com did not take them in time"}
    way.stop()


def test_what_cannot_be_taken_now_waits_in_order_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_S", 0.05)
    goes_on, done, events = threading.Event(), list[str](), list[Event]()

    def send(request: Request) -> Failure | None:
        return BUSY if request.url.startswith("busy") and not goes_on.is_set() else None

    way = Lane("hc-ping.com", events.append, send)
    for name in ("busy start", "busy end", "fine 1", "fine 2"):
        way.put(letter(name, done, schedule_id=name.partition(" ")[0]))
    wait_until(lambda: done == ["fine 1", "fine 2"])
    assert [event.name for event in events] == ["monitor_failed"]
    goes_on.set()
    wait_until(lambda: done == ["fine 1", "fine 2", "busy start", "busy end"])
    assert [event.name for event in events] == ["monitor_failed", "monitor_back"]
    way.stop()


@pytest.mark.usefixtures("hasty")
def test_what_could_not_be_taken_for_long_is_given_up_and_silence_after_it_is_said() -> None:
    service, done, events = Service(BUSY, AWAY), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    way.put(letter("1", done, seconds=0))
    way.put(letter("2", done))
    wait_until(lambda: len(events) == 4)
    assert [event.name for event in events] == ["monitor_failed", "monitor_failed", "monitor_back", "monitor_missed"]
    assert [event.fields["error"] for event in events[:2]] == [BUSY.words, AWAY.words]
    way.stop()


def test_a_service_that_is_slow_loses_nothing_and_one_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MOST", 2)
    hanging, done, events, goes_on = threading.Event(), list[str](), list[Event](), threading.Event()

    def hangs(_: Request) -> None:
        hanging.set()
        goes_on.wait(30)

    way = Lane("hc-ping.com", events.append, hangs)
    way.put(letter("1", done))
    assert hanging.wait(30)
    assert not way.is_full
    for name in ("2", "3", "4"):
        way.put(letter(name, done))
    assert (way.is_full, done) == (True, [])
    goes_on.set()
    wait_until(lambda: done == ["1", "2", "3", "4"])
    assert (way.is_full, events) == (False, [])
    way.stop()


def test_of_too_many_for_a_service_that_fails_the_oldest_are_given_up_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "MOST", 20)
    service, done, events = Service(*[AWAY] * 100), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    way.put(letter("0", done))
    wait_until(lambda: events)
    for n in range(1, 23):
        way.put(letter(str(n), done))
    assert (way.is_full, done) == (False, ["1", "2"])  # it holds up nobody
    assert [event.name for event in events] == ["monitor_failed", "monitor_missed"]
    assert events[1].fields == {"count": 2, "why": "too many wait for hc-ping.com"}
    way.stop()


def test_what_was_dropped_while_it_waited_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_FIRST_S", 30.0)
    service, done, events = Service(BUSY), list[str](), list[Event]()
    way = Lane("hc-ping.com", events.append, service.send)
    way.put(letter("busy", done, schedule_id="busy"))
    way.put(letter("fine 1", done, schedule_id="fine"))
    wait_until(lambda: done == ["fine 1"])
    monkeypatch.setattr(delivery, "MOST", 1)
    way.put(letter("fine 2", done, schedule_id="fine"))
    wait_until(lambda: done == ["fine 1", "busy", "fine 2"])
    assert [event.name for event in events] == ["monitor_failed", "monitor_missed", "monitor_back"]
    way.stop()


def test_a_way_that_nobody_goes_has_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_IDLE_S", 0.001)
    service, done = Service(), list[str]()
    way = Lane("idle.example", lambda _: None, service.send)
    for name in ("1", "2"):
        way.put(letter(name, done))
        wait_until(lambda name=name: done[-1:] == [name])  # type: ignore[misc]
        wait_until(lambda: not [each for each in threading.enumerate() if each.name == "beat-monitor-idle.example"])


def test_when_it_is_time_to_stop_nothing_more_is_sent_nor_said_to_be_done() -> None:
    service, done = Service(AWAY), list[str]()
    way = Lane("hc-ping.com", lambda _: None, service.send)
    way.put(letter("1", done))
    wait_until(lambda: service.tries == 1)
    way.stop()
    wait_until(lambda: not [each for each in threading.enumerate() if each.name == "beat-monitor-hc-ping.com"])
    assert (service.taken, done) == ([], [])


def test_a_bug_is_told_by_its_kind_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ValueError(URL)

    monkeypatch.setattr("urllib.request.OpenerDirector.open", fails)
    assert send_ping(healthchecks.request(ping("ok"), URL)) == ("ValueError", True, False)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_nobody_is_followed_elsewhere(code: int) -> None:
    with Watch() as other, Watch(lambda _: Answer(code, headers={"Location": f"http://{other.host}/x"})) as service:
        failure = send_ping(healthchecks.request(ping("ok"), f"http://{service.host}/a"))
    assert failure
    assert failure.final
    assert failure.words.startswith(f"it answers {code} ")
    assert failure.words.endswith(", and beat follows no redirect: write the URL that it leads to")
    assert (len(service.told), other.asked) == (1, 0)


@pytest.mark.parametrize(
    ("code", "final", "words"),
    [
        (404, True, "it answers 404 Not Found"),
        (429, False, "it answers 429 Too Many Requests"),
        (503, False, "it answers 503 Service Unavailable"),
        (599, False, "it answers 599"),
    ],
)
def test_an_answer_is_told_by_its_number_and_not_in_the_words_of_the_server(
    code: int, words: str, *, final: bool
) -> None:
    with Watch(lambda _: Answer(code, reason="canary")) as service:
        assert send_ping(healthchecks.request(ping("ok"), f"http://{service.host}/a"))[:2] == (words, final)  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("OK (not found)", "it knows no such check: is the URL right?"),
        ("OK (rate limited)\n", "it takes no more pings for this check now: there were too many within a minute"),
    ],
)
def test_a_good_answer_that_says_otherwise_is_a_refusal(body: str, words: str) -> None:
    with Watch(lambda _: Answer(200, body)) as service:
        assert send_ping(healthchecks.request(ping("ok"), f"http://{service.host}/a")) == (words, True, False)


@pytest.mark.parametrize("body", ["OK", "", "Created", "x" * 100_000], ids=["ok", "empty", "created", "long"])
def test_any_other_good_answer_is_one(body: str) -> None:
    with Watch(lambda _: Answer(200, body)) as service:
        assert send_ping(healthchecks.request(ping("ok"), f"http://{service.host}/a")) is None
