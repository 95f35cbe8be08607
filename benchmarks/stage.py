"""Provide what every suite needs: a private Redis, and schedulers started as users start them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from redis import Redis

from beat.dev import embedded
from benchmarks.peers.stage import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")

QUIET = ("--log-level", "error")
"""The log level a user would choose for thousands of fires per second; all other settings are defaults."""


class Stage:
    """A private Redis, and a directory for the contenders' files. `clean` empties Redis between two contenders."""

    def __init__(self, directory: Path, *, persistent: bool = True) -> None:
        port = free_port()
        # No rewriting of the log behind the back of a measurement: `clean` has it done between two.
        options = ["--port", str(port), "--auto-aof-rewrite-percentage", "0", "--save", ""]
        self.server = embedded.start(directory / "redis", options=[*options, *(() if persistent else NO_AOF)])
        self.directory, self.url = directory, f"redis://127.0.0.1:{port}/0"
        self.redis: Any = Redis.from_url(self.url, decode_responses=True)

    def clean(self) -> Path:
        """Empty the database and rewrite the AOF; return a new directory for the files of the next contender.

        Data that was swapped to another database stays.
        """
        self.redis.flushdb()
        self.redis.config_resetstat()
        self.redis.slowlog_reset()
        if self.redis.config_get("appendonly")["appendonly"] == "yes":
            wait_for(lambda: not self.rewriting(), 60)
            self.redis.bgrewriteaof()
            wait_for(lambda: not self.rewriting(), 60)
        return Path(tempfile.mkdtemp(dir=self.directory))

    def rewriting(self) -> bool:
        """Return whether the AOF is being rewritten, or is scheduled to be."""
        about = self.redis.info("persistence")
        return bool(about["aof_rewrite_in_progress"] or about["aof_rewrite_scheduled"])

    def busy_us(self) -> int:
        """Return the time in µs that Redis has spent in scripts since `clean`."""
        stats = self.redis.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("usec", 0) for name in ("evalsha", "eval"))

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds."""
        seconds, micros = self.redis.time()
        return float(seconds) + float(micros) / 1e6

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()
        self.server.stop()


NO_AOF = ("--appendonly", "no")


@contextlib.contextmanager
def stage(*, persistent: bool = True) -> Iterator[Stage]:
    """Open a stage in a temporary directory; delete the directory at the end."""
    with tempfile.TemporaryDirectory(prefix="beat-") as place, Stage(Path(place), persistent=persistent) as made:
        yield made


def wait_for(fact: Callable[[], T], seconds: float, pause: float = 0.01) -> T:
    """Return the first true value of `fact`; raise TimeoutError after this many seconds without one."""
    end = time.monotonic() + seconds
    while not (value := fact()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s in vain")
        time.sleep(pause)
    return value


class Beat:
    """A `beat run` in its own process, with default settings except those in `env`.

    `program` replaces `beat run` with another program that runs a scheduler.
    """

    def __init__(
        self,
        home: Path,
        url: str,
        *arguments: str,
        module: str = "tasks",
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (),
    ) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BEAT_")}
        self._log = home / f"beat-{id(self)}.log"
        command = program or ("-m", "beat", "run", module, *QUIET, *arguments)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 (our own command)
                [sys.executable, *command],
                cwd=home,
                env={**inherited, "BEAT_REDIS_URL": url, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        """Return all of the output so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def cpu_s(self) -> float:
        """Return the processor time of the process in seconds, without its children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        """Return the resident memory of the process in bytes."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the process with SIGTERM, or with SIGKILL if it is still running after 10 s."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def until_registered(made: Stage, beat: Beat, schedules: int, seconds: float = 600) -> None:
    """Wait until this many schedules are in the index; raise ChildProcessError if the scheduler ends first."""

    def registered() -> bool:
        if beat.process.poll() is not None:
            raise ChildProcessError(f"beat has ended: {beat.log[-500:]}")
        return int(made.redis.zcard("beat:due")) == schedules

    wait_for(registered, seconds, pause=0.05)


def tasks(schedules: int, *, start: float, queues: int = 1, every: str = "1h") -> str:
    """Return a module with `schedules` schedules over `queues` queues, all due at `start` (seconds since the epoch)."""
    return f"""
import time
from datetime import datetime, timezone
from pathlib import Path
from beat import register

def work(): ...

start = datetime.fromtimestamp({int(start)}, timezone.utc)
for n in range({schedules}):
    register(work, every={every!r}, start=start, id=f"s{{n:06d}}", queue=f"q{{n % {queues}}}")
Path(__file__).with_name("declared").write_text(str(time.time()))
"""
