"""Run `beat dev` in rounds: load the modules, run the scheduler and the workers, start over when a file changes.

Redis and the web UI run across all rounds. If the supervisor is killed, the reapers kill the other processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from beat.config import redis_url, settings
from beat.dev import file_changes
from beat.dev.commands import commands, environment, surveyor
from beat.dev.process import Child, first, let_go, spawn
from beat.dev.project import Survey
from beat.dev.redis import Server
from beat.dev.terminal import Screen
from beat.dev.web import Page
from beat.dev.worker_output import WorkerOutput
from beat.errors import ConfigError
from beat.schedule.loader import finder
from beat.timing import clock, durations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.dev.commands import Command
    from beat.dev.terminal import Style

_INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(modules: Sequence[str], url: str | None, *, reload: bool, web: bool) -> int:
    """Run all processes until Ctrl-C and return the exit code. Without a `url`, start a private Redis."""
    return asyncio.run(_run(modules, url, reload=reload, web=web))


async def _run(modules: Sequence[str], url: str | None, *, reload: bool, web: bool) -> int:
    supervisor = _Supervisor(modules, url, reload=reload, web=web)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            asyncio.get_running_loop().add_signal_handler(number, supervisor.interrupt)
    return await supervisor.run()


class _Supervisor:
    """The processes and the terminal of one `beat dev`."""

    def __init__(self, modules: Sequence[str], url: str | None, *, reload: bool, web: bool) -> None:
        self._modules, self._reload = modules, reload
        self._screen = Screen(sys.stdout)
        self._server = Server(url, lambda text: self._line("redis", text))
        self._page = Page(lambda text: self._line("web", text)) if web else None
        self._seen: file_changes.Look = {}
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hurry: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def interrupt(self) -> None:
        """Stop every process. When called again, kill processes without waiting for their jobs."""
        if not self._stop.done():
            self._stop.set_result(None)
            self._screen.hide_interrupt()
            self._say("ending everything; Ctrl-C again does not wait for jobs")
        elif not self._hurry.done():
            self._hurry.set_result(None)

    async def run(self) -> int:
        """Run until interrupted, or until a process fails for good without reload, and return the exit code.

        Raise ConfigError if the modules cannot be loaded, unless editing a file can help and reload is on.
        """
        survey = await self._survey()
        if survey.problem and not (self._reload and survey.own_fault):
            raise ConfigError(survey.problem)
        if self._stop.done():
            return 0
        self._server.start()
        self._screen.secrets = {self._server.url: redis_url.masked(self._server.url)}
        tending = asyncio.create_task(self._server.tend())
        if self._page:
            self._page.start(self._server.url)
        try:
            return await self._rounds(survey)
        finally:
            tending.cancel()
            if self._page:
                await self._page.stop(self._hurry)
            self._server.end()

    async def _rounds(self, survey: Survey) -> int:
        while not self._stop.done():
            code = await (self._wait(survey.problem) if survey.problem else self._serve(survey))
            if code is not None:
                return code
            survey = await self._survey()
        return _INTERRUPTED if self._hurry.done() else 0

    async def _survey(self) -> Survey:
        """Load the modules again. Every change to a file after this call begins starts another round."""
        before = file_changes.look(self._seen)
        file_changes.forget_compiled(self._seen, before)
        loading = asyncio.create_task(self._load())
        await first(self._stop, loading)
        if not loading.done():
            loading.cancel()
            await asyncio.wait([loading])
            return Survey()
        survey = loading.result()
        # after an error, keep watching files that were not imported this time: the fix may be in one of them
        now = file_changes.look({*survey.files, *(before if survey.problem else ())})
        self._seen = now | {file: state for file, state in before.items() if file in now}
        return survey

    async def _load(self) -> Survey:
        process = await spawn(surveyor(self._modules), os.environ, stderr=asyncio.subprocess.PIPE)
        try:
            assert process.stdout and process.stderr  # noqa: S101, PT018 (they are pipes)
            answer, words = await asyncio.gather(process.stdout.read(), process.stderr.read())
        finally:
            let_go(process)
            await process.wait()
        if not answer:
            last = words.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return Survey(problem=f"{', '.join(self._modules)}: the process ended while importing. {last}".strip())
        return Survey.read(answer)

    async def _wait(self, problem: str) -> None:
        """Show why the modules cannot be loaded, and wait until a file changes."""
        for line in problem.split("\n"):
            self._line("beat", line, "bad")
        changed = asyncio.create_task(self._changed())
        self._say("waiting for a change")
        await first(self._stop, changed)
        changed.cancel()

    async def _serve(self, survey: Survey) -> int | None:
        """Run one round. Return the exit code if no other round follows, else None."""
        self._announce(survey)
        self._server.retire(survey.schedules, settings.load().settings.prefix)
        children = [self._child(command, survey) for command in commands(survey, self._modules)]
        ended = [child.given_up for child in children]
        changed = asyncio.create_task(self._changed())
        try:
            await first(self._stop, changed, *ended)
            codes = [task.result() for task in ended if task.done()]
            if codes and not self._reload:
                return codes[0]
            if codes:
                self._say(f"ended with exit code {codes[0]}: waiting for a change")
                await first(self._stop, changed)
        finally:
            changed.cancel()
            await asyncio.gather(*(child.stop(self._hurry) for child in children))
        return None

    async def _changed(self) -> None:
        if not self._reload:
            await asyncio.get_running_loop().create_future()
        self._say(f"{finder.shown(await file_changes.changed(self._seen))} changed: starting again", "warn")

    def _announce(self, survey: Survey) -> None:
        count = len(survey.schedules)
        words = (
            f"{count} schedule{'s' * (count != 1)}" if count else "no schedules yet: write @periodic above a function"
        )
        if survey.tick:
            seconds = max(0, round((datetime.fromisoformat(survey.tick) - clock.now()).total_seconds()))
            wait = f"in {durations.short(timedelta(seconds=seconds))}" if seconds else "now"
            words += f"; the next tick is {survey.first}, {wait}"
        self._line("beat", words)
        for queue in survey.mixed:
            words = f"queue {queue!r} gets pickle and JSON, and a worker reads one of them: the JSON jobs will fail"
            self._line("worker", f"{words}; give them a queue of their own", "warn")
        self._say("Ctrl-C ends everything")

    def _child(self, command: Command, survey: Survey) -> Child:
        def show(text: str, style: Style = "") -> None:
            self._line(command.tag, text, style)

        def say(text: str) -> None:
            self._line(command.tag, text, "warn")

        trimmed = WorkerOutput(show, survey.schedules, command.queues)
        shown = trimmed if command.queues else show
        return Child(command.arguments, environment(survey, self._server.url), show=shown, say=say)

    def _say(self, text: str, style: Style = "dim") -> None:
        self._line("dev", text, style)

    def _line(self, tag: str, text: str, style: Style = "") -> None:
        self._screen.line(tag, text, style)
        if self._screen.closed and not self._stop.done():
            self._stop.set_result(None)
