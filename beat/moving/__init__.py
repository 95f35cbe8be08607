"""Moving in: reads the schedules of a predecessor, without running anything of it, and says what cannot come along."""

from __future__ import annotations

from beat.moving import celery, crontab, python, rq_cron, rq_scheduler
from beat.moving.adding import Added, add
from beat.moving.found import Found, Left, Reading

__all__ = ["Added", "Found", "Left", "Reading", "add", "celery", "crontab", "python", "rq_cron", "rq_scheduler"]

SOURCES = ("rq-scheduler", "rq-cron", "celery", "crontab")
