"""What goes over the wire: compressed text, and 304 for what the client already has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount

from beat import Client
from beat.history.history import Fired
from beat.timing import clock
from beat.web import create_app, etag_gzip
from benchmarks.suites import web as suite
from tests.support.facts import wait_until
from tests.web.inhabited import alive
from tests.web.making import daily, deploy
from tests.web.program import V1
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    import httpx

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store
    from tests.support.schedulers_in_turn import Crew

GZIP = {"accept-encoding": "gzip"}
LARGEST = 40 * 1024
"""Bytes of a page on the wire: the budget of the design."""
SEVERAL = 20
POLLED = ["/", "/schedules", "/schedules/report", "/schedules/report/pause"]


def on_the_wire(answer: httpx.Response) -> int:
    return int(answer.headers["content-length"])


def poll(visitor: Visitor, path: str, tag: str = "") -> httpx.Response:
    """Ask as the script of an open page does."""
    headers = {**GZIP, "hx-request": "true", **({"if-none-match": tag} if tag else {})}
    return visitor.get(path, headers=headers)


def request(**headers: str) -> Request:
    found = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": found})


@pytest.mark.parametrize("path", ["/", "/schedules", "/api", f"{V1}/overview", "/metrics", "/static/beat.css"])
def test_text_is_compressed_where_the_client_takes_it(program: Visitor, path: str) -> None:
    packed, plain = program.get(path, headers=GZIP), program.get(path, headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert on_the_wire(packed) < on_the_wire(plain) / 2
    assert on_the_wire(plain) == len(plain.content)
    assert {packed.headers["vary"], plain.headers["vary"]} == {"accept-encoding"}
    assert packed.text[:40] == plain.text[:40]


ACCEPTED = {
    "gzip": True, "GZIP": True, "br, gzip;q=0.5": True, "*": True, "deflate, *;q=0.1": True, "x, gzip ; q=1": True,
    "": False, "br": False, "gzip;q=0": False, "gzip;q=0.0, *": False, "*;q=0": False, "gzip;q=x": False,
    "notgzip": False,
}  # fmt: skip


@pytest.mark.parametrize(("accepted", "is_taken"), ACCEPTED.items())
def test_accept_encoding_is_read_with_its_weights(accepted: str, is_taken: bool) -> None:  # noqa: FBT001 (a table)
    answer = etag_gzip.lean(request(accept_encoding=accepted), PlainTextResponse("x" * 5000))
    assert ("content-encoding" in answer.headers) == is_taken


SITES = {"same-origin": True, "none": True, "cross-site": False, "same-site": False, "anything": False}


@pytest.mark.parametrize(("site", "is_packed"), SITES.items())
def test_no_answer_to_a_request_of_another_site_is_compressed(
    program: Visitor,
    site: str,
    is_packed: bool,  # noqa: FBT001 (a table)
) -> None:
    answer = program.get("/schedules?match=guess", headers={**GZIP, "sec-fetch-site": site})
    assert answer.status_code == 200
    assert ("content-encoding" in answer.headers) == is_packed


def test_a_short_answer_is_not_compressed(program: Visitor) -> None:
    assert "content-encoding" not in program.get("/static/beat.svg", headers=GZIP).headers
    assert "content-encoding" not in program.get("/healthz", headers=GZIP).headers


def test_a_streamed_answer_passes_unchanged() -> None:
    streamed = StreamingResponse(iter([b"x" * 5000]), media_type="text/plain")
    assert etag_gzip.lean(request(**{"accept-encoding": "gzip"}), streamed) is streamed
    assert "etag" not in streamed.headers
    assert "content-encoding" not in streamed.headers


@pytest.mark.parametrize("path", POLLED)
def test_a_poll_of_an_unchanged_page_is_a_304_without_a_body(program: Visitor, path: str) -> None:
    program.get(path)  # from now on it has its cookie
    first = poll(program, path)
    shown = first.text
    wait_until(lambda: program.get(path).text != shown, 10)  # clocks go on
    again = poll(program, path, first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == "no-store"
    assert "content-length" not in again.headers
    assert "x-content-type-options" in again.headers


def test_a_poll_of_a_page_that_has_changed_gets_all_of_it(program: Visitor, crew: Crew) -> None:
    for path in ("/", "/schedules", "/schedules/report"):
        program.get(path)
        tag = poll(program, path).headers["etag"]
        assert poll(program, path, tag).status_code == 304
        crew.client.pause("report", reason=f"seen on {path}")
        changed = poll(program, path, tag)
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag
        crew.client.resume("report")


def test_a_scheduler_that_no_longer_checks_changes_the_page(program: Visitor, store: Store) -> None:
    program.get("/")
    alive(store, ago=1)
    first = poll(program, "/")
    assert "checked just now" in first.text
    alive(store, ago=2)
    assert poll(program, "/", first.headers["etag"]).status_code == 304
    alive(store, ago=12)
    late = poll(program, "/", first.headers["etag"])
    assert late.status_code == 200
    assert "checked just now" not in late.text


NAMED = {
    "{tag}": 304, "{strong}": 304, '"a", {tag}': 304, "*": 304,
    'W/"other"': 200, "{opaque}": 200, '"{tag}"': 200, "": 200,
}  # fmt: skip


@pytest.mark.parametrize(("named", "status"), NAMED.items())
def test_if_none_match_is_compared_weakly(program: Visitor, named: str, status: int) -> None:
    path = f"{V1}/openapi.json"
    tag = program.get(path).headers["etag"]
    strong = tag.removeprefix("W/")
    sent = named.format(tag=tag, strong=strong, opaque=strong.strip('"'))
    assert program.get(path, headers={"if-none-match": sent}).status_code == status


@pytest.mark.parametrize("path", ["/schedules", f"{V1}/openapi.json", "/static/beat.css"])
def test_one_tag_stands_for_an_answer_in_every_coding_and_for_its_head(program: Visitor, path: str) -> None:
    program.get(path)
    plain, packed = program.get(path, headers={"accept-encoding": "identity"}), program.get(path, headers=GZIP)
    head = program.ask("HEAD", path, headers=GZIP)
    assert {each.headers["etag"] for each in (plain, packed, head)} == {plain.headers["etag"]}
    assert abs(on_the_wire(head) - on_the_wire(packed)) <= SEVERAL, "clocks go on"
    for method in ("GET", "HEAD"):
        for coding in ("identity", "gzip"):
            again = {"accept-encoding": coding, "if-none-match": plain.headers["etag"]}
            answer = program.ask(method, path, headers=again)
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["vary"] == "accept-encoding"
            assert "content-encoding" not in answer.headers


def test_any_change_of_a_body_changes_its_tag() -> None:
    bodies = ["", "a", "b", "a ", '<i data-at="5">in 4 s</i>', '<i data-at="6">in 4 s</i>', '<i at="5">in 4 s</i>']
    pages = [HTMLResponse(each) for each in bodies] + [PlainTextResponse(each) for each in bodies]
    tags = [etag_gzip.lean(request(), page).headers["etag"] for page in pages]
    assert len(set(tags[: len(bodies)])) == len(set(tags[len(bodies) :])) == len(bodies)
    counted = etag_gzip.lean(request(), HTMLResponse('<i data-at="5">in 3 s</i>')).headers["etag"]
    assert counted == tags[4], "an open page counts by itself"


def test_answers_of_the_api_are_asked_for_again_by_their_tag(program: Visitor, crew: Crew) -> None:
    path = f"{V1}/schedules/report/history"
    first = program.get(path)
    assert first.headers["cache-control"] == "private, no-cache"
    again = {"if-none-match": first.headers["etag"]}
    assert program.get(path, headers=again).status_code == 304
    crew.client.trigger("report")
    assert program.get(path, headers=again).status_code == 200


def test_a_change_is_made_whatever_the_client_has(program: Visitor) -> None:
    answer = program.ask("POST", f"{V1}/schedules/report/trigger", json={}, headers={"if-none-match": "*"})
    assert answer.status_code == 201
    assert "etag" not in answer.headers


def test_a_refusal_has_no_tag(program: Visitor) -> None:
    answer = program.get("/nowhere", headers={"if-none-match": "*"})
    assert answer.status_code == 404
    assert "etag" not in answer.headers


def test_static_files_are_asked_for_again_by_their_tag(program: Visitor) -> None:
    for name, kind in (("beat.css", "text/css"), ("beat.js", "text/javascript"), ("beat.svg", "image/svg+xml")):
        first = program.get(f"/static/{name}", headers=GZIP)
        assert first.headers["content-type"].startswith(kind)
        again = program.get(f"/static/{name}", headers={**GZIP, "if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_mounted_page_saves_bytes_too(crew: Crew) -> None:
    visitor = Visitor(Starlette(routes=[Mount("/admin/beat", create_app(crew.url))]))
    visitor.get("/admin/beat/schedules")
    first = poll(visitor, "/admin/beat/schedules")
    assert first.headers["content-encoding"] == "gzip"
    assert poll(visitor, "/admin/beat/schedules", first.headers["etag"]).status_code == 304


def test_every_page_of_many_schedules_fits_its_budget(store: Store, server: PrivateRedis) -> None:
    deploy(store, *(daily(f"s{n:06d}", description=f"Takes care of number {n}") for n in range(320)))
    suite.lived(SimpleNamespace(redis=store.client, now=lambda: clock.now().timestamp()), 320)  # type: ignore[arg-type]
    alive(store)
    (run,) = Client(server.url).history("s000003", outcome="succeeded", limit=1)
    assert isinstance(run, Fired)
    paths = ["/", "/schedules", "/schedules?sort=last", "/schedules?match=1", "/schedules?after=s000100", "/system"]
    paths += [f"/schedules/s000003{each}" for each in ("", "/run", "/pause", "/reschedule", f"/runs/{run.job_id}")]
    visitor = Visitor.of(server.url, headers=GZIP)
    wait_until(lambda: "strip-room" not in visitor.get("/").text)
    for path in [*paths, "/api"]:
        answer = visitor.get(path)
        assert answer.status_code == 200
        assert on_the_wire(answer) <= LARGEST, path
