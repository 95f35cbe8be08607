"""One call of `beat`, as programs meet it and as people do on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.process_pool import ROOT, Forked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_S = 60


def environment(**more: str) -> dict[str, str]:
    """Nothing of the developer's own; a warning is an error."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **more}


def called(*arguments: str | bytes, cwd: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """How it ended, and what it wrote where no terminal is."""
    return ended(["beat", *map(os.fsdecode, arguments)], cwd, environment(**environ))


def ended(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], *, together: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """The same of any module of Python; what it writes on stderr may come together with the rest."""
    with Path(os.devnull).open("rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = [each.fileno() for each in (nothing, out, out if together else err)]
        process = Forked(*command, cwd=cwd, env=env, streams=streams)
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()  # one that should have ended
        written = [os.pread(each, 10_000_000, 0) for each in streams[1:]]
    return subprocess.CompletedProcess(command, code, *written)


def on_a_terminal(*arguments: str, cwd: Path, columns: int = 80, typed: bytes = b"", **environ: str) -> tuple[int, str]:
    """The exit code, and all that a terminal of so many columns receives; somebody has `typed` something on it."""
    with Terminal(*arguments, cwd=cwd, columns=columns, **environ) as terminal:
        terminal.type(typed)
        return terminal.end()


class Terminal:
    """One call of `beat` on a terminal of 40 lines, which may go on for as long as it likes."""

    def __init__(self, *arguments: str, cwd: Path, columns: int = 80, **environ: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        told = environment(**{"TERM": "xterm-256color", **environ})
        self.process = Forked("beat", *arguments, cwd=cwd, env=told, streams=[theirs] * 3)
        os.close(theirs)
        self._received = b""

    def shows(self, words: str, times: int = 1) -> str:
        """Waits until the terminal has received these words so often; all that it has received."""
        end = time.monotonic() + PATIENCE_S
        while self._text.count(words) < times:
            readable, _, _ = select.select([self._ours], [], [], max(0, end - time.monotonic()))
            more = _read(self._ours) if readable else b""
            assert more, f"waited {PATIENCE_S} s in vain for {words!r} in {self._text}"
            self._received += more
        return self._text

    def type(self, words: bytes) -> None:
        """As from a keyboard."""
        os.write(self._ours, words)

    def end(self) -> tuple[int, str]:
        """Reads on until it ends: its exit code, and all that the terminal has received."""
        self._received += b"".join(iter(lambda: _read(self._ours), b""))
        return self.process.wait(PATIENCE_S), self._text

    @property
    def _text(self) -> str:
        return self._received.decode(errors="replace").replace("\r\n", "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        os.close(self._ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: the process has closed its side
        return b""
