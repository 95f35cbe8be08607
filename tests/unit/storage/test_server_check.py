"""What a Redis must be, and what an operator should know about one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions

from beat.dev import embedded
from beat.errors import NoRedis
from beat.storage import connection, server_check
from tests.process.commands import called

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

WELL: dict[str, Any] = {
    "redis_version": "7.2.4", "redis_mode": "standalone", "cluster_enabled": 0, "role": "master",
    "maxmemory_policy": "noeviction", "aof_enabled": 1,
}  # fmt: skip


class Client:
    """Answers PING and INFO, or raises."""

    def __init__(
        self,
        info: Mapping[str, Any] | Exception,
        ping: Exception | None = None,
        user: str | None = None,
        password: str | None = "s3cret",  # noqa: S107 (it must not be shown)
    ) -> None:
        self._info, self._ping = info, ping
        kwargs = {"username": user, "password": password}
        self.connection_pool = SimpleNamespace(connection_kwargs=kwargs)

    def ping(self) -> bool:
        if self._ping:
            raise self._ping
        return True

    def info(self) -> Mapping[str, Any]:
        if isinstance(self._info, Exception):
            raise self._info
        return self._info


def inspect(client: Any) -> tuple[str, list[str]]:
    return server_check.inspect(client)


def refused(client: Client) -> str:
    with pytest.raises(NoRedis) as caught:
        inspect(client)
    assert caught.value.exit_code == 69
    message = str(caught.value)
    assert "s3cret" not in message
    assert "\n" not in message
    return message


def test_a_good_server_has_a_name_and_needs_no_advice() -> None:
    assert inspect(Client(WELL)) == ("Redis 7.2.4", [])


def test_a_valkey_is_called_by_its_own_name() -> None:
    assert inspect(Client({**WELL, "valkey_version": "9.1.0"}))[0] == "Valkey 9.1.0"


@pytest.mark.parametrize("version", ["7.0.0", "7.0", "7.4.1", "8.0.2", "10.0.0", "255.255.255", "7.9.225-rc1"])
def test_new_enough_is_new_enough(version: str) -> None:
    assert inspect(Client({**WELL, "redis_version": version}))[1] == []


@pytest.mark.parametrize("version", ["6.2.14", "6.0", "5.0.7", "2.8.19", "6.255.999"])
def test_an_old_server_is_refused(version: str) -> None:
    assert refused(Client({**WELL, "redis_version": version})).startswith(
        f"this is Redis {version}, and beat needs 7.0"
    )


@pytest.mark.parametrize("found", [{"cluster_enabled": 1}, {"redis_mode": "cluster"}])
def test_a_cluster_is_refused(found: dict[str, Any]) -> None:
    assert "is a cluster, where RQ cannot work" in refused(Client({**WELL, **found}))


@pytest.mark.parametrize("role", ["slave", "replica"])
def test_a_replica_is_refused_and_its_master_named(role: str) -> None:
    found = {**WELL, "role": role, "master_host": "10.0.0.1", "master_port": 6379}
    assert "is a replica of 10.0.0.1:6379, and takes no writes" in refused(Client(found))


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru", "allkeys-random", "volatile-ttl"])
def test_a_policy_that_throws_keys_away_is_warned_of(policy: str) -> None:
    (words,) = inspect(Client({**WELL, "maxmemory_policy": policy}))[1]
    assert policy in words
    assert "noeviction" in words


def test_a_server_without_a_log_is_warned_of() -> None:
    (words,) = inspect(Client({**WELL, "aof_enabled": 0}))[1]
    assert "appendonly" in words


def test_a_server_that_hides_what_it_is_is_taken_as_it_is() -> None:
    name, advice = inspect(Client(exceptions.NoPermissionError("no INFO for you")))
    assert name == "a Redis"
    assert "INFO" in advice[0]
    assert inspect(Client({})) == ("Redis unknown", [])


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AuthenticationError("Authentication required."),
        exceptions.AuthenticationError("invalid username-password pair or user is disabled."),
        exceptions.ResponseError("WRONGPASS invalid username-password pair"),
        exceptions.NoPermissionError("this user has no permissions to run the 'ping' command"),
    ],
    ids=lambda error: f"{type(error).__name__} {error}",
)
@pytest.mark.parametrize("user", [None, "ops"])
def test_who_may_not_enter_is_named(error: Exception, user: str | None) -> None:
    assert repr(user or "default") in refused(Client(WELL, ping=error, user=user))


def test_a_password_in_the_place_of_the_name_is_not_shown() -> None:
    wrong = exceptions.AuthenticationError("invalid username-password pair or user is disabled.")
    assert "user '***'" in refused(Client(WELL, ping=wrong, user="s3cret", password=None))
    assert "user 'default'" in refused(Client(WELL, ping=wrong, password=None))


@pytest.mark.parametrize(
    "error",
    [exceptions.ConnectionError("refused"), exceptions.BusyLoadingError("LOADING"), exceptions.ResponseError("?")],
)
def test_a_redis_that_is_away_or_loading_is_not_refused_for_good(error: Exception) -> None:
    with pytest.raises(type(error)):
        inspect(Client(WELL, ping=error))


# --- real servers ----------------------------------------------------------------------------------------------------


def test_the_private_redis_is_good(server: embedded.PrivateRedis) -> None:
    with connection.connect(server.url) as client:
        name, advice = inspect(client)
    assert name.split()[0] in {"Redis", "Valkey"}
    assert advice == []


@pytest.fixture
def guarded(home: Path) -> Iterator[Path]:
    """The socket of a server that asks for a password, and knows a user who may do almost nothing."""
    with embedded.start(home, options=["--requirepass", "s3cret"]) as private:
        with connection.connect(f"unix://:s3cret@{private.socket}") as client:
            client.execute_command("ACL", "SETUSER", "guest", "on", ">s3cret", "~*", "+ping", "+info")
        yield private.socket


@pytest.mark.parametrize(
    "who",
    ["", ":wr0ng@", "default:wr0ng@", "nobody:s3cret@"],
    ids=["no password", "wrong", "wrong for a user", "unknown"],
)
def test_a_wrong_password_is_refused_and_never_shown(guarded: Path, who: str) -> None:
    with connection.connect(f"unix://{who}{guarded}") as client, pytest.raises(NoRedis) as caught:
        inspect(client)
    assert "s3cret" not in str(caught.value)
    assert "wr0ng" not in str(caught.value)
    assert repr("nobody" if "nobody" in who else "default") in str(caught.value)


def test_the_right_password_is_let_in(guarded: Path) -> None:
    with connection.connect(f"unix://:s3cret@{guarded}") as client:
        assert inspect(client)[1] == []


@pytest.mark.parametrize(
    "who", ["", ":wr0ng@", "nobody:s3cret@", "guest:s3cret@"], ids=["no password", "wrong", "unknown", "may do nothing"]
)
def test_beat_run_ends_with_69_and_does_not_tell_the_password(guarded: Path, who: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from beat import periodic\n\n@periodic(every='1h')\ndef tick(): ...\n")
    done = called("run", "tasks", "--redis-url", f"unix://{who}{guarded}", cwd=tmp_path)
    assert done.returncode == 69
    said = (done.stdout + done.stderr).decode()
    assert "s3cret" not in said
    assert "wr0ng" not in said
    assert "Traceback" not in said
