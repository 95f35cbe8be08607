"""The schedulers that are alive, as their heartbeats tell."""

from __future__ import annotations

from beat.storage.announcements import alive
from beat.storage.heartbeat import Instance

__all__ = ["Instance", "alive"]
