"""Run one process of `beat dev`: start it under the reaper, pass on its output, restart it if it exits by itself."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

from beat.dev import reaper
from beat.errors import ConfigError, NoRedis

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping, Sequence

# Seconds after each SIGTERM. RQ's worker finishes its job after the first one, and abandons it after the second.
_PATIENCE_S = (3.0, 2.0)
_LONGEST_PAUSE_S = 10
_LONGEST_LINE = 1 << 16
_FOR_PEOPLE = (ConfigError.exit_code, NoRedis.exit_code)  # a restart would not help


async def spawn(command: Sequence[str], environ: Mapping[str, str], *, stderr: int) -> Process:
    """Start `command` in a session of its own, so that Ctrl-C does not reach it.

    The reaper kills the command and all its descendants when the stdin of the returned process is closed.
    """
    # -I and -S: the reaper needs only the standard library, and starts in a few milliseconds
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-I", "-S", reaper.__file__, *command],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env=dict(environ),
        start_new_session=True,
    )


class Child:
    """A command that is restarted whenever it exits, until `stop` or until a restart cannot help.

    `show` receives its output line by line, and `say` receives messages about it. The task `given_up` ends with the
    exit code when the command will not be restarted.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        show: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        self._command, self._environ = command, environ
        self._show, self._say = show, say
        self._process: Process | None = None
        self._stopping = False
        self.given_up = asyncio.create_task(self._keep())

    async def stop(self, hurry: asyncio.Future[None]) -> None:
        """Terminate the process, and kill it if it still runs after two signals, or as soon as `hurry` is done."""
        self._stopping = True
        for patience in _PATIENCE_S:
            if self._process and not hurry.done():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await first(self.given_up, hurry, seconds=patience)
        if self._process:
            let_go(self._process)
        else:
            self.given_up.cancel()
        await asyncio.wait([self.given_up])

    async def _keep(self) -> int:
        pause = 1
        while True:
            began = time.monotonic()
            code = await self._live()
            if self._stopping or code in _FOR_PEOPLE:
                return code
            if time.monotonic() - began > _LONGEST_PAUSE_S:
                pause = 1
            self._say(f"ended by itself ({_words(code)}): starting it again in {pause} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _live(self) -> int:
        process = await spawn(self._command, self._environ, stderr=asyncio.subprocess.STDOUT)
        self._process = process
        try:
            await self._read(process)
            return await process.wait()
        finally:
            self._process = None
            let_go(process)

    async def _read(self, process: Process) -> None:
        rest = b""
        while process.stdout and (piece := await process.stdout.read(_LONGEST_LINE)):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._show(_text(line))
            if len(rest) > _LONGEST_LINE:
                self._show(_text(rest))
                rest = b""
        if rest:
            self._show(_text(rest))


def let_go(process: Process) -> None:
    """Make the reaper kill what is left of the process and its descendants."""
    if process.stdin:
        process.stdin.close()


async def first(*futures: asyncio.Future[Any], seconds: float | None = None) -> None:
    """Wait until at least one of the futures is done, or until `seconds` have passed."""
    await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _words(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"exit code {code}"  # noqa: PLR2004 (as shells count)
