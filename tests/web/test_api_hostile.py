"""Whatever is sent, the answer is a sentence with the right status: never a traceback, never a 500, never a secret."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.storage.keys import Keys
from beat.web.auth import Access
from tests.support.lines import MINUTE, NINE, Ledger
from tests.support.schedulers_in_turn import Crew, hourly
from tests.web.inhabited import SECRET
from tests.web.program import V1, everything, get, post, refused, told
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    import httpx

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

IDS = {
    "quotes": "%22%27%60",
    "markup": "%3Cscript%3Ealert(1)%3Cscript%3E",
    "nul": "report%00",
    "newline": "report%0D%0ASet-Cookie%3A%20a%3Db",
    "dots": "%2e%2e",
    "glob": "*",
    "unicode": "%F0%9F%98%80",
    "half a character": "%ED%A0%80",
    "right to left": "%E2%80%AE",
    "huge": "a" * 5000,
    "key": "x%3Ay",
}
BODIES = {
    "no JSON": (b"{", "no JSON"),
    "half a text": (b'{"reason": "\xff"}', "UTF-8"),
    "UTF-16": ('{"reason": "a"}'.encode("utf-16"), "UTF-8"),
    "a list": (b"[]", "must be an object"),
    "a number": (b"1", "must be an object"),
    "null": (b"null", "must be an object"),
    "NaN": (b'{"expected_version": NaN}', "NaN is no number"),
    "infinity": (b'{"expected_version": -Infinity}', "-Infinity is no number"),
    "beyond": (b'{"expected_version": 1e999}', "too large"),
    "a huge number": (b'{"expected_version": ' + b"9" * 5000 + b"}", "no JSON"),
    "a large number": (b'{"expected_version": 99999999999999999999}', "expected_version"),
    "a fraction": (b'{"expected_version": 1.5}', "expected_version 1.5 must be a whole number"),
    "a truth": (b'{"expected_version": true}', "expected_version True must be a whole number"),
    "a text": (b'{"expected_version": "7"}', "expected_version '7' must be a whole number"),
    "twice": (b'{"reason": "a", "reason": "b"}', "'reason' is there twice"),
    "unknown": (b'{"reson": "a"}', "Did you mean 'reason'?"),
    "half a character": (b'{"reason": "\\ud800"}', "UTF-8"),
    "a line break": (b'{"reason": "a\\nb"}', "reason must be one line"),
    "nothing": (b'{"reason": ""}', "reason '' must be a text of 1 to 500 characters"),
    "long": (b'{"reason": "' + b"a" * 501 + b'"}', "reason 'aaaa"),
    "an object": (b'{"reason": {"a": 1}}', "reason of type object must be a text"),
    "deep": (b'{"reason": ' + b"[" * 40 + b"]" * 40 + b"}", "nested too deep"),
    "bottomless": (b'{"reason": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "nested too deep"),
    "past": (b'{"until": "2020-01-01"}', "until '2020-01-01' is past"),
    "no time": (b'{"until": "soon"}', "until 'soon' is not a time to come"),
}
QUERIES = {
    "limit=0": "limit 0 must be a whole number from 1 to 500",
    "limit=501": "limit 501 must be",
    "limit=-1": "limit -1 must be",
    "limit=1e3": "limit '1e3' must be",
    "limit=%D9%A3": "limit '\\u0663' must be",
    "limit=": "limit '' must be",
    "limit=1&limit=2": "limit is there twice",
    "limt=1": "Did you mean 'limit'?",
    "state=pausd": "Did you mean 'paused'?",
    "failing=yes": "failing 'yes' must be true or false",
    "sort=name": "sort 'name' must be one of id, next, last, failures",
    "runs=101": "runs 101 must be",
    "runs=100&limit=51": "limit=50, and then for the next page",
    "match=" + "a" * 201: "match 'aaaa",
    "after=nan%3Areport&sort=next": "after 'nan:report' must be",
    "after=x%3Areport&sort=next": "after 'x:report' must be",
}


def ask(program: Visitor, method: str, path: str, **options: Any) -> httpx.Response:
    return program.ask(method, f"{V1}{path}", **options)


@pytest.mark.parametrize("name", IDS)
def test_an_id_that_nobody_has_is_not_found_whatever_is_in_it(program: Visitor, name: str) -> None:
    for path in ("", "/history", "/why?time=03:00"):
        assert refused(ask(program, "GET", f"/schedules/{IDS[name]}{path}"), 404).isprintable()
    for change in ("trigger", "pause", "resume"):
        assert refused(ask(program, "POST", f"/schedules/{IDS[name]}/{change}", json={}), 404)
    assert refused(ask(program, "GET", f"/runs/{IDS[name]}"), 404).isprintable()


def test_what_is_nearly_an_id_is_suggested(program: Visitor) -> None:
    assert "Did you mean 'report'?" in refused(ask(program, "GET", "/schedules/reprot"), 404)


@pytest.mark.parametrize("name", BODIES)
def test_a_document_that_cannot_be_is_refused_by_name(program: Visitor, crew: Crew, name: str) -> None:
    body, words = BODIES[name]
    answer = ask(program, "POST", "/schedules/report/pause", content=body, headers={"content-type": "application/json"})
    assert words in refused(answer, 400)
    assert crew.client.get("report").state == "active"


@pytest.mark.parametrize("query", QUERIES)
def test_a_question_that_cannot_be_is_refused_by_name(program: Visitor, query: str) -> None:
    assert QUERIES[query] in refused(ask(program, "GET", f"/schedules?{query}"), 400)


def test_an_unknown_place_is_not_found_and_a_wrong_method_not_allowed(program: Visitor) -> None:
    assert refused(ask(program, "GET", "/nothing"), 404)
    answer = ask(program, "GET", "/schedules/report/trigger")
    assert refused(answer, 405)
    assert answer.headers["allow"] == "POST"
    for method in ("DELETE", "PUT", "PATCH", "TRACE", "OPTIONS"):
        answer = ask(program, method, "/schedules/report")
        assert refused(answer, 405)
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_more_than_anybody_reads_is_too_large(program: Visitor) -> None:
    json_type = {"content-type": "application/json"}
    body = json.dumps({"kwargs": {"a": "x" * 70_000}})
    assert refused(ask(program, "POST", "/schedules/report/trigger", content=body, headers=json_type), 413)


def test_what_is_no_json_is_no_change(program: Visitor, crew: Crew) -> None:
    assert refused(ask(program, "POST", "/schedules/report/pause", data={"reason": "a"}), 415)
    assert crew.client.get("report").state == "active"


def test_strangers_read_only_pages_and_other_sites_change_nothing(crew: Crew) -> None:
    guarded = Access(token="a-token-that-nobody-guesses")  # noqa: S106 (of a test)
    path = f"{V1}/schedules/report/pause"
    assert refused(Visitor.of(crew.url, access=guarded).get(f"{V1}/overview"), 401)
    assert refused(Visitor.of(crew.url, access=guarded).ask("POST", path, json={}), 401)
    assert refused(Visitor.of(crew.url, access=Access(read_only=True)).ask("POST", path, json={}), 403)
    elsewhere = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert refused(Visitor.of(crew.url).ask("POST", path, json={}, headers=elsewhere), 403)
    assert crew.client.get("report").state == "active"


def test_a_script_in_a_browser_changes_with_the_token_of_an_answer_and_a_program_needs_none(crew: Crew) -> None:
    here, path = {"origin": "http://127.0.0.1:8420", "sec-fetch-site": "same-origin"}, f"{V1}/schedules/report/pause"
    visitor = Visitor.of(crew.url)
    assert "X-CSRF-Token" in refused(visitor.ask("POST", path, json={}, headers=here), 409)
    token = visitor.get(f"{V1}/overview", headers=here).headers["x-csrf-token"]
    stranger = Visitor.of(crew.url).ask("POST", path, json={}, headers={**here, "x-csrf-token": token})
    assert "X-CSRF-Token" in refused(stranger, 409)  # it has the token, and not the cookie
    assert crew.client.get("report").state == "active"
    assert told(visitor.ask("POST", path, json={}, headers={**here, "x-csrf-token": token}))
    assert crew.client.get("report").state == "paused"
    assert "x-csrf-token" not in Visitor.of(crew.url).get(f"{V1}/overview").headers
    assert told(Visitor.of(crew.url).ask("POST", f"{V1}/schedules/report/resume", json={}))


def test_a_change_bears_the_name_of_who_asked_for_it(crew: Crew) -> None:
    visitor = Visitor.of(crew.url, access=Access(users={"ann": "her password"}), auth=("ann", "her password"))
    assert post(visitor, "/schedules/report/pause")["schedule"]["pause"]["by"] == "web:ann"


def test_a_schedule_whose_key_is_no_hash_is_told_in_a_sentence(program: Visitor, store: Store) -> None:
    store.client.delete(Keys().schedule("moved"))
    store.client.set(Keys().schedule("moved"), "garbage")
    assert "is no hash" in refused(ask(program, "GET", "/schedules/moved"), 409)
    assert "is no hash" in refused(ask(program, "POST", "/schedules/moved/pause", json={}), 409)
    broken = [each for each in get(program, "/schedules")["schedules"] if each["state"] == "broken"]
    assert [each["id"] for each in broken] == ["moved"]


def test_what_json_has_no_word_for_is_told_all_the_same(program: Visitor, store: Store) -> None:
    definition = json.loads(store.client.hget(Keys().schedule("moved"), "definition"))  # type: ignore[arg-type]
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    strange = {"a": float("nan"), "b": "\ud800", "c": deep}
    store.client.hset(Keys().schedule("moved"), "definition", json.dumps({**definition, "kwargs": strange}))
    found = get(program, "/schedules/moved")["schedule"]["definition"]["kwargs"]
    assert found["a"] is None
    assert "…" in str(found["c"])


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_no_answer_has_a_secret_in_it(program: Visitor, crew: Crew) -> None:
    body = {"kwargs": {"db": {"password": SECRET}, "urls": [f"redis://ann:{SECRET}@host"]}}
    assert told(ask(program, "POST", "/schedules/report/trigger", json=body), 201)
    answers = everything(program, crew)
    assert [path for path, text in answers.items() if SECRET in text] == []
    kwargs = [json.loads(text)["arguments"]["kwargs"] for path, text in answers.items() if path.startswith("/runs/")]
    assert {"copies": 2, "api_token": "•••", "db": {"password": "•••"}, "urls": ["redis://ann:•••@host"]} in kwargs


def test_arguments_that_only_python_can_write_are_masked_whole_if_they_name_a_secret(
    store: Store, server: PrivateRedis
) -> None:
    Crew(store, server, hourly("odd", kwargs={"when": {1, 2}, "password": SECRET}), hourly("even", args=[{1, 2}]))
    program = Visitor.of(server.url)
    assert get(program, "/schedules/odd")["schedule"]["definition"]["kwargs"] == "•••"
    assert get(program, "/schedules/even")["schedule"]["definition"]["args"] == "[{1, 2}]"


def test_what_a_job_reports_is_masked_by_name_in_every_answer(redis: Redis, server: PrivateRedis) -> None:
    details = {"rows": 4, "session_cookie": SECRET, "upstream": {"api_token": SECRET, "host": "db"}}
    made = Ledger().registered(NINE - MINUTE, NINE).fired(NINE)
    made.ended(NINE, kind="failed", reported=True, message="3 rows refused", details=details).keep(redis)
    program, job = Visitor.of(server.url), made.job(NINE)
    masked = {"rows": 4, "session_cookie": "•••", "upstream": {"api_token": "•••", "host": "db"}}
    assert get(program, f"/runs/{job}")["run"]["details"] == masked
    for path in ("/history", "/schedules/report/history"):
        lines = get(program, path)["lines"]
        assert [line["details"] for line in lines if line.get("job") == job] == [masked]
    [row] = get(program, "/schedules", runs=5)["schedules"]
    assert [run["details"] for run in row["runs"]] == [masked]


# --- objects and applications ----------------------------------------------------------------------------------------


def test_no_question_and_no_page_writes_anything(program: Visitor, crew: Crew) -> None:
    with Redis.from_url(crew.url) as redis:

        def writes() -> int:
            return int(redis.info("persistence")["rdb_changes_since_last_save"])

        before = writes()
        answers = everything(program, crew)
        of = [f"/schedules/held{more}" for more in ("", "/run", "/pause", "/resume", "/reschedule", "/preview")]
        run = next(line.job_id for line in crew.client.history("report") if hasattr(line, "job_id"))
        pages = [program.get(path) for path in ("/", "/schedules", "/system", *of, f"/schedules/report/runs/{run}")]
        assert {each.status_code for each in pages} == {200}
        assert writes() == before
        assert len(answers) > 20
        crew.client.pause("report")  # so would it have been noticed
        assert writes() > before


class Canary:
    """Whoever unpickles it leaves a file behind."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def test_no_question_unpickles_anything(program: Visitor, crew: Crew, home: Path) -> None:
    canary = home / "canary"
    evil = pickle.dumps(Canary(canary))
    data = pickle.dumps(("app.report", None, (Canary(canary),), {"a": Canary(canary)}))
    with Redis.from_url(crew.url) as redis:
        redis.hset(Keys().template("report"), mapping={"data": data, "meta": evil})
        for key in redis.scan_iter("rq:job:*"):
            redis.hset(key, mapping={"data": data, "meta": evil, "result": evil, "exc_info": evil})
        for key in redis.scan_iter("rq:results:*"):
            redis.delete(key)
            redis.xadd(key, {"type": "1", "return_value": evil, "created_at": "1"})
    for answer in everything(program, crew).values():
        assert "canary" not in answer
    run = next(line.job_id for line in crew.client.history("report") if hasattr(line, "job_id"))
    assert "only the application can read" in get(program, f"/runs/{run}")["arguments"]["problem"]
    assert post(program, "/schedules/report/trigger", 400, kwargs={"a": 1})["error"].startswith("the arguments")
    assert not canary.exists()
    pickle.loads(evil)  # noqa: S301 (so would it have been noticed)
    assert canary.exists()


def test_the_application_is_never_imported(store: Store, server: PrivateRedis, home: Path) -> None:
    (home / "shop_of_the_test.py").write_text("def report(): ...")
    crew = Crew(store, server, hourly("report", func="shop_of_the_test.report"))
    sys.path.insert(0, str(home))
    try:
        program = Visitor.of(server.url)
        assert post(program, "/schedules/report/trigger", 201, kwargs={"a": 1})
        assert post(program, "/schedules/report/pause")
        assert post(program, "/schedules/report/reschedule", every="2h")
        assert everything(program, crew)
    finally:
        sys.path.remove(str(home))
    assert "shop_of_the_test" not in sys.modules
