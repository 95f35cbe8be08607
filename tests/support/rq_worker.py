"""Real RQ workers in real processes, and the log that the jobs themselves write: what happened, whatever Redis says.

The workers are stock ones, each with a process group of its own, so that a worker and its work-horse can be killed
apart. A job says each step that it takes in one write to the end of a file, which nobody can undo.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import rq

from tests.support.facts import wait_until
from tests.support.process_pool import ROOT, logged

if TYPE_CHECKING:
    from collections.abc import Iterable


SIMPLE = ("--worker-class", "rq.worker.SimpleWorker")
"""A worker without a work-horse: it does the job itself, and sends no heartbeat meanwhile."""
_LOG = "STEPS_LOG"
"""Tells the jobs, in their environment, where to write."""


# --- for the jobs ----------------------------------------------------------------------------------------------------


def say(word: str, job: str = "") -> None:
    """One line, in one write, at the end of the log."""
    line = f"{job or current()} {word} {os.getpid()} {os.getppid()} {time.time():.6f}\n".encode()
    log = os.open(os.environ[_LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(log, line)
    finally:
        os.close(log)


def current() -> str:
    """The id of the job that asks."""
    job = rq.get_current_job()
    assert job is not None
    return str(job.id)


def attempt() -> int:
    """Which start of this job this is, after it was said."""
    return Steps(Path(os.environ[_LOG])).words(current()).count("start")


# --- for the tests ---------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What a job said."""

    job: str
    word: str
    pid: int
    parent: int
    """The process that started that one: its worker, if it is a work-horse."""
    at: float


class Steps:
    """What the jobs said, in order."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def all(self) -> list[Step]:
        """Every step of every job."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = (line.split() for line in lines)
        return [Step(job, word, int(pid), int(parent), float(at)) for job, word, pid, parent, at in found]

    def of(self, job: str) -> list[Step]:
        """The steps of one job."""
        return [step for step in self.all() if step.job == job]

    def words(self, job: str) -> list[str]:
        """What one job said, without when and where."""
        return [step.word for step in self.of(job)]

    def said(self, job: str, word: str, times: int = 1, seconds: float = 60) -> Step:
        """Waits until a job has said a word so often; the newest such step."""

        def found() -> list[Step]:
            return [step for step in self.of(job) if step.word == word]

        wait_until(lambda: len(found()) >= times, seconds, lambda: f"for {word!r} of {job}; said: {self.words(job)}")
        return found()[-1]


class Worker:
    """One `rq worker` in a process of its own; its jobs write to `steps`."""

    _made = 0

    def __init__(self, url: str, steps: Steps, *queues: str, options: Iterable[str] = ()) -> None:
        Worker._made += 1
        self.name = f"worker-{os.getpid()}-{Worker._made}"
        self.queues = queues or ("default",)
        self._log = steps.log.with_name(f"{self.name}.log")
        command = ["rq.cli", "worker", "--url", url, "--name", self.name, *options, *self.queues]
        self.process = logged(self._log, command, steps.log.parent, environment(steps))

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def says(self, words: str, seconds: float = 60) -> None:
        """Waits until its log holds these words."""
        wait_until(lambda: words in self.log, seconds, lambda: f"for {words!r} in\n{self.log}")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """The worker alone: its work-horse, if it has one, goes on."""
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()

    def ends(self, seconds: float = 60) -> int:
        """Waits until it has ended by itself, as in burst mode; its exit code."""
        return self.process.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        for left in [each for each, *_, session in _processes() if session == self.pid]:  # a work-horse, a scheduler
            kill(left)


RQ = (sys.executable, "-m", "rq.cli")


def environment(steps: Steps) -> dict[str, str]:
    """What a process needs that has to do with the jobs: no setting of ours, the way to the code, the log."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BEAT_", "RQ_"))}
    return {**inherited, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), _LOG: str(steps.log)}


def children_of(pid: int) -> list[int]:
    """Those of a worker that lives: its work-horse, and its scheduler if it has one."""
    return [child for child, parent, *_ in _processes() if parent == pid]


def horses_of(pid: int) -> list[int]:
    """The work-horse of a worker, if there is one: it leads a process group of its own."""
    return [child for child, parent, group, _ in _processes() if parent == pid and group == child]


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """A work-horse, which may have ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for has ended, too."""
    return _ps("-o", "stat=", "-p", str(pid)).strip()[:1] in {"", "Z"}


def _processes() -> list[tuple[int, ...]]:
    """Of each process: its id, its parent, its group, its session."""
    return [tuple(map(int, line.split())) for line in _ps("-A", "-o", "pid=,ppid=,pgid=,sess=").splitlines()]


def _ps(*options: str) -> str:
    command = ["ps", *options]  # which exits with 1 when there is no such process
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
