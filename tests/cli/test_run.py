"""`beat run` as operators meet it: real processes on a real Redis."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import re
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat import Registry, Scheduler
from beat._version import __version__
from beat.dev import embedded
from beat.schedule import globs
from tests.process.commands import called
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support import job_functions
from tests.support.builders import claim, registration
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import TASKS, Beat, Called, Drain, Started, exactly_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

SCRIPT = str(Path(sys.executable).parent / "beat")
PYTHON = [sys.executable, "-m", "beat"]
AWAY = "Redis does not work for us"
SECRET = "hunter2"  # noqa: S105 (of a server that lives for a second)
SECOND = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
SEVERAL = """
from beat import periodic, register

def work(): ...

for n in range(10):
    register(work, every="1s", id=f"report_{n}")
register(work, every="1s", id="other")
"""
TELLING = """
import json
from pathlib import Path
from beat import get_current_run, periodic

@periodic(every="1s", kwargs={"name": "told.json"})
def tell(name):
    run = get_current_run()
    Path(name).write_text(json.dumps([run.schedule_id, run.scheduled_for.isoformat(), run.triggered_by]))
"""
STATE = {
    "state": "active", "func": r"tasks\.tick", "every": "1s", "tz": "UTC", "queue": "default", "priority": "normal",
    "description": "A tick.", "source": "code", "app": "default", "last_run": SECOND, "next_run": SECOND,
    "due_at": SECOND,
    "last_enqueued": INSTANT, "last_job": r"beat_tick_\d{10}", "run_count": r"[1-9]\d*", "skip_count": "0",
    "host": re.escape(socket.gethostname()), "module": "tasks",
    "file": r"/.*/tasks\.py",
    "created_at": INSTANT, "updated_at": INSTANT, "version": "1", "rev": "[0-9a-f]+", "timing_rev": "[0-9a-f]+",
    "definition": r"\{.*\}", "rule": r'\{"every":"1s","tz":"UTC"\}', "kept": r"[1-9]\d*",
    "job_meta": "[0-9a-f]+ [0-9a-f]+",
}  # fmt: skip
INSTANCE = {
    "host": re.escape(socket.gethostname()), "pid": r"\d+", "version": re.escape(__version__),
    "tzdata": r"\d{4}[a-z]|unknown", "app": "default", "tz": "UTC", "digest": "default\\.[0-9a-f]{16}",
    "schedules": "1", "fired": r"\d+", "started_at": SECOND, "last_pass": INSTANT, "seen_at": INSTANT,
    "clock_offset_ms": r"-?\d{1,3}",
}  # fmt: skip


@pytest.fixture
def here(home: Path) -> Path:
    """A project with one schedule."""
    return lay_out(home, {"pyproject.toml": "", "tasks.py": TASKS.replace("...", '"""A tick."""')})


def refused(cwd: Path, url: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code of a beat that does not begin, and all that it wrote."""
    done = called("run", *arguments, cwd=cwd, BEAT_REDIS_URL=url, **environment)
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    return done.returncode, said


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def matching(patterns: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """What differs: fields that are missing, too many, or not as they should be."""
    wrong = {name: value for name, value in found.items() if not re.fullmatch(patterns.get(name, "(?!)"), value)}
    return wrong | {name: "is missing" for name in patterns if name not in found}


# What it runs


@pytest.mark.parametrize(
    ("given", "toml"),
    [
        (["run", "tasks"], '[tool.beat]\nmodules = ["not_there"]'),
        (["BEAT_MODULES=tasks", "run"], '[tool.beat]\nmodules = ["not_there"]'),
        (["BEAT_MODULES=not_there", "run", "tasks"], ""),
        (["run"], '[tool.beat]\nmodules = ["tasks"]'),
    ],
    ids=["argument", "variable", "argument-before-variable", "pyproject"],
)
def test_modules_are_found(here: Path, server: PrivateRedis, redis: Any, given: list[str], toml: str) -> None:
    lay_out(here, {"pyproject.toml": toml})
    environment = dict(each.split("=") for each in given if "=" in each)
    arguments = [each for each in given if "=" not in each]
    with Called(here, *arguments, BEAT_REDIS_URL=server.url, **environment) as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    assert redis.smembers("beat:schedules") == {"tick"}


@pytest.mark.parametrize("command", [[SCRIPT], PYTHON, [SCRIPT, "run"], [*PYTHON, "run"]], ids=" ".join)
def test_bare_beat_is_beat_run_if_the_settings_name_modules(
    here: Path, server: PrivateRedis, redis: Any, command: list[str]
) -> None:
    with Started(here, *command, BEAT_REDIS_URL=server.url, BEAT_MODULES="tasks") as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    assert redis.llen("rq:queue:default") >= 1


@pytest.mark.parametrize("first", range(5))
def test_the_first_url_wins(here: Path, server: PrivateRedis, redis: Any, first: int) -> None:
    urls = [server.url.replace("db=0", f"db={n}") for n in range(5)]
    lay_out(here, {"pyproject.toml": f'[tool.beat]\nredis_url = "{urls[4]}"\n'})
    environment = {"BEAT_REDIS_URL": urls[1], "RQ_REDIS_URL": urls[2], "REDIS_URL": urls[3]}
    given = dict(list(environment.items())[max(first - 1, 0) :])
    flag = ["--redis-url", urls[0]] if first == 0 else []
    with Called(here, "run", "tasks", *flag, **given) as beat:
        beat.says("1 schedule registered")
    assert redis.info("keyspace").keys() == {f"db{first}"}


def test_a_beat_started_below_the_project_runs_the_modules_beside_its_pyproject(
    here: Path, server: PrivateRedis, redis: Any
) -> None:
    lay_out(here, {"pyproject.toml": '[tool.beat]\nmodules = ["tasks"]', "sub/tasks.py": "raise ValueError"})
    with Called(here / "sub", BEAT_REDIS_URL=server.url) as beat:
        beat.says(f"loading tasks, named by ../pyproject.toml [tool.beat] modules, in {here}")
        beat.says("fired tick")
        assert beat.end() == 0
    assert redis.hget("beat:schedule:tick", "func") == "tasks.tick"


def test_run_loads_a_tasks_file_if_nothing_names_modules(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Called(here, "run", BEAT_REDIS_URL=server.url, BEAT_LOG_FORMAT="json") as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    (line,) = [each for each in map(json.loads, beat.log.splitlines()) if each["event"] == "modules"]
    assert line["words"].startswith("loading tasks.py from this directory")
    assert redis.hget("beat:schedule:tick", "func") == "tasks.tick"


def test_there_is_nothing_to_do(here: Path, server: PrivateRedis, redis: Any) -> None:
    (here / "tasks.py").unlink()
    code, said = refused(here, server.url)
    assert code == 78
    assert "there is nothing to do: the code declares no schedule, and Redis knows none" in said
    assert '@periodic("* * * * *")' in said
    assert 'def hello(): print("hello")' in said
    assert "start `beat run tasks`" in said
    assert redis.keys() == []


def test_a_beat_without_code_fires_what_others_have_registered(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url) as first:
        first.says("fired tick")
        assert first.end() == 0
    count = int(redis.hget("beat:schedule:tick", "run_count") or 0)
    (here / "tasks.py").rename(here / "work.py")
    with Called(here, "run", BEAT_REDIS_URL=server.url) as second:
        second.says("0 schedules of its own code")
        second.says("WARNING this scheduler declares no schedule, but fires the schedules that other programs")
        second.says("fired tick")
    assert int(redis.hget("beat:schedule:tick", "run_count") or 0) > count


@pytest.mark.parametrize(
    ("text", "words"),
    [("import not_there", "not_there"), ("raise ValueError('oh')", "ValueError: oh"), ("exit(3)", "exit")],
)
def test_a_module_that_cannot_be_imported(here: Path, server: PrivateRedis, redis: Any, text: str, words: str) -> None:
    lay_out(here, {"tasks.py": text})
    code, said = refused(here, server.url, "tasks")
    assert code == 78
    assert words in said
    assert redis.keys() == []


# The Redis that it finds


@pytest.mark.parametrize(
    "login", [f"default:wrong{SECRET}@", f"nobody:wrong{SECRET}@", ""], ids=["password", "user", "none"]
)
def test_a_wrong_password_is_refused_and_not_shown(here: Path, login: str) -> None:
    with embedded.start(here / "redis", options=["--requirepass", SECRET]) as private:
        code, said = refused(here, private.url.replace("unix://", f"unix://{login}"), "tasks")
    assert code == 69
    assert f"Redis refuses user {login.partition(':')[0] or 'default'!r}" in said
    assert SECRET not in said


def test_a_user_who_may_not_run_scripts_is_refused(here: Path) -> None:
    with embedded.start(here / "redis") as private, Redis.from_url(private.url) as client:
        rules = {"passwords": [f"+{SECRET}"], "categories": ["+@all"], "commands": ["-evalsha"], "keys": ["*"]}
        client.acl_setuser("weak", enabled=True, **rules)
        code, said = refused(here, private.url.replace("unix://", f"unix://weak:{SECRET}@"), "tasks")
    assert code == 69
    assert "Redis does not let user 'weak' work: " in said
    assert "has no permissions to run the 'evalsha' command" in said
    assert SECRET not in said


def test_the_right_password_is_not_shown_either(here: Path) -> None:
    with embedded.start(here / "redis", options=["--requirepass", SECRET]) as private:
        url = private.url.replace("unix://", f"unix://:{SECRET}@")
        with Beat(here, url, "--log-level", "debug") as beat:
            beat.says("fired tick")
            private.kill()
            beat.says(AWAY)
            assert SECRET not in beat.log


def test_redis_may_come_later(here: Path) -> None:
    with Beat(here, f"unix://{here}/redis/redis.sock") as beat:
        beat.says(AWAY)
        with embedded.start(here / "redis"):
            beat.says("Redis works again")
            beat.says("fired tick")
            assert beat.log.count(AWAY) == 1
            assert beat.end() == 0


def test_redis_may_refuse_to_write_at_first(here: Path) -> None:
    with embedded.start(here / "redis") as private, Redis.from_url(private.url) as client:
        client.config_set("maxmemory", 1)
        with Beat(here, private.url) as beat:
            beat.says(AWAY)
            client.config_set("maxmemory", 0)
            beat.says("fired tick")
            assert beat.log.count(AWAY) == beat.log.count("works again") == 1
            assert beat.log.count("has started") == 1
            assert beat.end() == 0


def test_a_replica_is_refused(here: Path) -> None:
    port = free_port()
    with (
        embedded.start(here / "master", options=["--port", str(port), "--repl-diskless-sync-delay", "0"]),
        embedded.start(here / "replica", options=["--replicaof", "127.0.0.1", str(port)]) as replica,
        Redis.from_url(replica.url) as client,
    ):
        wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        code, said = refused(here, replica.url, "tasks")
    assert code == 69
    assert f"this Redis is a replica of 127.0.0.1:{port}, and takes no writes: give the master's URL" in said


def test_a_cluster_is_refused(here: Path) -> None:
    with embedded.start(here / "redis", options=["--cluster-enabled", "yes", "--port", str(free_port())]) as private:
        code, said = refused(here, private.url, "tasks")
    assert code == 69
    assert "this Redis is a cluster, where RQ cannot work" in said


def test_an_old_redis_is_refused(here: Path, server: PrivateRedis, redis: Any) -> None:
    old = b"redis_version:6.2.14\r\nrole:master\r\n"
    with Proxy(server.url) as proxy:
        proxy.plan("INFO", harm.reply(b"$%d\r\n%s\r\n" % (len(old), old)))
        code, said = refused(here, proxy.url, "tasks")
    assert code == 69
    assert "this is Redis 6.2.14, and beat needs 7.0" in said
    assert redis.keys() == []


def test_a_redis_that_may_forget_is_a_warning(here: Path) -> None:
    options = ["--maxmemory-policy", "allkeys-lru", "--appendonly", "no"]
    with embedded.start(here / "redis", options=options) as private, Beat(here, private.url) as beat:
        beat.says("fired tick")
    assert [" ".join(line.split()[1:5]) for line in beat.log.splitlines() if "WARN" in line] == [
        "WARNING maxmemory-policy is allkeys-lru,", "WARNING appendonly is off,",
    ]  # fmt: skip


def test_a_redis_that_keeps_what_it_is_told_is_none(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url) as beat:
        beat.says("fired tick")
    assert "WARN" not in beat.log
    assert redis.hgetall("beat:meta")["format"] == "1"


def test_a_server_that_speaks_no_tls_is_away_and_the_password_not_shown(here: Path) -> None:
    port = free_port()
    options = ["--port", str(port)]
    with (
        embedded.start(here / "redis", options=options),
        Beat(here, f"rediss://:{SECRET}@127.0.0.1:{port}/0?socket_connect_timeout=1&socket_timeout=1") as beat,
    ):
        beat.says(AWAY)
        assert SECRET not in beat.log
        assert beat.end() == 0


def test_a_certificate_that_nobody_vouches_for_is_refused(here: Path, server: PrivateRedis, redis: Any) -> None:
    with behind_tls(here, server) as port:
        url = f"rediss://:{SECRET}@127.0.0.1:{port}/0"
        with Beat(here, url) as beat:
            beat.says(AWAY)
            assert "certificate verify failed" in beat.log
            assert SECRET not in beat.log
        assert redis.keys() == []
        with Beat(here, f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={here}/cert.pem") as beat:
            beat.says("fired tick")


@contextlib.contextmanager
def behind_tls(directory: Path, server: PrivateRedis) -> Iterator[int]:
    """The port of a door with a certificate that it has written itself; behind it is the server."""
    program = shutil.which("openssl")
    if not program:
        pytest.skip("openssl is needed to make a certificate")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem"]
    subprocess.run(
        [program, "req", "-x509", *key, *subject, "-out", "cert.pem"], cwd=directory, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as door:
        threads = [threading.Thread(target=_welcome, args=(door, context, server)) for _ in range(4)]
        for thread in threads:
            thread.start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def _welcome(door: socket.socket, context: ssl.SSLContext, server: PrivateRedis) -> None:
    """Carries one connection after another."""
    while True:
        try:
            plain = door.accept()[0]
        except OSError:
            return
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            stack.enter_context(plain)
            client = stack.enter_context(context.wrap_socket(plain, server_side=True))
            behind = stack.enter_context(socket.socket(socket.AF_UNIX))
            behind.connect(str(server.socket))
            _carry(client, behind)


def _carry(client: ssl.SSLSocket, behind: socket.socket) -> None:
    while True:
        ready = [client] if client.pending() else select.select([client, behind], [], [])[0]
        for side, other in ((client, behind), (behind, client)):
            if side in ready:
                piece = side.recv(1 << 14)
                if not piece:
                    return
                other.sendall(piece)


# What it can be told


@pytest.mark.parametrize("glob", ["a.b", "report(", "%", "[", "a b", ""])
def test_a_glob_that_fits_no_id_is_refused(glob: str, here: Path, server: PrivateRedis) -> None:
    code, said = refused(here, server.url, "tasks", "--only", glob)
    assert code == 2
    assert "must be an id, with * ? or [a-z] for what may differ" in said


def test_a_glob_means_the_same_in_python_and_in_redis(store: Store) -> None:
    ids = ["report", "axb", "a-b", "r", "cleanup_9", "A"]
    at = int(store.time().timestamp()) - 10
    for glob in ["*", "r*", "[!r]*", "a?b", "a-b", "[a-c]*", "*_[0-9]", "[!a-z]", "?"]:
        store.client.flushall()
        for each in ids:
            assert store.register([registration(each, at)], beat="tests")
        found = claim(store, only=globs.lua(glob)).claims
        assert {each.id for each in found} == {each for each in ids if fnmatch.fnmatchcase(each, glob)}, glob


def test_only_some_are_registered_and_fired(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": SEVERAL})
    with Beat(here, server.url, "--only", "report_[0-4]") as canary:
        canary.says("fired report_")
        assert redis.smembers("beat:schedules") == {f"report_{n}" for n in range(5)}
        assert canary.end() == 0
    with Beat(here, server.url) as whole:
        whole.says("fired other")
        assert whole.end() == 0
    count = redis.hget("beat:schedule:other", "run_count")
    with Beat(here, server.url, "--only", "rep*_?") as canary:
        canary.says("fired report_9")
        assert canary.end() == 0
    assert redis.hget("beat:schedule:other", "run_count") == count


def test_two_beats_share_the_work(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": SEVERAL})
    with (
        Drain(server.url) as drain,
        Beat(here, server.url, BEAT_PAGE_SIZE="2") as one,
        Beat(here, server.url, BEAT_PAGE_SIZE="2") as two,
    ):
        wait_until(lambda: min(beat.log.count("fired") for beat in (one, two)) > 5)
        assert [beat.end() for beat in (one, two)] == [0, 0]
        for each in [*(f"report_{n}" for n in range(10)), "other"]:
            exactly_once(redis, drain, each)


def test_log_lines_for_machines(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url, "--log-format", "json") as beat:
        beat.says('"event": "fired"')
        assert beat.end() == 0
    lines = [json.loads(line) for line in beat.log.splitlines()]
    assert [line["event"] for line in lines][:3] == ["started", "registered", "fired"]
    assert lines[-1]["event"] == "stopped"
    assert all(line.keys() >= {"time", "level", "message", "event"} for line in lines)
    fired = lines[2]
    assert (fired["schedule_id"], fired["level"]) == ("tick", "info")
    assert fired["job_id"] == redis.lrange("rq:queue:default", 0, 0)[0]
    assert fired["late_ms"] >= 0


# What it leaves for others to read


def test_a_heartbeat_can_be_read(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url) as beat:
        [name] = wait_until(lambda: redis.keys("beat:instance:*"))
        beat.says("fired tick")
        found = wait_until(lambda: heard(redis, name), 8)
        assert matching(INSTANCE, found) == {}
        assert found["pid"] == str(beat.pid)
        assert name == f"beat:instance:{redis.zrange('beat:instances', 0, -1)[0]}"
        assert 0 < redis.pttl(name) <= 20_000


def heard(redis: Any, name: str) -> dict[str, str]:
    """A heartbeat that was written after the first pass."""
    found: dict[str, str] = redis.hgetall(name)
    return found if int(found.get("fired", 0)) else {}


def test_a_schedule_can_be_read(here: Path, server: PrivateRedis, redis: Any) -> None:
    with Beat(here, server.url) as beat:
        beat.says("fired tick")
        assert beat.end() == 0
    found: dict[str, str] = redis.hgetall("beat:schedule:tick")
    revs = found.pop("revs")
    assert matching(STATE, found) == {}
    assert revs == found["rev"]
    last, following = (datetime.fromisoformat(found[name]) for name in ("last_run", "next_run"))
    assert (following - last).total_seconds() == 1
    assert found["last_job"] == f"beat_tick_{int(last.timestamp())}"
    assert json.loads(found["definition"])
    assert redis.zscore("beat:due", "tick") == following.timestamp() * 1000


def test_a_stock_worker_runs_the_jobs_which_know_their_run(here: Path, server: PrivateRedis, redis: Any) -> None:
    lay_out(here, {"tasks.py": TELLING})
    with Beat(here, server.url) as beat:
        beat.says("fired tell")
        assert beat.end() == 0
    tick = redis.hget("beat:schedule:tell", "last_run")
    worker = [sys.executable, "-m", "rq.cli", "worker", "--burst", "--url", server.url, "default"]
    done = subprocess.run(worker, cwd=here, check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    told = json.loads((here / "told.json").read_text())
    assert told == ["tell", str(tick).replace("Z", "+00:00"), "scheduler"]


# From Python


def test_a_scheduler_runs_in_a_thread_of_an_application(server: PrivateRedis, redis: Any) -> None:
    registry, events = Registry(), list[Any]()
    registry.register(job_functions.anything, every="1s")
    scheduler = Scheduler(registry, redis, listeners=[events.append], log_level="error")
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    try:
        wait_until(lambda: any(event.name == "fired" for event in events), 10)
        assert redis.exists(f"beat:instance:{scheduler.name}")
    finally:
        scheduler.stop()
        thread.join(5)
    assert not thread.is_alive()
    assert redis.keys("beat:instance:*") + redis.keys("beat:lock:*") == []
    assert [job.rpartition("_")[0] for job in redis.lrange("rq:queue:default", 0, 0)] == ["beat_anything"]
    assert server.url
