"""`beat health`, as probes ask it: real processes, real heartbeats, and ones that are made up."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.dev import embedded
from beat.timing import clock
from tests.cli.test_run import SECRET, behind_tls
from tests.process.commands import called
from tests.resilience.proxy import Proxy
from tests.support.facts import in_time, wait_until
from tests.support.files import lay_out
from tests.support.process_pool import ROOT
from tests.support.schedulers import TASKS, Beat, Drain

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

HERE = socket.gethostname()
BUDGET_S = 0.3


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"pyproject.toml": "", "tasks.py": TASKS})


class Ward:
    """An installation, its beats made up, and who asks how they are."""

    def __init__(self, here: Path, server: PrivateRedis, store: Store) -> None:
        self.here, self.server, self.store = here, server, store

    def beat(self, name: str, age_s: float | None = 1, *, host: str = HERE, **fields: str) -> None:
        """One that has passed so long ago, or never."""
        passed = {} if age_s is None else {"last_pass": clock.text(self.store.time() - timedelta(seconds=age_s))}
        told = {"host": host, "pid": "7", "version": "1.0", **passed, **fields}
        self.store.heartbeat(told, name=name, ttl=60_000, digest="", announced_ttl=0, judged=0, mark="")

    def asked(self, *arguments: str, **environ: str) -> tuple[int, str, str]:
        """The exit code, and what is written to stdout and to stderr."""
        done = called("health", *arguments, cwd=self.here, **{"BEAT_REDIS_URL": self.server.url, **environ})
        return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def ward(here: Path, server: PrivateRedis, store: Store) -> Ward:
    return Ward(here, server, store)


# --- any beat --------------------------------------------------------------------------------------------------------


def test_no_beat_is_alive(ward: Ward) -> None:
    assert ward.asked() == (1, "no scheduler is running\n", "")


def test_a_beat_that_passes_is_healthy(ward: Ward) -> None:
    ward.beat("web-2-17-ab", 2)
    code, said, words = ward.asked()
    assert (code, words) == (0, "")
    assert re.fullmatch(r"ok: web-2-17-ab passed \d+ s ago\n", said)
    assert 2 <= int(said.split()[-3]) < 30


def test_a_beat_that_has_not_passed_yet_is_not_ready(ward: Ward) -> None:
    ward.beat("web-2", None)
    assert ward.asked() == (1, "not ready: web-2 has not passed yet\n", "")


def test_a_beat_that_no_longer_passes_is_stale(ward: Ward) -> None:
    ward.beat("web-2", 41)
    code, said, _ = ward.asked()
    assert code == 1
    assert re.fullmatch(r"stale: web-2 passed [4-6]\d s ago, and 30s is the most\n", said)


def test_one_fresh_beat_of_many_is_enough(ward: Ward) -> None:
    ward.beat("a", None)
    ward.beat("b", 500)
    ward.beat("c", 3)
    code, said, _ = ward.asked()
    assert code == 0
    assert said.startswith("ok: c passed ")
    assert said.endswith(" s ago; 1 of 3 schedulers is fresh\n")


def test_a_heartbeat_that_has_lapsed_does_not_count(ward: Ward, redis: Any) -> None:
    ward.beat("web-2")
    redis.zadd("beat:instances", {"web-2": clock.to_ms(ward.store.time()) - 1})
    assert ward.asked()[:2] == (1, "no scheduler is running\n")


def test_a_heartbeat_that_lapses_while_we_ask_does_not_count(ward: Ward, redis: Any) -> None:
    ward.beat("web-2")
    redis.delete("beat:instance:web-2")
    assert ward.asked()[:2] == (1, "no scheduler is running\n")


def test_a_pass_in_the_future_is_not_fresh(ward: Ward) -> None:
    """Redis' clock went back, and nobody has passed since."""
    ward.beat("web-2", -3600)
    code, said, _ = ward.asked()
    assert code == 1
    assert " s in the future, and 30s is the most" in said


@pytest.mark.parametrize("written", ["", "abc", "2026-02-31T00:00:00Z", "\x1b[31m"])
def test_a_garbled_pass_is_none(ward: Ward, written: str) -> None:
    ward.beat("web-2", None, last_pass=written)
    assert ward.asked() == (1, "not ready: web-2 has not passed yet\n", "")


def test_a_name_cannot_steer_the_terminal(ward: Ward) -> None:
    ward.beat("web\x1b[31m\n-2", 1000)
    assert "\x1b" not in ward.asked()[1]


@pytest.mark.parametrize("key", ["beat:instance:web-2", "beat:instances"])
def test_a_key_of_the_wrong_kind_holds_no_beat(ward: Ward, redis: Any, key: str) -> None:
    ward.beat("web-2")
    redis.delete(key)
    redis.set(key, "text", px=60_000)
    assert ward.asked() == (1, "no scheduler is running\n", "")
    redis.delete(key)


# --- how old ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_s", "arguments", "environ", "code"),
    [
        (50, ["--max-age", "2m"], {}, 0),
        (50, ["--max-age", "90"], {}, 0),
        (20, ["--max-age", "5s"], {}, 1),
        (20, [], {"BEAT_INTERVAL": "5s"}, 0),
        (50, [], {"BEAT_INTERVAL": "60s"}, 0),
        (150, [], {"BEAT_INTERVAL": "60s"}, 1),
        (50, [], {"BEAT_INTERVAL": "abc"}, 1),
    ],
)
def test_how_old_a_pass_may_be(
    ward: Ward, age_s: float, arguments: list[str], environ: dict[str, str], code: int
) -> None:
    ward.beat("web-2", age_s)
    assert ward.asked(*arguments, **environ)[0] == code


@pytest.mark.parametrize("written", ["", "0", "0s", "-5s", "soon", "1e9", "nan"])
def test_what_is_no_age_is_refused(ward: Ward, written: str) -> None:
    code, said, words = ward.asked("--max-age", written)
    assert (code, said) == (2, "")
    assert words.startswith("error: --max-age ")


# --- this machine ----------------------------------------------------------------------------------------------------


def test_beats_elsewhere_do_not_make_this_machine_healthy(ward: Ward) -> None:
    assert ward.asked("--local")[:2] == (1, f"no scheduler is running on {HERE}\n")
    ward.beat("other", host="elsewhere")
    assert ward.asked("--local")[:2] == (1, f"no scheduler is running on {HERE}; elsewhere 1 is\n")
    ward.beat("more", host="elsewhere")
    assert ward.asked("--local")[:2] == (1, f"no scheduler is running on {HERE}; elsewhere 2 are\n")
    assert ward.asked()[0] == 0


def test_beats_elsewhere_do_not_make_this_machine_ill(ward: Ward) -> None:
    ward.beat("other", 500, host="elsewhere")
    ward.beat("mine")
    code, said, _ = ward.asked("--local")
    assert code == 0
    assert said.startswith("ok: mine passed ")


@pytest.mark.parametrize(("age_s", "words"), [(500, "stale: b passed 50"), (None, "not ready: b has not passed yet")])
def test_all_beats_of_this_machine_must_be_fresh(ward: Ward, age_s: float | None, words: str) -> None:
    for name in ("a", "b", "c"):
        ward.beat(name)
    assert ward.asked("--local")[0] == 0
    ward.beat("b", age_s)
    if age_s is None:
        ward.store.client.hdel("beat:instance:b", "last_pass")
    code, said, _ = ward.asked("--local")
    assert code == 1
    assert said.startswith(words)
    assert said.endswith("; 2 of 3 schedulers are fresh\n")


# --- for programs ----------------------------------------------------------------------------------------------------


def test_a_document_has_every_beat(ward: Ward) -> None:
    ward.beat("a", 2)
    ward.beat("b", None, host="elsewhere")
    code, said, _ = ward.asked("--json")
    told = json.loads(said)
    a, b = told.pop("beats")
    assert code == 0
    clock.read(told.pop("now"))
    assert told == {"schema_version": 1, "healthy": True, "host": None, "max_age": 30.0, "setback": None}
    assert 2 <= a.pop("age") < 10
    clock.read(a.pop("last_pass"))
    assert a == {"name": "a", "host": HERE, "pid": 7, "version": "1.0", "fresh": True}
    assert b == {
        "name": "b", "host": "elsewhere", "pid": 7, "version": "1.0", "last_pass": None, "age": None, "fresh": False,
    }  # fmt: skip


def test_a_document_says_what_is_not_so(ward: Ward) -> None:
    ward.beat("other", host="elsewhere")
    code, said, _ = ward.asked("--local", "--json", "--max-age", "2m")
    told = json.loads(said)
    assert code == 1
    assert (told["healthy"], told["host"], told["max_age"], told["beats"]) == (False, HERE, 120.0, [])


# --- Redis' clock ----------------------------------------------------------------------------------------------------


def test_a_clock_that_went_back_is_told_and_changes_no_exit_code(ward: Ward, redis: Any) -> None:
    ward.beat("a")
    now = ward.store.time().replace(microsecond=0)
    seen, due = now + timedelta(minutes=10), now + timedelta(minutes=10, seconds=1)
    redis.hset("beat:meta", "time", clock.text(seen))
    redis.zadd("beat:due", {"later": clock.to_ms(due) + 60_000, "first": clock.to_ms(due)})
    code, said, _ = ward.asked()
    first, second = said.splitlines()
    assert (code, first[:3]) == (0, "ok:")
    assert second.startswith("Redis' clock went back: it shows ")
    assert second.endswith(f", so nothing fires until {clock.text(due)}")
    document = json.loads(ward.asked("--json")[1])["setback"]
    clock.read(document.pop("now"))
    assert document == {"seen": clock.text(seen), "next_due": clock.text(due)}


@pytest.mark.parametrize("key", ["beat:meta", "beat:due"])
def test_a_key_of_the_wrong_type_says_nothing_about_the_clock(key: str, ward: Ward, redis: Any) -> None:
    ward.beat("a")
    redis.delete(key)
    redis.rpush(key, "garbage")
    assert len(ward.asked()[1].splitlines()) == 1


# --- which Redis -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?client_name=probe"], ids=["bare", "redis-py"])
def test_there_is_no_redis(ward: Ward, query: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    code, said, words = ward.asked(BEAT_REDIS_URL=f"redis://:{SECRET}@127.0.0.1:{port}/0{query}")
    assert (code, said) == (69, "")
    assert words.startswith(f"error: no Redis answers at redis://:***@127.0.0.1:{port}/0")
    assert "refused" in words
    assert SECRET not in words


@pytest.mark.parametrize("query", ["", "?client_name=probe"], ids=["bare", "redis-py"])
def test_a_redis_that_does_not_answer_is_none(ward: Ward, query: str) -> None:
    with Proxy(ward.server.url) as proxy:
        proxy.freeze()
        start = time.monotonic()
        code, said, words = ward.asked(BEAT_REDIS_URL=proxy.url + query)
        in_time(time.monotonic() - start, 10)
    assert (code, said) == (69, "")
    assert "imed out" in words or "imeout" in words


@pytest.mark.parametrize("query", ["", "?client_name=probe"], ids=["bare", "redis-py"])
@pytest.mark.parametrize("login", [f"default:wrong{SECRET}@", ""], ids=["password", "none"])
def test_who_is_not_let_in_hears_why(here: Path, login: str, query: str) -> None:
    with embedded.start(here / "redis", options=["--requirepass", SECRET]) as private:
        url = private.url.replace("unix://", f"unix://{login}") + query.replace("?", "&")
        done = called("health", cwd=here, BEAT_REDIS_URL=url)
        good = private.url.replace("unix://", f"unix://:{SECRET}@") + query.replace("?", "&")
        assert called("health", cwd=here, BEAT_REDIS_URL=good).stdout == b"no scheduler is running\n"
    assert done.returncode == 69
    assert b"refuses: " in done.stderr
    assert SECRET.encode() not in done.stderr


def test_a_user_who_may_not_read_hears_it(here: Path) -> None:
    with embedded.start(here / "redis") as private, Redis.from_url(private.url) as client:
        rules = {"passwords": [f"+{SECRET}"], "categories": ["+@all"], "commands": ["-zrange"], "keys": ["*"]}
        client.acl_setuser("weak", enabled=True, **rules)
        done = called("health", cwd=here, BEAT_REDIS_URL=private.url.replace("unix://", f"unix://weak:{SECRET}@"))
    assert done.returncode == 69
    assert b"refuses: " in done.stderr
    assert b"zrange" in done.stderr


@pytest.mark.parametrize("query", ["", "&ssl_check_hostname=true"], ids=["bare", "redis-py"])
def test_it_speaks_tls(ward: Ward, query: str) -> None:
    ward.beat("web-2")
    with behind_tls(ward.here, ward.server) as port:
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={ward.here}/cert.pem{query}"
        assert ward.asked(BEAT_REDIS_URL=url)[0] == 0
        code, _, words = ward.asked(BEAT_REDIS_URL=f"rediss://127.0.0.1:{port}/0{query.replace('&', '?')}")
        assert code == 69
        assert "certificate verify failed" in words
        assert ward.asked(BEAT_REDIS_URL=f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=none")[0] == 0


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"BEAT_REDIS_URL": "localhost:6379"}, "BEAT_REDIS_URL='localhost:6379' has no scheme"),
        ({"BEAT_REDIS_URL": "redis://localhost/abc"}, "needs a number for its database"),
        ({"BEAT_REDIS_URL": "redis://localhost?nonsense=1"}, "cannot be used: "),
    ],
)
def test_a_url_that_is_none_is_refused(ward: Ward, environ: dict[str, str], words: str) -> None:
    code, said, complaint = ward.asked(**environ)
    assert (code, said) == (78, "")
    assert words in complaint


def test_the_prefix_and_the_database_keep_installations_apart(ward: Ward) -> None:
    ward.beat("web-2")
    assert ward.asked(BEAT_PREFIX="other:")[0] == 1
    assert ward.asked("--redis-url", ward.server.url.replace("db=0", "db=1"))[0] == 1
    assert ward.asked("--redis-url", ward.server.url, BEAT_REDIS_URL="redis://nowhere")[0] == 0


def test_where_none_is_set_the_private_redis_of_this_directory_is_asked(here: Path) -> None:
    with embedded.start(here / embedded.DIRECTORY):
        done = called("health", cwd=here)
    assert (done.returncode, done.stdout) == (1, b"no scheduler is running\n")


# --- a beat that lives -----------------------------------------------------------------------------------------------


def test_a_beat_becomes_healthy_and_stale_and_healthy_again(here: Path, server: PrivateRedis, redis: Any) -> None:
    def healthy(*arguments: str) -> int:
        return called("health", *arguments, cwd=here, BEAT_REDIS_URL=server.url).returncode

    with Drain(server.url), Beat(here, server.url) as beat:
        wait_until(lambda: healthy("--local") == 0)
        assert healthy() == 0
        beat.freeze()
        wait_until(lambda: healthy("--max-age", "3s") == 1)
        beat.thaw()
        wait_until(lambda: healthy("--local") == 0)
        assert beat.end() == 0
    assert healthy() == 1
    assert redis.exists("beat:schedule:tick")


# --- soon ------------------------------------------------------------------------------------------------------------


def soon(ward: Ward, url: str) -> bool:
    """Whether it can be fast enough: others may use this machine, so what counts is the time of the processor."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "BEAT_REDIS_URL": url}
    for _ in range(20):
        before = os.times()
        subprocess.run([sys.executable, "-m", "beat", "health"], cwd=ward.here, env=environ, check=True)
        spent = os.times()
        if spent.children_user + spent.children_system - before.children_user - before.children_system < BUDGET_S:
            return True
    return False


def test_a_probe_ends_soon(ward: Ward) -> None:
    ward.beat("web-2", 0)
    assert soon(ward, ward.server.url)


def test_a_probe_with_tls_ends_soon(ward: Ward) -> None:
    ward.beat("web-2", 0)
    with behind_tls(ward.here, ward.server) as port:
        assert soon(ward, f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={ward.here}/cert.pem")


def test_a_probe_imports_nothing_that_takes_long(ward: Ward) -> None:
    ward.beat("web-2")
    code = """
import sys
from beat.cli import main
try:
    main(["health"])
finally:
    print(sorted(sys.modules.keys() & {"redis", "rq", "pydantic", "croniter", "asyncio", "zoneinfo"}), file=sys.stderr)
"""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "BEAT_REDIS_URL": ward.server.url}
    done = subprocess.run([sys.executable, "-c", code], cwd=ward.here, env=environ, capture_output=True, check=True)
    assert done.stderr == b"[]\n"
