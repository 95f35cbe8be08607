"""Run RQ's worker after preparing the application as the scheduler does.

Without Django and without the setting `setup`, this program equals `rq worker` with the same arguments.
"""

from __future__ import annotations

import runpy
import sys

from beat.config import settings
from beat.errors import BeatError
from beat.schedule import loader


def _main() -> None:
    try:
        loader.prepare(settings.load().settings.setup)
    except BeatError as e:
        sys.stderr.write(f"{e}\n")
        sys.exit(e.exit_code)
    sys.argv[1:1] = ["worker"]
    runpy.run_module("rq.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
