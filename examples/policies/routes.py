"""Several queues, and which of them a tick goes to: `beat dev examples/policies/routes.py`.

`turn` goes to `left` and `right` in turn, `near` to the first of its queues that has a worker. The id decides about
`user-1` to `user-3`, once and for all. `beat history turn` tells the queue of each.
"""

from __future__ import annotations

from beat import periodic


@periodic(every="1s", queues=["left", "right"], route="round_robin")
def turn() -> str:
    """Go to each in turn."""
    return "turned"


@periodic(every="1s", queues=["abandoned", "left"], route="failover")
def near() -> str:
    """Go to the first where somebody works."""
    return "somebody works here"


@periodic(every="2s", queues=["left", "right"], route="hash", id="user-1", args=[1])
@periodic(every="2s", queues=["left", "right"], route="hash", id="user-2", args=[2])
@periodic(every="2s", queues=["left", "right"], route="hash", id="user-3", args=[3])
def sync(user: int) -> str:
    """Go always to the same queue, whose worker may remember this user."""
    return f"synced {user}"
