"""Import the schedules of rq-scheduler, rq cron, Celery or crontab, and report those that cannot move.

Their files are read without running them, unless `--import` asks for it.
"""

from __future__ import annotations

from beat.migrate import celery, crontab, rq_cron, rq_scheduler, writer
from beat.migrate.apply import Added, add
from beat.migrate.result import Found, Left, Reading

__all__ = ["Added", "Found", "Left", "Reading", "add", "celery", "crontab", "rq_cron", "rq_scheduler", "writer"]

SOURCES = ("rq-scheduler", "rq-cron", "celery", "crontab")
