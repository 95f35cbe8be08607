"""One call of `beat`, as programs meet it and as people do on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
from pathlib import Path

from tests.nursery import ROOT, Forked

PATIENCE_S = 60


def environment(**more: str) -> dict[str, str]:
    """Nothing of the developer's own; a warning is an error."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **more}


def called(*arguments: str | bytes, cwd: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """How it ended, and what it wrote where no terminal is."""
    command = ["beat", *map(os.fsdecode, arguments)]
    with Path(os.devnull).open("rb") as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = [each.fileno() for each in (nothing, out, err)]
        process = Forked(*command, cwd=cwd, env=environment(**environ), streams=streams)
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()  # one that should have ended
        written = [os.pread(each, 10_000_000, 0) for each in streams[1:]]
    return subprocess.CompletedProcess(command, code, *written)


def on_a_terminal(*arguments: str, cwd: Path, columns: int = 80, typed: bytes = b"", **environ: str) -> tuple[int, str]:
    """The exit code, and all that a terminal of so many columns receives; somebody has `typed` something on it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    told = environment(**{"TERM": "xterm-256color", **environ})
    process = Forked("beat", *arguments, cwd=cwd, env=told, streams=[theirs] * 3)
    os.close(theirs)
    os.write(ours, typed)
    received = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return process.wait(PATIENCE_S), received.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: the process has closed its side
        return b""
