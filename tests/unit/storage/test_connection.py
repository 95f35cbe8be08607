"""Clients of our own: they go where the other went, and send no command twice."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
from redis import BlockingConnectionPool, ConnectionPool, Redis, SSLConnection, exceptions
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from beat.storage import connection, scripts
from tests.resilience import harm
from tests.resilience.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.dev.embedded import PrivateRedis


@pytest.fixture
def proxy(server: PrivateRedis) -> Iterator[Proxy]:
    with Redis.from_url(server.url) as client:
        client.flushall()
        client.script_flush()
    with Proxy(server.url, {scripts.script(name).sha: name for name in scripts.names()}) as made:
        yield made


def kwargs(client: Redis) -> dict[str, Any]:
    found: dict[str, Any] = client.connection_pool.connection_kwargs
    return found


# --- where it goes ---------------------------------------------------------------------------------------------------


def test_a_url_is_followed() -> None:
    with connection.connect("redis://ops:s3cret@redis.example:7000/3") as client:
        found = kwargs(client)
    wanted = {"host": "redis.example", "port": 7000, "db": 3, "username": "ops", "password": "s3cret"}
    assert {name: found[name] for name in wanted} == wanted


def test_the_client_of_somebody_else_is_followed() -> None:
    wanted: dict[str, Any] = {"host": "redis.example", "port": 7000, "db": 3, "username": "ops", "password": "s3cret"}
    with Redis(**wanted, client_name="app") as theirs, connection.connect(theirs) as ours:
        found = kwargs(ours)
        assert {name: found[name] for name in wanted} == wanted
        assert found["client_name"] == "app"
        assert ours.connection_pool is not theirs.connection_pool


def test_encryption_is_kept() -> None:
    asked: dict[str, Any] = {
        "ssl_cert_reqs": "none",
        "ssl_ca_certs": "/ca.pem",
        "ssl_min_version": ssl.TLSVersion.TLSv1_2,
    }
    with Redis(host="redis.example", ssl=True, **asked) as theirs, connection.connect(theirs) as ours:
        assert issubclass(ours.connection_pool.connection_class, SSLConnection)
        assert {name: kwargs(ours)[name] for name in asked} == asked


def test_a_socket_is_kept(server: PrivateRedis) -> None:
    with Redis(unix_socket_path=str(server.socket), db=2) as theirs, connection.connect(theirs) as ours:
        assert ours.ping()
        ours.set("where", "two")
        assert theirs.get("where") == b"two"
        ours.delete("where")


def test_time_outs_are_kept_and_there_always_are_some() -> None:
    with Redis(socket_timeout=1.5, socket_connect_timeout=2.5) as theirs, connection.connect(theirs) as ours:
        assert (kwargs(ours)["socket_timeout"], kwargs(ours)["socket_connect_timeout"]) == (1.5, 2.5)
    with Redis(socket_timeout=None, socket_connect_timeout=None) as theirs, connection.connect(theirs) as ours:
        assert (kwargs(ours)["socket_timeout"], kwargs(ours)["socket_connect_timeout"]) == (5, 5)
    with connection.connect("redis://localhost") as client:
        assert (kwargs(client)["socket_timeout"], kwargs(client)["socket_connect_timeout"]) == (5, 5)


@pytest.mark.parametrize("pool_class", [ConnectionPool, BlockingConnectionPool])
def test_any_pool_will_do(server: PrivateRedis, pool_class: type[ConnectionPool]) -> None:
    pool = pool_class.from_url(server.url, max_connections=3)
    theirs = Redis(connection_pool=pool)
    with connection.connect(theirs) as ours:
        assert ours.ping()
    pool.disconnect()


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_are_bytes_whatever_the_other_client_wanted(server: PrivateRedis, protocol: int) -> None:
    options: dict[str, Any] = {"decode_responses": True, "protocol": protocol}
    with Redis.from_url(server.url, **options) as theirs, connection.connect(theirs) as ours:
        ours.hset("h", "a", "1")
        assert theirs.hgetall("h") == {"a": "1"}
        assert ours.hgetall("h") == {b"a": b"1"}
        ours.zadd("z", {"a": 1})
        assert ours.eval("return redis.call('ZRANGE', 'z', 0, -1, 'WITHSCORES')", 0) == [b"a", b"1"]
        assert theirs.get_encoder().decode_responses, "theirs stays as it was"
        ours.delete("h", "z")


# --- sent once -------------------------------------------------------------------------------------------------------


def clients(url: str) -> dict[str, Any]:
    patient = Retry(ExponentialBackoff(), 3)
    return {
        "a url": url,
        "a client that retries": Redis.from_url(url, retry=patient, retry_on_error=[exceptions.ConnectionError]),
        "a client as it comes": Redis(port=int(url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])),
        "a client that retries time-outs": Redis.from_url(url, retry_on_timeout=True, socket_timeout=0.2),
    }


@pytest.mark.parametrize(
    "kind", ["a url", "a client that retries", "a client as it comes", "a client that retries time-outs"]
)
@pytest.mark.parametrize(
    "fault", [harm.drop_reply(), harm.cut(), harm.swallow_reply()], ids=["reply", "command", "silence"]
)
def test_no_command_is_sent_twice(proxy: Proxy, kind: str, fault: harm.Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_TIMEOUT_S", 0.2)
    every = clients(proxy.url)
    source = every[kind]
    if isinstance(source, Redis):
        source.connection_pool.connection_kwargs["socket_timeout"] = 0.2
    proxy.plan("RPUSH", fault)
    with connection.connect(source) as client, pytest.raises(connection.Errors):
        client.rpush("log", 1)
    assert [command.name for command in proxy.recorded].count("RPUSH") == 1
    for other in every.values():
        if isinstance(other, Redis):
            other.close()


def test_no_pipeline_is_sent_twice(proxy: Proxy) -> None:
    proxy.plan("EXEC", harm.drop_reply())
    with connection.connect(proxy.url) as client, client.pipeline() as pipe:
        pipe.rpush("log", 1)
        with pytest.raises(connection.Errors):
            pipe.execute()
        assert client.llen("log") == 1


def test_the_next_command_finds_a_new_connection(proxy: Proxy) -> None:
    proxy.plan("RPUSH", harm.drop_reply())
    with connection.connect(proxy.url) as client:
        with pytest.raises(connection.Errors):
            client.rpush("log", 1)
        assert client.rpush("log", 2) == 2


# --- scripts ---------------------------------------------------------------------------------------------------------


def take(client: Redis, key: str = "beat:lock:x") -> Any:
    return connection.run(client, "acquire", lock=key, token="t", ttl=10_000)  # noqa: S106 (no secret)


def test_a_script_that_the_server_does_not_know_is_sent_whole_once(proxy: Proxy) -> None:
    with connection.connect(proxy.url) as client:
        assert [take(client), take(client)] == [b"OK", b"HELD"]
        client.delete("beat:lock:x")
    names = [command.name for command in proxy.recorded if "acquire" in command.name]
    assert names == ["evalsha acquire", "eval acquire", "evalsha acquire"]


def test_a_script_whose_reply_was_lost_is_not_sent_again(proxy: Proxy) -> None:
    with connection.connect(proxy.url) as client:
        take(client, "beat:lock:y")
        proxy.plan("evalsha acquire", harm.drop_reply())
        with pytest.raises(connection.Errors):
            take(client)
        assert take(client) == b"HELD", "it had happened"
        client.delete("beat:lock:x", "beat:lock:y")


@pytest.mark.parametrize(
    "named",
    [
        {"lock": "k", "token": "t"},
        {"lock": "k", "token": "t", "ttl": 1, "more": 1},
        {"lock": "k", "token": "t", "tll": 1},
        {},
    ],
    ids=["too few", "too many", "misspelt", "none"],
)
def test_wrong_names_are_a_type_error_and_nothing_is_sent(proxy: Proxy, named: dict[str, Any]) -> None:
    with connection.connect(proxy.url) as client:
        with pytest.raises(TypeError, match=r"acquire\.lua takes \['lock', 'token', 'ttl'\], not"):
            connection.run(client, "acquire", **named)
        assert proxy.recorded == []


def test_a_server_that_is_not_there_is_an_error_of_ours(proxy: Proxy) -> None:
    proxy.refuse()
    with connection.connect(proxy.url) as client, pytest.raises(connection.Errors):
        client.ping()


# --- who may not -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "forbidden"),
    [
        (exceptions.NoPermissionError("User few has no permissions to run the 'info' command"), True),
        (exceptions.AuthenticationError("invalid username-password pair"), True),
        (exceptions.ResponseError("ACL failure in script: User few has no permissions to run the 'set' command"), True),
        (exceptions.ResponseError("NOPERM Redis does not let this user do hset with beat:schedule:x"), True),
        (
            exceptions.ResponseError("The user executing the script can't run this command or subcommand script: 1"),
            True,
        ),
        (exceptions.ResponseError("WRONGTYPE Operation against a key"), False),
        (exceptions.ConnectionError("NOPERM is no reason to be away"), False),
    ],
    ids=["command", "password", "in a script", "by a script", "in a script of Redis 7.0", "another error", "away"],
)
def test_a_refusal_for_want_of_rights_is_known(error: Exception, *, forbidden: bool) -> None:
    assert connection.forbids(error) is forbidden
