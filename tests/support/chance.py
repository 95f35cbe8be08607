"""How often chance is asked: enough to notice what breaks a property, and with LONG_TESTS (`make properties`) all."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("LONG_TESTS"))


def examples(most: int) -> int:
    """For `max_examples` of a property."""
    return most if LONG else max(most // 5, 25)
