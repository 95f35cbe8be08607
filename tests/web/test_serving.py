"""How the page is served: a few answers at a time, kept for a while, and again when its server has ended."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.responses import Response

from beat import Client
from beat.config.settings import Settings
from beat.web.auth import Access
from beat.web.server import Serving
from beat.web.service import Page
from beat.web.site import Site
from tests.support.facts import wait_until
from tests.support.scraping import get

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.engine.events import Event
    from beat.web.request import Asked

NOWHERE = "redis://127.0.0.1:1/0"


def served(handler: Callable[[Site, Asked], Response], at_once: int = 8) -> Serving:
    site = Site(Client(NOWHERE), Access(), at_once)
    return Serving(Starlette(routes=[site.route("/", handler)]), "127.0.0.1", 0)


def test_so_many_answers_are_made_at_a_time_and_no_more() -> None:
    inside, most, turn = 0, 0, threading.Condition()

    def work(_site: Site, _asked: Asked) -> Response:
        nonlocal inside, most
        with turn:
            inside, most = inside + 1, max(most, inside + 1)
            turn.notify_all()
            turn.wait_for(lambda: most == 3, 10)  # so many were there at the same time
            inside -= 1
        return Response()

    with served(work, at_once=3) as serving, ThreadPoolExecutor(12) as crowd:
        answers = crowd.map(lambda _: get(serving.port, "/").status, range(12))
        assert list(answers) == [200] * 12
    assert most == 3


def test_an_answer_that_takes_long_keeps_neither_the_server_nor_the_process_from_ending() -> None:
    go, daemons = threading.Event(), list[bool]()

    def work(_site: Site, _asked: Asked) -> Response:
        daemons.append(threading.current_thread().daemon)
        go.wait(30)
        return Response()

    with served(work) as serving, socket.create_connection(("127.0.0.1", serving.port)) as asking:
        asking.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_until(lambda: daemons)
        serving.stop()
        wait_until(lambda: not serving.is_alive)
    assert daemons == [True]
    go.set()


def test_what_is_kept_is_made_once_and_again_when_it_is_old() -> None:
    site, made = Site(Client(NOWHERE), Access()), list[str]()

    def make() -> int:
        made.append("")
        return len(made)

    assert [site.kept("a", 60, make), site.kept("a", 60, make), site.kept("b", 60, make), site.kept("a", 0, make)] == [
        1,
        1,
        2,
        3,
    ]
    for number in range(300):
        site.kept(f"asked for {number}", 60, make)
    assert site.kept("a", 60, make) == 304  # it was let go of: what is kept does not grow for ever


def test_a_page_beside_a_beat_is_served_again_when_its_server_has_ended() -> None:
    told: list[Event] = []
    page = Page(Settings(web_port=0), NOWHERE, told.append)
    stopping = threading.Event()
    (event,) = told
    port = int(event.fields["address"].rstrip("/").rpartition(":")[2])
    assert get(port, "/").status == 503
    page._serving._server.should_exit = True  # noqa: SLF001 (a bug of somebody else's)
    with pytest.raises(RuntimeError, match="ended by itself"):
        page.run(stopping)
    again = threading.Thread(target=page.run, args=(stopping,))
    again.start()
    wait_until(lambda: _answers(port))
    stopping.set()
    again.join(10)
    assert not again.is_alive()
    assert not _answers(port)


def _answers(port: int) -> bool:
    try:
        return get(port, "/").status == 503
    except OSError:
        return False


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")])  # noqa: S104
def test_the_address_is_one_that_a_browser_can_open(host: str, shown: str) -> None:
    serving = Serving(_nobody, host, 0)
    assert serving.address == f"http://{shown}:{serving.port}"
    serving.stop()


async def _nobody(*_: object) -> None:
    """An app."""
