"""The reaper of a process of `beat dev`: killed while it starts, it leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from beat.dev import reaper

ASKS = "    if sys.platform == "
DIES_FIRST = f"""\
    if option == {reaper._PR_SET_PDEATHSIG}:
        parent = os.getppid()
        os.kill(parent, signal.SIGKILL)
        while os.getppid() == parent:
            pass
"""  # noqa: SLF001 (what it asks for)


def test_a_reaper_that_is_killed_before_the_kernel_knows_leaves_no_process(tmp_path: Path) -> None:
    made, text = tmp_path / "reaper.py", Path(reaper.__file__).read_text(encoding="utf-8")
    assert text.count(ASKS) == 1
    made.write_text(text.replace(ASKS, DIES_FIRST + ASKS), encoding="utf-8")
    speaks = "import time; print('here', flush=True); time.sleep(60)"  # who is left behind holds the pipe
    words = [sys.executable, "-I", "-S", str(made), sys.executable, "-c", speaks]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # stdin must stay open
        assert process.stdout
        assert (process.wait(30), process.stdout.read()) == (-9, b"")
