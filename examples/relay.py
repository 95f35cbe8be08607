"""Relays beat's outbox as JSON lines, each event at least once: `python examples/relay.py | your-program`.

Redis remembers how far the group has read: stop it, kill it, start it again, and it goes on where it was. Start more of
them under other names (`python examples/relay.py relay-2`), and they share the work.
"""

from __future__ import annotations

import contextlib
import json
import sys

from beat import events


def main(consumer: str = "relay-1") -> None:
    """Print every event, and ask for the next when it is out.

    A line of type "missed" says how many could not be relayed: the outbox is capped, and the group fell behind.
    """
    for event in events.read(group="relay", consumer=consumer):
        # The line and its end in one piece: unbuffered, print would write two, and might be killed in between.
        print(f"{json.dumps(event.plain())}\n", end="", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
