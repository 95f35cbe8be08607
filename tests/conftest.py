"""What every test can rely on: no setting of the developer's own, no haste, and a real Redis that is empty."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from pytest_rerunfailures import StatusDB  # type: ignore[import-untyped]
from redis import Redis, utils
from redis.backoff import NoBackoff
from redis.retry import Retry

from beat.dev import embedded
from beat.storage.keys import Keys
from beat.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.dev.embedded import PrivateRedis

for name in list(os.environ):
    colours, others = {"NO_COLOR", "FORCE_COLOR"}, {"SENTRY_DSN", "SENTRY_ENVIRONMENT", "DJANGO_SETTINGS_MODULE"}
    if name.startswith("BEAT_") or name in {"REDIS_URL", "RQ_REDIS_URL", *colours, *others}:
        del os.environ[name]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts so what it starts in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else nothing that a test starts can be interrupted

utils.get_lib_version = functools.cache(utils.get_lib_version)  # it reads a file, for each connection
gc.disable()  # twelve thousand tests are collected, and none of it is garbage


@pytest.hookimpl(trylast=True)  # after the plugin itself
def pytest_configure(config: pytest.Config) -> None:
    """What is run once more is known to its own process: to ask all of them, each test would wait for 40 ms."""
    if hasattr(config, "workerinput"):
        kept: Any = config
        kept.failures_db.sock.close()
        kept.failures_db = StatusDB()


@pytest.hookimpl(trylast=True)  # what is not run at all is gone by now
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares a stage comes first: later it would be dealt out to many processes, each of which would set it up."""
    items.sort(key=lambda item: not _shares_a_stage(item))


def pytest_collection_finish() -> None:
    """From here on the collector works again, but never looks through all the tests that are yet to come."""
    gc.freeze()
    gc.enable()


if os.environ.get("LONG_TESTS"):
    os.environ.setdefault("PYTEST_TIMEOUT", "3600")  # seconds, instead of the limit in pyproject.toml

# A machine under load is slow, which is no fault of the code.
hypothesis.settings.register_profile(
    "beat",
    deadline=None,
    max_examples=500 if os.environ.get("LONG_TESTS") else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("beat")

PLAIN = {
    "schedules", "due", "meta", "events", "instances", "announcements", "open", "closed", "records", "waiting",
    "fanout", "functions", "groups", "unread", "metrics",
}  # fmt: skip
FAMILIES = {
    "schedule",
    "template",
    "runs",
    "running",
    "waiting",
    "followers",
    "fanout",
    "shards",
    "in",
    "app",
    "incidents",
}
LAPSING = {
    "lock", "instance", "announced", "repairing", "repaired", "watching", "searched", "request", "slow", "monitoring",
    "tally", "alerting", "deliveries", "messages", "told", "signatures",
}  # fmt: skip


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty directory with a short path: a socket's may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="beat-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateRedis]:
    """A real server, for all tests of this process."""
    path = Path(tempfile.mkdtemp(prefix="beat-"))
    with embedded.start(path / "redis") as private:
        yield private
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def redis(server: PrivateRedis) -> Iterator[Redis]:
    """A client of an empty server; fails the test when it leaves keys that no one knows, or that nothing bounds."""
    with Redis.from_url(server.url, decode_responses=True, retry=Retry(NoBackoff(), 0)) as client:
        client.flushall()
        yield client
        strange = _strange(client)
    assert not strange, f"left behind: {strange}"


@pytest.fixture
def store(redis: Redis, server: PrivateRedis) -> Iterator[Store]:  # noqa: ARG001 (it empties the server)
    """The store on that server."""
    with Redis.from_url(server.url, retry=Retry(NoBackoff(), 0)) as client:
        yield Store(client, Keys())


def _shares_a_stage(item: pytest.Item) -> bool:
    told: Any = getattr(item, "_fixtureinfo", None)
    return bool(told) and any(each.scope == "module" for found in told.name2fixturedefs.values() for each in found)


def _strange(client: Redis) -> list[str]:
    """Keys that no one knows, or that should lapse and never will; asked together, for some tests leave thousands."""
    keys = {key: key.split(":")[1] for key in client.scan_iter("beat:*", count=1000)}
    lapsing = [key for key, family in keys.items() if family in LAPSING]
    with client.pipeline(transaction=False) as asked:
        for key in lapsing:
            asked.pttl(key)
        endless = [key for key, left in zip(lapsing, asked.execute(), strict=True) if left == -1]
    known = FAMILIES | LAPSING
    return endless + [
        key for key, family in keys.items() if family not in known and key.removeprefix("beat:") not in PLAIN
    ]
