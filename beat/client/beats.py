"""The schedulers that are alive, as their heartbeats tell."""

from __future__ import annotations

from beat.announcements import alive
from beat.instance import Instance

__all__ = ["Instance", "alive"]
