"""max_running=2, two at a time: `beat dev examples/policies/max_running.py`.

A tick comes every second, a picture takes four. `beat dev` has one worker, so that one is drawn and one waits in the
queue: both count. With two workers two are drawn at once, and never three.
"""

from __future__ import annotations

import time

from beat import periodic


@periodic(every="1s", overlap="skip", max_running=2, queue="pictures")
def picture() -> str:
    """Draw for four seconds."""
    time.sleep(4)
    return "drawn"
