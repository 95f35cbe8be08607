"""Real beats in real processes, and the count of what they did."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, cast

from redis import Redis
from redis.exceptions import RedisError

from tests.support.facts import wait_until
from tests.support.process_pool import ROOT, Forked, logged

if TYPE_CHECKING:
    from pathlib import Path

TASKS = """
from beat import periodic

@periodic(every="1s")
def tick(): ...
"""


class Beat:
    """One `beat run` in a process of its own."""

    def __init__(self, cwd: Path, url: str, *arguments: str, module: str = "tasks", **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BEAT_")}
        self._log = cwd / f"beat-{id(self)}.log"
        command = ["beat", "run", module, *arguments]
        told = {**inherited, "BEAT_REDIS_URL": url, **environment}
        self.process: Forked | subprocess.Popen[bytes] = logged(self._log, command, cwd, told)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def says(self, words: str, seconds: float = 30) -> None:
        """Waits until its log holds these words."""
        wait_until(lambda: words in self.log, seconds, lambda: f"for {words!r} in\n{self.log}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self, seconds: float = 30) -> int:
        """Asks it to stop, and returns its exit code."""
        self.process.terminate()
        return self.process.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.thaw()
            self.kill()


class Started(Beat):
    """Any command line that runs a beat, in a process that does its own imports."""

    def __init__(self, cwd: Path, *command: str, **environment: str) -> None:
        self._log = cwd / f"beat-{id(self)}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
                stdout=log,
                stderr=log,
            )


class Called(Beat):
    """Any call of `beat` that runs one, with nothing in its environment but what is given."""

    def __init__(self, cwd: Path, *arguments: str, **environment: str) -> None:
        self._log = cwd / f"beat-{id(self)}.log"
        told = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
        self.process = logged(self._log, ["beat", *arguments], cwd, told)


class Drain:
    """Takes every job out of the queues and deletes it at once, so that no job's hash can hide a second one."""

    def __init__(self, url: str, *queues: str) -> None:
        self.jobs: Counter[str] = Counter()
        """How often each job id was enqueued."""
        self._url, self._queues = url, [f"rq:queue:{queue}" for queue in queues or ("high", "default", "low")]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def ticks(self, schedule_id: str) -> list[int]:
        """The ticks that became jobs, as often as they did."""
        start = f"beat_{schedule_id}_"
        return sorted(int(job.removeprefix(start)) for job in self.jobs.elements() if job.startswith(start))

    def _run(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(RedisError, OSError), Redis.from_url(self._url, decode_responses=True) as client:
                while not self._ended.is_set():
                    self._take(client)

    def _take(self, client: Redis) -> None:
        found: Any = client.blpop(self._queues, timeout=0.2)
        if found:
            self.jobs[found[1]] += 1
            client.delete(f"rq:job:{found[1]}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def seconds_of(redis: Redis) -> int:
    """Redis' clock."""
    return int(redis.time()[0])


def exactly_once(redis: Redis, drain: Drain, schedule_id: str = "tick", *, every: int = 1, least: int = 1) -> None:
    """No beat runs any more: every tick from the first to the newest became one job, and the counters agree."""
    state = cast("dict[str, str]", redis.hgetall(f"beat:schedule:{schedule_id}"))
    first, newest = _second(state["created_at"]) // every * every + every, _second(state["last_run"])
    expected = list(range(first, newest + 1, every))
    wait_until(lambda: len(drain.ticks(schedule_id)) >= int(state["run_count"]), what=lambda: f"for jobs of {state}")
    ticks = drain.ticks(schedule_id)
    if ticks[0] == first - every:  # the clock struck between the look at it and the registration
        expected.insert(0, ticks[0])
    lost, doubled = sorted({*expected} - {*ticks}), [tick for tick, n in Counter(ticks).items() if n > 1]
    assert (lost, doubled) == ([], []), f"{schedule_id}: lost {lost}, doubled {doubled}"
    assert len(ticks) == len(expected) == int(state["run_count"]), (len(ticks), len(expected), state)
    assert _second(state["next_run"]) == newest + every, state
    assert len(expected) >= least, f"{len(expected)} ticks are too few"


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())
