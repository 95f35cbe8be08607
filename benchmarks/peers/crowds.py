"""Every peer by the name that the tables use, and how each is given many schedules."""

from __future__ import annotations

from typing import Protocol

from benchmarks.peers import apscheduler3, celery_beat, redbeat, rq_cron, rq_scheduler
from benchmarks.peers.contender import Contender  # noqa: TC001 (what a crowd is)


class Crowd(Protocol):
    """A peer with so many schedules over so many queues."""

    def __call__(self, schedules: int, queues: int, *, due: bool = True) -> Contender:
        """All of them due as it starts, or none for hours."""


CROWDS: dict[str, Crowd] = {
    "rq cron": rq_cron.crowd,
    "rq-scheduler": rq_scheduler.crowd,
    "Celery beat": celery_beat.crowd,
    "RedBeat": redbeat.crowd,
    "APScheduler": apscheduler3.crowd,
}
