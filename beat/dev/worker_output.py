"""Reduce the output of an RQ worker to jobs that start, end and fail, and to the lines that jobs print.

A mark in the log format identifies RQ's own lines. Lines known to be noise are dropped, and lines about jobs are
reworded. All other lines stay unchanged, so that nothing is lost with another version of RQ.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.dev.terminal import Style

    Show = Callable[[str, Style], None]

_MARK = "\x1e"
ARGUMENTS = ("--disable-job-desc-logging", "--log-format", f"{_MARK}%(levelname)s %(message)s")
"""The arguments of `rq worker` that produce the log lines parsed here."""

_MARKED = re.compile(rf"{_MARK}(?P<level>[A-Z]+) (?:Worker \S+(?: \[PID \d+\])?: )?(?P<message>.*)")
_STARTED = re.compile(r"(?P<queue>.+): (?P<job>[\w-]+)")
_TOOK = re.compile(r"Successfully completed job (?P<job>[\w-]+) in (?P<h>\d+):(?P<m>\d+):(?P<s>[\d.]+)s .*")
_DONE = re.compile(r".*Job OK \((?P<job>[\w-]+)\)")
_FAILED = re.compile(r"\[?[Jj]ob (?P<job>[\w-]+)\]?: exception raised while executing \(.*\)")
_LOST = re.compile(r"[Jj]ob (?P<job>[\w-]+) failed \((?P<why>.*?)[; ]*\)")
_NOISE = re.compile(
    r"Successfully completed .*|started with PID .*|(un)?subscribing (to|from) channel .*|\*\*\* Listening on .*"
    r"|cleaning registries for queue.*|.*warm shut down requested|stopping on request"
    r"|Acquired scheduler lock for .*|Scheduler (for .* started with|with|stopping,) .*|Work horse killed for job .*"
    r"|.*result (is kept for .*|discarded immediately|will never expire.*)"
)


class WorkerOutput:
    """A filter for the output lines of one worker. Calling it with a line calls `show` with the result."""

    def __init__(self, show: Show, schedules: Iterable[str], queues: Iterable[str]) -> None:
        self._show = show
        # the longest first, because the job beat_a_b_… of schedule a_b also starts with beat_a_
        self._schedules = sorted(schedules, key=len, reverse=True)
        self._queues = frozenset(queues)
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def __call__(self, line: str) -> None:
        """Show one line, reworded if it tells of a job, unless it is noise."""
        found = _MARKED.fullmatch(line)
        if not found:
            self._show(line, "")
        elif told := self._told(found["message"]):
            self._show(*told)
        elif not _NOISE.fullmatch(found["message"]):
            styles: dict[str, Style] = {"WARNING": "warn", "ERROR": "bad", "CRITICAL": "bad"}
            self._show(found["message"], styles.get(found["level"], "dim"))

    def _told(self, message: str) -> tuple[str, Style] | None:
        if found := _TOOK.fullmatch(message):
            self._took = {found["job"]: int(found["h"]) * 3600 + int(found["m"]) * 60 + float(found["s"])}
        if found := _DONE.fullmatch(message):
            return f"✓ {self._name(found['job'])} done in {self._lasted(found['job'])}", "good"
        if found := _FAILED.fullmatch(message):
            return f"✗ {self._name(found['job'])} failed after {self._lasted(found['job'])}", "bad"
        if found := _LOST.fullmatch(message):
            return f"✗ {self._name(found['job'])} failed after {self._lasted(found['job'])}: {found['why']}", "bad"
        found = _STARTED.fullmatch(message)
        if found and found["queue"] in self._queues:
            self._began = {found["job"]: time.monotonic()}  # a worker runs one job at a time
            return f"▸ {self._name(found['job'])} started", "dim"
        return None

    def _name(self, job: str) -> str:
        """Return the id of the job's schedule, or the id of the job if beat did not enqueue it."""
        return next((name for name in self._schedules if job.startswith(f"beat_{name}_")), job)

    def _lasted(self, job: str) -> str:
        now = time.monotonic()
        seconds = self._took.pop(job, now - self._began.get(job, now))
        return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
