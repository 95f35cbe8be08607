"""Relay beat's event stream as JSON lines, each event at least once: `python examples/relay.py | your-program`.

Redis remembers how far the group has read, so a relay that you stop or kill resumes where it was. Start more relays
under other names (`python examples/relay.py relay-2`), and they share the work.
"""

from __future__ import annotations

import contextlib
import json
import sys

from beat import events


def main(consumer: str = "relay-1") -> None:
    """Print every event before reading the next.

    The event stream is capped. If the group falls behind, a line of type "missed" says how many events were lost.
    """
    for event in events.read(group="relay", consumer=consumer):
        # The line and its end in one piece: unbuffered, print would write two, and might be killed in between.
        print(f"{json.dumps(event.plain())}\n", end="", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
