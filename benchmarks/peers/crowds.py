"""List every peer by its name in the tables, with a function that gives it many schedules."""

from __future__ import annotations

from typing import Protocol

from benchmarks.peers import apscheduler3, celery_beat, redbeat, rq_cron, rq_scheduler
from benchmarks.peers.contender import Contender  # noqa: TC001 (what a crowd is)


class Crowd(Protocol):
    """A function that returns a peer with many schedules over one or more queues."""

    def __call__(self, schedules: int, queues: int, *, due: bool = True) -> Contender:
        """Return the peer with all schedules due as it starts, or none for hours."""


CROWDS: dict[str, Crowd] = {
    "rq cron": rq_cron.crowd,
    "rq-scheduler": rq_scheduler.crowd,
    "Celery beat": celery_beat.crowd,
    "RedBeat": redbeat.crowd,
    "APScheduler": apscheduler3.crowd,
}
