"""Registering over a line that is asked ahead: pages overlap; when it breaks, nothing is lost, doubled or mixed up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.engine import registrar
from beat.engine.registrar import Sync
from beat.jobs import job_template
from beat.schedule.schedule import Schedule
from beat.storage import connection, scripts
from beat.storage.keys import Keys
from beat.storage.messages import Reply, Sight
from beat.storage.pipelined import Dialogue
from beat.timing.interval import Every
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support.builders import registration, second, text
from tests.support.chance import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.engine.events import Event
    from beat.storage.store import Store

SCRIPTS = {scripts.script(name).sha: name for name in ("look", "register", "announce")}
IDS = [f"s{n:03d}" for n in range(12 * registrar._PAGE + 7)]  # noqa: SLF001


def schedule(schedule_id: str, **given: Any) -> Schedule:
    return Schedule(**{"id": schedule_id, "func": "app.tasks.report", "timing": Every("1h"), **given})


class Beat:
    """The part of a beat that registers, through its own line."""

    def __init__(self, url: str, **given: Any) -> None:
        self.events: list[Event] = []
        self.desk = Dialogue(connection.connect(url), Keys())
        self.sync = Sync(self.desk, [schedule(each, **given) for each in IDS], beat="b", emit=self.events.append)

    def start(self) -> Beat:
        self.sync.announce()
        self.sync.register()
        return self

    def told(self) -> list[tuple[str, Any]]:
        return [(event.name, event.fields) for event in self.events]


@pytest.fixture
def proxy(redis: Redis, server: PrivateRedis) -> Iterator[Proxy]:  # noqa: ARG001 (it empties the server)
    with Proxy(server.url, SCRIPTS) as made:
        connection.connect(server.url).script_flush()
        for name in SCRIPTS.values():
            connection.connect(server.url).script_load(scripts.script(name).text)
        yield made


def whole(redis: Redis) -> bool:
    """Each is there, written once, with its job and one line in its ledger."""
    assert redis.smembers("beat:schedules") == set(IDS)
    assert redis.zcard("beat:due") == len(IDS)
    assert {redis.hget(f"beat:schedule:{each}", "version") for each in IDS} == {"1"}
    assert {redis.llen(f"beat:runs:{each}") for each in IDS} == {1}
    assert {redis.hget(f"beat:template:{each}", "origin") for each in IDS} == {"default"}
    return True


def test_the_next_page_is_looked_at_before_the_last_is_written(redis: Redis, proxy: Proxy) -> None:
    beat = Beat(proxy.url).start()
    assert whole(redis)
    assert beat.told() == [("registered", {"schedules": len(IDS), "new": len(IDS)})]
    names = [command.name for command in proxy.recorded if command.name in {"evalsha look", "evalsha register"}]
    assert names[:3] == ["evalsha look"] * 3
    assert names.count("evalsha look") == names.count("evalsha register") == 13


def test_nothing_is_written_of_what_stands_as_it_should(redis: Redis, proxy: Proxy) -> None:
    Beat(proxy.url).start()
    before = len(proxy.recorded)
    beat = Beat(proxy.url).start()
    assert whole(redis)
    assert beat.told() == [("registered", {"schedules": len(IDS), "new": 0})]
    assert "evalsha register" not in {command.name for command in proxy.recorded[before:]}


@pytest.mark.parametrize("what", ["evalsha look", "evalsha register"])
@pytest.mark.parametrize("number", [1, 2, 6, 13] if LONG else [1, 13])
@pytest.mark.parametrize("fault", [harm.drop_reply, lambda: harm.before(lambda: None)], ids=["lost reply", "cut"])
def test_a_line_that_breaks_leaves_half_and_the_next_try_the_whole(
    redis: Redis, proxy: Proxy, what: str, number: int, fault: Any
) -> None:
    seen = []

    def is_it(command: Any) -> bool:
        seen.append(command.name)
        return command.name == what and seen.count(what) == number

    beat = Beat(proxy.url)
    proxy.plan(is_it, fault())
    with pytest.raises(connection.Errors):
        beat.start()
    assert beat.desk.client.echo("mine") == b"mine", "no answer is left for somebody else"
    beat.sync.register()
    assert whole(redis)
    assert [event.name for event in beat.events] == ["registered"]


def test_what_goes_wrong_here_leaves_no_answer_for_the_next_question(redis: Redis, proxy: Proxy) -> None:
    beat = Beat(proxy.url)
    beat.sync.announce()
    real, beat.sync._tell = beat.sync._tell, None  # type: ignore[method-assign, assignment]  # noqa: SLF001
    with pytest.raises(TypeError):
        beat.sync.register()
    beat.sync._tell = real  # type: ignore[method-assign]  # noqa: SLF001
    beat.sync.register()
    assert whole(redis)


def test_a_server_that_forgot_the_scripts_is_sent_them_again(redis: Redis, server: PrivateRedis) -> None:
    beat = Beat(server.url)
    beat.sync.announce()
    beat.desk.client.script_flush()
    beat.sync.register()
    assert whole(redis)


# --- what is told of a look ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoilt",
    [
        {"rev": "other"},
        {"state": "paused"},
        {"next_run": "2001-01-01T00:00:00Z"},
        {"due_at": "2001-01-01T00:00:00Z"},
        {"next_run": "garbage", "due_at": "garbage"},
    ],
)
def test_a_look_tells_what_stands_otherwise_and_nothing_else(store: Store, spoilt: dict[Any, Any]) -> None:
    at = second(store) + 3600
    store.register([registration(each, at) for each in ("a", "b", "c")], beat="tests")
    sights = [Sight(each, registration().rev, text(at)) for each in ("a", "b", "c")]
    assert store.looking(sights)().others == {}
    store.client.hset("beat:schedule:b", mapping=spoilt)
    others = store.looking(sights)().others
    assert list(others) == [1]
    assert {name: getattr(others[1], name) for name in spoilt} == spoilt


def test_a_look_tells_what_is_gone_has_no_job_or_is_something_else(store: Store) -> None:
    at = second(store) + 3600
    store.register([registration(each, at) for each in ("a", "b", "c", "d")], beat="tests")
    store.client.delete("beat:schedule:b", "beat:template:c", "beat:schedule:d")
    store.client.set("beat:schedule:d", "text")
    others = store.looking([Sight(each, registration().rev, text(at)) for each in ("a", "b", "c", "d")])().others
    assert (list(others), others[1], others[3]) == ([1, 2, 3], None, None)
    assert others[2]
    assert not others[2].template


# --- templates that several have -------------------------------------------------------------------------------------


def test_each_gets_the_template_of_its_own_item(store: Store) -> None:
    at, kinds = second(store) + 3600, [job_template.template(schedule("x", queue=queue)) for queue in ("one", "two")]
    order = [0, 0, 1, 1, 0, 1]
    items = [registration(f"s{n}", at, template=kinds[kind]) for n, kind in enumerate(order)]
    store.client.hset("beat:template:s1", "stranger", "1")
    assert store.register(items, beat="tests") == [Reply("NEW")] * 6
    for n, kind in enumerate(order):
        assert store.client.hgetall(f"beat:template:s{n}") == {k.encode(): v for k, v in kinds[kind].items()}
        assert store.client.pttl(f"beat:template:s{n}") == -1


def test_a_template_is_there_for_the_others_when_the_first_that_has_it_is_refused(store: Store) -> None:
    store.client.set("beat:schedule:a", "text")
    at = second(store) + 3600
    items = [registration(each, at) for each in ("a", "b", "c")]
    assert [reply.code for reply in store.register(items, beat="tests")] == ["BADTYPE", "NEW", "NEW"]
    assert store.client.hgetall("beat:template:b") == store.client.hgetall("beat:template:c") != {}
    assert not store.client.exists("beat:template:a")
    store.client.delete("beat:schedule:a")
