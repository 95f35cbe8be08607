"""How the page is served: a few answers at a time, kept for a while, and again when its server has ended."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from starlette.exceptions import HTTPException

from beat.client import Client
from beat.settings import Settings
from beat.web.access import Access
from beat.web.companion import Page
from beat.web.serving import Serving
from beat.web.site import Site
from beat.web.turns import Turns
from tests.facts import wait_until
from tests.scraping import get

if TYPE_CHECKING:
    from beat.event import Event

NOWHERE = "redis://127.0.0.1:1/0"


def test_so_many_answers_are_made_at_a_time_and_no_more() -> None:
    inside, most, turn = 0, 0, threading.Condition()

    def work(number: int) -> int:
        nonlocal inside, most
        with turn:
            inside, most = inside + 1, max(most, inside + 1)
            turn.notify_all()
            turn.wait_for(lambda: most == 3, 10)  # so many were there at the same time
            inside -= 1
        return number

    async def crowd() -> list[int]:
        turns = Turns(3)
        return await asyncio.gather(*(turns.take(work, n) for n in range(12)))

    assert asyncio.run(crowd()) == list(range(12))
    assert most == 3


def test_who_comes_when_all_places_are_taken_is_told_to_come_again() -> None:
    go = threading.Event()

    async def crowd() -> list[object]:
        turns = Turns(1, most=2)
        waiting = [asyncio.ensure_future(turns.take(go.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HTTPException, match="come again") as refused:
            await turns.take(go.wait)
        go.set()
        done = [*await asyncio.gather(*waiting), refused.value.status_code]
        return [*done, await turns.take(go.wait)]  # there is room again

    assert asyncio.run(crowd()) == [True, True, 503, True]


def test_what_an_answer_raises_is_raised_where_it_was_asked_for() -> None:
    def fails() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        asyncio.run(Turns(1).take(fails))


def test_nobody_waits_for_an_answer_when_all_has_ended() -> None:
    go, done = threading.Event(), threading.Event()

    def slow() -> None:
        go.wait(10)
        done.set()

    async def asked_and_gone() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Turns(1).take(slow), 0.01)

    asyncio.run(asked_and_gone())
    go.set()
    assert done.wait(10)  # its loop is closed, which is nobody's trouble


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
