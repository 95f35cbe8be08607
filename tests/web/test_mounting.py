"""The page under a prefix: every address on every page is below it, and answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from beat import Client
from beat.config.settings import Settings
from beat.web import create_app
from beat.web.app import served
from tests.web.inhabited import inhabited
from tests.web.visitor import Visitor, crawled

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PREFIX = "/admin/beat"


@pytest.fixture(params=["web_starlette", "web_fastapi"])
def visitor(
    request: pytest.FixtureRequest,
    server: PrivateRedis,
    redis: Redis,  # noqa: ARG001 (emptied)
    monkeypatch: pytest.MonkeyPatch,
) -> Visitor:
    """Somebody who has signed in to the example."""
    monkeypatch.setenv("BEAT_REDIS_URL", server.url)
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
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
    visitor: Visitor, server: PrivateRedis, store: Store
) -> None:
    inhabited(store, server)
    seen = dict(crawled(visitor, PREFIX))
    wrong = {path: status for path, status in seen.items() if status >= 400 or not path.startswith(f"{PREFIX}/")}
    assert wrong == {}
    assert {
        f"{PREFIX}/{each}" for each in ("", "static/beat.css", "theme", "schedules", "schedules/fragile", "system")
    } <= {path.partition("?")[0] for path in seen}


@pytest.mark.parametrize("asked", [f"{PREFIX}/", "/"], ids=["the proxy leaves the path", "the proxy takes it away"])
def test_a_page_behind_a_proxy_is_below_its_path(asked: str, redis: Redis, server: PrivateRedis) -> None:
    redis.flushall()
    visitor = Visitor(served(Settings(web_path=PREFIX, redis_url=server.url), Client(server.url)))
    assert visitor.get(asked).status_code == 200
    assert f'action="{PREFIX}/theme"' in visitor.get(asked).text
    below = asked.removesuffix("/")
    assert visitor.get(f"{below}/static/beat.css").status_code == 200
    assert visitor.get(f"{below}/theme?back=/schedules").headers["location"] == f"{PREFIX}/schedules"
    assert visitor.get(PREFIX).headers["location"] == f"{PREFIX}/"
    assert visitor.get(f"{below}/nowhere").status_code == 404


def test_the_colours_of_a_mounted_page_lead_back_to_it(visitor: Visitor) -> None:
    answer = visitor.get(f"{PREFIX}/theme?to=dark&back=/schedules%3Fq%3Dx")
    assert answer.headers["location"] == f"{PREFIX}/schedules?q=x"
    assert f"Path={PREFIX}/" in answer.headers["set-cookie"]


@pytest.mark.parametrize("prefix", ["/größe", "/日本", '/a "b"<c>;d'], ids=["latin", "far", "odd"])
def test_a_prefix_may_have_any_letters(prefix: str, server: PrivateRedis) -> None:
    around = Visitor(Starlette(routes=[Mount(prefix, create_app(server.url))]))
    answer = around.get(f"{prefix}/nowhere")
    assert answer.status_code == 404
    assert f'action="{quote(prefix)}/theme"' in answer.text
    assert f"Path={quote(prefix)}/;" in answer.headers["set-cookie"]


def test_a_prefix_that_begins_another_path_is_no_prefix(server: PrivateRedis) -> None:
    around = Visitor(Starlette(routes=[Mount("/s", create_app(server.url))]))
    answer = around.get("/s/schedules-of-mine")
    assert answer.status_code == 404
    assert 'hx-get="/s/schedules-of-mine"' in answer.text
