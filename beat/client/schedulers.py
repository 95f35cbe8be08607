"""Re-export how the running schedulers are read from their heartbeats."""

from __future__ import annotations

from beat.storage.announcements import alive
from beat.storage.heartbeat import Instance

__all__ = ["Instance", "alive"]
