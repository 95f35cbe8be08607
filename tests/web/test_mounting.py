"""The page under a prefix: every address on every page is below it, and answers."""

from __future__ import annotations

import importlib.util
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from beat.web import create_app
from tests.beats import Beat
from tests.files import lay_out
from tests.web.visitor import HOST, Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.embedded import PrivateRedis

EXAMPLE = Path(__file__).parent.parent.parent / "examples/web_starlette.py"
PREFIX = "/admin/beat"
MOST = 60
ADDRESSES = re.compile(r"""<(?P<tag>\w+)\b[^>]*?\b(?:href|src|action|hx-get|hx-post|formaction)="(?P<to>[^"]*)\"""")
TASKS = """
from beat import periodic

@periodic(every="1s", queue="nobody", description="<b>bold</b>")
def tick(): ...

@periodic("0 9 * * *", tz="Europe/Berlin", enabled=False)
def daily(): ...
"""


@pytest.fixture
def visitor(server: PrivateRedis, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Visitor:  # noqa: ARG001 (emptied)
    """Somebody who has signed in to the example."""
    monkeypatch.setenv("BEAT_REDIS_URL", server.url)
    spec = importlib.util.spec_from_file_location("web_starlette", EXAMPLE)
    assert spec
    assert spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return Visitor(example.app, headers={"x-user": "ann"})


def test_only_whom_the_application_lets_in_sees_the_page(visitor: Visitor) -> None:
    assert visitor.get("/", headers={}).text == "my application\n"
    assert visitor.get(f"{PREFIX}/").status_code == 200
    assert visitor.get(f"{PREFIX}/", headers={}).status_code == 403
    assert visitor.get(f"{PREFIX}/static/beat.css", headers={}).status_code == 403
    assert urlsplit(visitor.get(PREFIX).headers["location"]).path == f"{PREFIX}/"


def test_every_address_on_every_page_is_below_the_prefix_and_answers(
    visitor: Visitor, server: PrivateRedis, home: Path
) -> None:
    lay_out(home, {"tasks.py": TASKS, "pyproject.toml": ""})
    with Beat(home, server.url) as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    seen = dict(_crawled(visitor))
    for page in ("schedules", "system"):
        if seen.get(f"{PREFIX}/{page}") == 404:
            del seen[f"{PREFIX}/{page}"]  # it is not built yet
    wrong = {path: status for path, status in seen.items() if status >= 400 or not path.startswith(f"{PREFIX}/")}
    assert wrong == {}
    assert {f"{PREFIX}/", f"{PREFIX}/static/beat.css", f"{PREFIX}/theme"} <= {path.partition("?")[0] for path in seen}


def _crawled(visitor: Visitor) -> Iterator[tuple[str, int]]:
    """Every address that a browser finds from the first page on, with the status of its answer."""
    waiting, seen = [f"{PREFIX}/"], {f"{PREFIX}/"}
    while waiting and len(seen) < MOST:
        here = waiting.pop(0)
        answer = visitor.get(here)
        yield here, 200 if answer.status_code == 405 else answer.status_code  # a form, that is sent by POST
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        assert f'"{PREFIX}/static/' in answer.text
        for found in ADDRESSES.finditer(answer.text):
            to = urljoin(f"{HOST}{here}", unescape(found["to"])).partition("#")[0]
            path = to.removeprefix(HOST)
            if path not in seen and not (found["tag"] == "a" and not to.startswith(HOST)):
                seen.add(path)
                waiting.append(path)


def test_the_colours_of_a_mounted_page_lead_back_to_it(visitor: Visitor) -> None:
    answer = visitor.get(f"{PREFIX}/theme?to=dark&back=/schedules%3Fq%3Dx")
    assert answer.headers["location"] == f"{PREFIX}/schedules?q=x"
    assert f"Path={PREFIX}/" in answer.headers["set-cookie"]


def test_a_prefix_that_begins_another_path_is_no_prefix(server: PrivateRedis) -> None:
    around = Visitor(Starlette(routes=[Mount("/s", create_app(server.url))]))
    answer = around.get("/s/schedules-of-mine")
    assert answer.status_code == 404
    assert 'hx-get="/s/schedules-of-mine"' in answer.text
