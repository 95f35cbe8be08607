"""The guard of the page: each rule is seen refusing, and seen letting in."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse

from beat import Client
from beat.config.settings import Settings
from beat.errors import ConfigError
from beat.web import auth, create_app
from beat.web.app import made
from beat.web.auth import Access
from beat.web.site import Site
from tests.web.visitor import Visitor, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx
    from starlette.requests import Request
    from starlette.responses import Response

    from beat.web.request import Asked

TOKEN = "a-token-of-the-tests"  # noqa: S105 (of a page that lives as long as these tests)
NOWHERE = "redis://127.0.0.1:1/0"
USERS = {"alice": "correct horse", "bob": "sch\u00f6n:er als alle"}


def change(_site: Site, asked: Asked) -> Response:
    """Something that a page might do."""
    return PlainTextResponse(f"done by {asked.client.by}")


def breaks(_site: Site, _asked: Asked) -> Response:
    raise KeyError("what nobody may see")


def page(**given: Any) -> Visitor:
    """A page that needs no Redis, with two changes on it."""
    access = Access(**given)
    app = made(Client(NOWHERE), access)
    site = Site(Client(NOWHERE), access)
    app.router.routes[:0] = [
        site.route("/change", change, methods=("POST",)),
        site.route("/api/v1/change", change, methods=("POST",)),
        site.route("/breaks", breaks),
        site.route("/api/v1/breaks", breaks),
        site.route("/quiet", lambda _site, asked: PlainTextResponse(asked.client.by), name="quiet"),
    ]
    return Visitor(app)


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def sent(
    visitor: Visitor, path: str = "/change", headers: Mapping[str, str] | None = None, **fields: str
) -> httpx.Response:
    """A form of the page, with its token."""
    if "beat_csrf" not in visitor.cookies:
        visitor.get("/nowhere", headers=headers or {})
    return visitor.ask("POST", path, data={"csrf": visitor.cookies["beat_csrf"], **fields}, headers=headers or {})


# by which name


KNOWN = ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "localhost.", "[::1]:8420", "10.0.0.7", socket.gethostname()]


@pytest.mark.parametrize("host", KNOWN, ids=range(len(KNOWN)))
def test_addresses_and_this_machine_are_known(host: str) -> None:
    assert page().get("/quiet", headers={"host": host}).status_code == 200


STRANGE = [
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b", "[", "[::1", "localhost:x",
    "127.0.0.1:8420@evil.example", "localhost/..", "\xff\xfe", "x" * 5000, "*", "beat.example.com.evil.example",
]  # fmt: skip


@pytest.mark.parametrize("host", STRANGE, ids=range(len(STRANGE)))
def test_a_name_that_somebody_else_could_point_here_is_refused(host: str) -> None:
    answer = page(hosts=("beat.example.com",)).get("/quiet", headers={"host": host.encode("latin-1")})
    assert (answer.status_code, "web_hosts" in answer.text) == (421, True)


@pytest.mark.parametrize("host", ["beat.example.com", "BEAT.example.com:443", "a.internal", "a.b.internal"])
def test_names_that_were_given_are_known(host: str) -> None:
    assert page(hosts=("beat.example.com", "*.internal")).get("/quiet", headers={"host": host}).status_code == 200


def test_two_hosts_are_none() -> None:
    headers = [("host", "localhost"), ("host", "evil.example")]
    assert page().get("/quiet", headers=headers).status_code == 421


def test_a_mounted_page_leaves_hosts_to_the_application_around_it() -> None:
    assert page(hosts=None).get("/quiet", headers={"host": "evil.example"}).status_code == 200
    assert page(hosts=None).get("/nowhere", headers={"host": "["}).status_code == 404


# who asks


LET_IN = [
    ({"authorization": f"Bearer {TOKEN}"}, "web"),
    ({"authorization": f"bearer  {TOKEN} "}, "web"),
    (basic("carol", TOKEN), "web:carol"),
    (basic("", TOKEN), "web"),
    (basic("\x1b[31m", TOKEN), "web"),
    (basic("alice", TOKEN), "web"),  # who has the token is not alice
    (basic("alice", "correct horse"), "web:alice"),
    (basic("bob", "sch\u00f6n:er als alle"), "web:bob"),
]


@pytest.mark.parametrize(("headers", "by"), LET_IN, ids=range(len(LET_IN)))
def test_who_has_a_token_or_a_password_is_let_in_by_name(headers: dict[str, str], by: str) -> None:
    answer = page(token=TOKEN, users=USERS).get("/quiet", headers=headers)
    assert (answer.status_code, answer.text) == (200, by)


REFUSED: list[dict[str, Any]] = [
    {},
    {"authorization": ""},
    {"authorization": "Bearer"},
    {"authorization": "Bearer a-token-of-the-test"},
    {"authorization": f"Token {TOKEN}"},
    {"authorization": "Basic"},
    {"authorization": "Basic !!!"},
    {"authorization": "Basic YWxpY2U"},
    {"authorization": b"Basic \xff\xfe"},
    {"authorization": b"Bearer \xff\xfe"},
    {"authorization": "Basic " + base64.b64encode(b"\xff:\xfe").decode()},
    basic("alice", ""),
    basic("alice", "correct horse "),
    basic("bob", "correct horse"),
    basic("mallory", ""),
    basic("mallory", "correct horse"),
    basic("", ""),
    {"authorization": "Basic " + "A" * 100_000},
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_who_has_neither_is_asked_and_not_let_in(number: int) -> None:
    for path in ("/quiet", "/nowhere", "/static/beat.css", "/metrics", "/"):
        answer = page(token=TOKEN, users=USERS).get(path, headers=REFUSED[number])
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Basic ")


def test_wrong_passwords_are_told_a_line_a_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor, now = page(token=TOKEN), [100.0]
    monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: now[0]))
    visitor.get("/quiet")  # a browser that is asked for the first time
    assert caplog.messages == []
    for _ in range(3):
        visitor.get("/quiet", headers=basic("alice", "hunter2"))
    assert caplog.messages == ["wrong token or password from 127.0.0.1"]
    now[0] += 1
    visitor.get("/quiet", headers={"authorization": "Bearer hunter2"})
    assert caplog.messages[1:] == [f"{caplog.messages[0]}, 3 times since the last such line"]
    assert "hunter2" not in caplog.text


class Door:
    """A web UI of users behind a clock set by hand, asked from different addresses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.app = 100.0, page(token=TOKEN, users=USERS).app
        monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: self.now))

    def knock(self, headers: dict[str, str], host: str = "192.0.2.1", visitor: Visitor | None = None) -> httpx.Response:
        """Ask with these headers from there."""
        visitor = visitor or Visitor(self.app)
        return visitor.get("/quiet", headers=headers, client=(host, 5000))

    def storm(self, host: str = "192.0.2.1", tries: int = 30) -> list[int]:
        """Try passwords from there, each another one."""
        return [self.knock(basic("alice", f"guess {self.now} {n}"), host).status_code for n in range(tries)]


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    return Door(monkeypatch)


RIGHT = basic("alice", "correct horse")


def test_an_address_has_ten_wrong_passwords_a_minute(door: Door) -> None:
    assert door.storm() == [401] * 10 + [429] * 20
    refused = door.knock(basic("alice", "another"))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert "try again in 60 s" in refused.text
    assert "www-authenticate" not in refused.headers  # or the browser would ask at once for another password
    door.now += 59
    assert door.storm(tries=1) == [429]
    door.now += 1
    assert door.storm() == [401] * 10 + [429] * 20


def test_a_password_is_not_looked_at_while_its_address_waits(door: Door) -> None:
    door.storm()
    assert door.knock(RIGHT).status_code == 429
    door.now += 60
    assert door.knock(RIGHT).status_code == 200


def test_other_addresses_are_let_in_at_once(door: Door) -> None:
    door.storm("192.0.2.1")
    assert door.knock(RIGHT, "192.0.2.2").status_code == 200


def test_a_network_of_ipv6_is_one_address(door: Door) -> None:
    statuses = [door.knock(basic("alice", f"guess {n}"), f"2001:db8::{n:x}").status_code for n in range(1, 20)]
    assert statuses == [401] * 10 + [429] * 9
    assert door.knock(RIGHT, "2001:db8:0:1::1").status_code == 200


def test_a_browser_that_has_signed_in_is_never_slowed_down(door: Door) -> None:
    signed_in = Visitor(door.app)
    assert door.knock(RIGHT, visitor=signed_in).status_code == 200
    assert "set-cookie" not in door.knock(RIGHT, visitor=signed_in).headers  # it has it
    door.storm()
    assert door.knock(RIGHT, visitor=signed_in).status_code == 200
    assert door.knock(basic("alice", "guess"), visitor=signed_in).status_code == 429  # the cookie is for that password
    assert door.knock(RIGHT).status_code == 429


def test_a_token_is_never_slowed_down(door: Door) -> None:
    door.storm()
    assert door.knock({"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert door.knock(basic("carol", TOKEN)).status_code == 200


def test_the_same_wrong_password_is_one_try(door: Door) -> None:
    old = basic("alice", "that of last week")
    assert {door.knock(old).status_code for _ in range(50)} == {401}
    assert door.knock(RIGHT).status_code == 200


def test_who_is_slowed_down_costs_little_memory(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_MOST_ADDRESSES", 3)
    for n in range(5):
        door.storm(f"192.0.2.{n}", 10)
    kept = [door.knock(basic("alice", "x"), f"192.0.2.{n}").status_code for n in (4, 3, 2)]
    assert kept == [429] * 3
    assert door.knock(basic("alice", "x"), "192.0.2.0").status_code == 401  # it was forgotten


def test_the_proof_of_a_browser_is_kept_from_scripts_and_other_sites(door: Door) -> None:
    visitor = Visitor(door.app)
    found = door.knock(RIGHT, visitor=visitor).headers["set-cookie"]
    assert re.fullmatch(r"beat_known=[0-9a-f]{64}; HttpOnly; Path=/; SameSite=lax", found)
    assert "set-cookie" not in door.knock(basic("alice", "wrong")).headers
    assert "beat_known" not in visitor.get("/healthz", headers=basic("alice", "wrong")).headers.get("set-cookie", "")
    assert "beat_known" not in Visitor(door.app).get("/static/beat.css", headers=RIGHT).headers.get("set-cookie", "")


@pytest.mark.parametrize("given", [{"token": TOKEN}, {"users": USERS}])
def test_an_empty_password_opens_nothing_where_the_other_kind_is_not_set(given: dict[str, Any]) -> None:
    for headers in (basic("alice", ""), basic("", ""), {"authorization": "Bearer "}):
        assert page(**given).get("/quiet", headers=headers).status_code == 401


def test_probes_need_no_password() -> None:
    for path in ("/healthz", "/readyz"):
        assert page(token=TOKEN).get(path).status_code not in {401, 403}
    assert page(token=TOKEN).get("/healthz/").status_code == 401


def test_a_program_is_refused_in_json() -> None:
    answer = page(token=TOKEN).get("/api/v1/anything")
    assert (answer.status_code, answer.json()["status"]) == (401, 401)
    assert page(token=TOKEN).get("/nowhere?/api/").headers["content-type"].startswith("text/plain")


def test_the_application_around_it_says_who_asks() -> None:
    async def by_header(request: Request) -> str | None:
        return request.headers.get("x-user")

    def in_a_thread(request: Request) -> bool:
        asyncio.run(asyncio.sleep(0))  # it may take its time: no loop runs here
        return request.headers.get("x-user") == "ann"

    for authorize, by in ((by_header, "web:ann"), (in_a_thread, "web")):
        visitor = page(authorize=authorize)
        assert visitor.get("/quiet", headers={"x-user": "ann"}).text == by
        answer = visitor.get("/quiet")
        assert (answer.status_code, "www-authenticate" in answer.headers) == (403, False)


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "\u202e"], ids=range(3))
def test_a_name_that_cannot_stand_in_the_ledger_is_none(name: str) -> None:
    assert page(authorize=lambda _request: name).get("/quiet").text == "web"


def test_a_long_name_is_cut_short() -> None:
    assert page(authorize=lambda _request: "x" * 5000).get("/quiet").text == "web:" + "x" * 80


def test_the_application_may_refuse_in_its_own_words() -> None:
    def refuse(_request: Request) -> bool:
        raise HTTPException(401, "sign in first", {"www-authenticate": "Custom"})

    answer = page(authorize=refuse).get("/quiet")
    assert (answer.status_code, answer.text, answer.headers["www-authenticate"]) == (401, "sign in first\n", "Custom")


def test_an_application_that_cannot_say_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_request: Request) -> bool:
        raise LookupError("no such table")

    answer = page(authorize=breaks).get("/quiet")
    assert (answer.status_code, "no such table" in answer.text, "bug in beat" in answer.text) == (500, False, False)
    assert "no such table" in caplog.text


@pytest.mark.parametrize("said", [RedirectResponse("/login"), object(), 1, {"name": "ann"}, b"ann"], ids=range(5))
def test_what_says_neither_yes_nor_no_lets_nobody_in(said: Any, caplog: pytest.LogCaptureFixture) -> None:
    answer = page(authorize=lambda _request: said).get("/quiet")
    assert (answer.status_code, "cannot say who you are" in answer.text) == (500, True)
    assert f"returned {type(said).__name__}" in caplog.text


@pytest.mark.parametrize("said", [None, False, "", "  "], ids=range(4))
def test_no_name_is_nobody(said: Any) -> None:
    assert page(authorize=lambda _request: said).get("/quiet").status_code == 403


def test_who_counts_as_false_is_asked_all_the_same() -> None:
    class Nothing(list[str]):
        def __call__(self, _request: Request) -> bool:
            return False

    assert page(authorize=Nothing()).get("/quiet").status_code == 403


def test_the_application_may_send_strangers_to_its_own_door() -> None:
    def to_the_door(_request: Request) -> bool:
        raise HTTPException(303, {"sign": "in"}, {"location": "/login"})  # type: ignore[arg-type]  # as FastAPI allows

    for path in ("/quiet", "/api/v1/overview"):
        answer = page(authorize=to_the_door).get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")


@pytest.mark.parametrize(
    ("options", "headers", "status"),
    [
        ({"web_token": TOKEN}, {}, 401),
        ({"web_token": TOKEN}, {"authorization": f"Bearer {TOKEN}"}, 404),
        ({"web_users": USERS}, {}, 401),
        ({"web_users": USERS, "authorize": lambda _request: True}, {}, 404),
        ({}, {}, 404),
    ],
    ids=range(5),
)
def test_an_app_of_settings_is_opened_by_what_they_say(
    options: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    assert Visitor(create_app(NOWHERE, **options)).get("/nowhere", headers=headers).status_code == status


@pytest.mark.parametrize("options", [{"read_only": True}, {"web_read_only": "on"}], ids=range(2))
def test_an_app_of_settings_only_shows_if_they_say_so(options: dict[str, Any]) -> None:
    answer = Visitor(create_app(NOWHERE, **options)).ask("POST", "/api/v1/pause_all", json={})
    assert (answer.status_code, "read-only" in answer.json()["error"]) == (403, True)


def test_a_bug_is_told_as_one_and_its_page_is_as_safe_as_any(caplog: pytest.LogCaptureFixture) -> None:
    for path in ("/breaks", "/api/v1/breaks"):
        answer = page().get(path)
        assert (answer.status_code, "please report it" in answer.text, "nobody may see" in answer.text) == (
            500,
            True,
            False,
        )
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "KeyError: 'what nobody may see'" in caplog.text
        caplog.clear()
    assert answer.json()["status"] == 500


def test_who_is_asked_cannot_take_the_body_from_the_page() -> None:
    async def reads(request: Request) -> bool:
        with pytest.raises(RuntimeError):
            await request.body()
        return True

    assert sent(page(authorize=reads)).text == "done by web"


# changes


def test_a_form_of_the_page_is_taken() -> None:
    assert sent(page()).text == "done by web"
    assert sent(page(users=USERS), headers=basic("alice", "correct horse")).text == "done by web:alice"


def test_what_only_shows_changes_nothing() -> None:
    visitor = page(read_only=True)
    assert sent(visitor).status_code == 403
    assert "is read-only" in sent(visitor).text
    assert visitor.ask("POST", "/api/v1/change", json={}).json()["status"] == 403
    assert visitor.get("/quiet").status_code == 200


HERE = [
    {"origin": "http://127.0.0.1:8420"}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"},
    {"origin": "http://127.0.0.1:8420", "sec-fetch-site": "same-origin"}, {"origin": "https://127.0.0.1:8420"},
]  # fmt: skip
ELSEWHERE = [
    {"origin": "http://evil.example"}, {"origin": "http://127.0.0.1:9000"}, {"origin": "null"}, {"origin": ""},
    {"origin": "http://["}, {"origin": "127.0.0.1:8420"}, {"origin": "http://127.0.0.1:8420@evil.example"},
    {"origin": b"\xff"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": ""},
    {"origin": "http://127.0.0.1:8420", "sec-fetch-site": "cross-site"},
    {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HERE)))
def test_a_change_that_the_page_itself_asks_for_is_made(number: int) -> None:
    assert sent(page(), headers=HERE[number]).text == "done by web"


@pytest.mark.parametrize("number", range(len(ELSEWHERE)))
def test_a_change_that_another_site_asks_for_is_refused(number: int) -> None:
    headers: Any = ELSEWHERE[number]
    answer = sent(page(), headers=headers)
    assert (answer.status_code, "another site" in answer.text) == (403, True)
    assert page().ask("POST", "/api/v1/change", json={}, headers=headers).status_code == 403


def test_one_of_two_origins_is_enough_to_refuse() -> None:
    headers: Any = [("origin", "http://127.0.0.1:8420"), ("origin", "http://evil.example")]
    assert sent(page(), headers=headers).status_code == 403


def test_no_host_and_no_origin_are_not_the_same_place() -> None:
    assert sent(page(hosts=None), headers={"host": "", "origin": "null"}).status_code == 403


FORGED = ["", "x" * 22, "x" * 21, "\u20ac", "a" * 60_000]


@pytest.mark.parametrize("token", FORGED, ids=range(len(FORGED)))
def test_a_form_without_the_token_of_the_page_is_refused(token: str) -> None:
    answer = sent(page(), csrf=token)
    assert (answer.status_code, "nothing was done" in text(answer)) == (409, True)


@pytest.mark.parametrize("cookie", ["", "x", '"><script>'], ids=range(3))
def test_a_token_that_the_page_has_not_made_is_replaced(cookie: str) -> None:
    visitor = page()
    answer = visitor.ask("POST", "/change", data={"csrf": cookie}, headers={"cookie": f"beat_csrf={cookie}"})
    assert answer.status_code == 409
    assert len(visitor.cookies["beat_csrf"]) == 22
    assert '<script>"' not in answer.text


def test_the_token_may_be_a_header() -> None:
    visitor = page()
    visitor.get("/nowhere")
    headers = {"x-csrf-token": visitor.cookies["beat_csrf"]}
    assert visitor.ask("POST", "/change", headers=headers).text == "done by web"


def test_a_program_changes_with_json_alone() -> None:
    visitor = page()
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        assert visitor.ask("POST", "/api/v1/change", content="{}", headers={"content-type": kind}).status_code == 200
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "text/plain; application/json",
    ):
        answer = visitor.ask("POST", "/api/v1/change", content="{}", headers={"content-type": kind})
        assert (answer.status_code, answer.json()["status"]) == (415, 415)


def test_cookies_are_for_this_page_alone() -> None:
    plain = page().get("/nowhere").headers["set-cookie"].lower()
    assert {"httponly", "samesite=lax", "path=/"} <= {*plain.split("; ")}
    assert "secure" not in plain
    assert "secure" in page().get("https://127.0.0.1:8420/nowhere").headers["set-cookie"].lower()
    assert "secure" in page().get("https://127.0.0.1:8420/theme?to=dark").headers["set-cookie"].lower()


# what else may come


def test_a_form_may_not_be_endless() -> None:
    visitor = page()
    assert sent(visitor, note="x" * 60_000).status_code == 200
    assert sent(visitor, note="x" * 66_000).status_code == 413
    endless = visitor.ask("POST", "/change", content=_pieces())
    assert (endless.status_code, "That is too much." in text(endless)) == (413, True)


async def _pieces() -> Any:
    for _ in range(1000):
        yield b"x" * 10_000


@pytest.mark.parametrize("body", [b"\xff=1", b"&".join([b"a=1"] * 300)], ids=["no text", "too many"])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    assert page().ask("POST", "/change", content=body).status_code == 400


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_page_is_only_read(method: str) -> None:
    assert page().ask(method, "/quiet").status_code == 200
    assert page().ask(method, "/change").status_code == 405


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "CONNECT"])
def test_other_methods_are_told_so_on_a_page(method: str) -> None:
    answer = page().ask(method, "/quiet")
    assert (answer.status_code, "That is not done here." in text(answer)) == (405, True)
    assert "GET" in answer.headers["allow"]


ODD_PATHS = [
    "/%00", "/%ff%fe", "/..%2f..%2fetc/passwd", "/%0d%0aset-cookie:x", "/elsewhere/%22%3E%3Cscript%3E",
    "/" + "x" * 7000, "/static/%00", "/static/..%2fapp.py", "/static/../app.py", "/static/%2e%2e/app.py", "/static/",
    "/static", "/static//etc/passwd", "/static/%ff", "/static/" + "x" * 300, "/static/vendor/../../site.py",
    "/a%2Fb?%ff",
]  # fmt: skip


@pytest.mark.parametrize("path", ODD_PATHS, ids=range(len(ODD_PATHS)))
def test_an_odd_path_is_no_page_and_no_bug(path: str) -> None:
    answer = page().get(path)
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text
    assert "def " not in answer.text


def test_a_path_is_not_taken_for_a_host() -> None:
    answer = page().get("http://127.0.0.1:8420//evil.example/")
    assert answer.status_code == 404
    assert '"//evil.example/"' not in answer.text
    assert 'hx-get="/evil.example/"' in answer.text


def test_a_query_of_any_bytes_is_shown_escaped() -> None:
    answer = page().get('/nowhere?%22%3E%3Cscript%3E&"><script>&%ff')
    assert answer.status_code == 404
    assert '"><script>' not in answer.text


def test_every_answer_has_the_headers() -> None:
    for answer in (
        page().get("/"),
        page().get("/nowhere"),
        page(token=TOKEN).get("/"),
        page().get("/", headers={"host": "x"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
    assert page().get("/static/beat.css").headers["cache-control"] == "no-cache"


BACK = [
    ("/schedules?q=a%20b", "/schedules?q=a%20b"), ("/", "/"), ("//evil.example", "/"), ("/\\evil.example", "/"),
    ("https://evil.example", "/"), ("/\t/evil.example", "/"), ("javascript:alert(1)", "/"), ("", "/"), ("/\u00e9", "/"),
    ("/\r\nset-cookie: a=b", "/"),
]  # fmt: skip


@pytest.mark.parametrize(("to", "location"), BACK, ids=range(len(BACK)))
def test_the_switch_of_colours_sends_nobody_elsewhere(to: str, location: str) -> None:
    answer = page().get("/theme", params={"to": "dark", "back": to})
    assert (answer.status_code, answer.headers["location"]) == (303, location)


def test_a_wish_for_colours_that_are_none_is_none() -> None:
    assert "beat_theme=dark" in page().get("/theme?to=dark").headers["set-cookie"]
    assert "Max-Age=0" in page().get("/theme?to=%3Cscript%3E").headers["set-cookie"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Etc%2FGMT%2B5", "../../etc/passwd", "%00", "x" * 4000])
def test_a_zone_of_any_kind_breaks_no_page(zone: str) -> None:
    assert page().get("/nowhere", headers={"cookie": f"beat_tz={zone}"}).status_code == 404


# the address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_alone_needs_no_password(host: str) -> None:
    assert not Access.of(Settings(web_host=host)).asks


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "beat.example.com", "localhost.example.com"])  # noqa: S104
def test_another_address_without_a_password_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="BEAT_WEB_TOKEN or BEAT_WEB_USERS"):
        Access.of(Settings(web_host=host))
    found = Access.of(Settings(web_host=host, web_token=TOKEN, web_hosts=("x.example",), web_read_only="on"))
    assert (found.asks, found.read_only, found.knows("x.example")) == (True, True, True)
    assert TOKEN not in repr(found)
