"""Ping external monitoring services when a run starts and when it ends, so that they detect missing runs.

One scheduler at a time does this, the one that holds the lock. An event is acknowledged when its ping was accepted or
given up, so the next lock owner continues there. A ping that is sent twice carries the same run id.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from beat.config import sentry_dsn
from beat.notify.monitors import healthchecks, sentry
from beat.notify.monitors.pings import CODE
from beat.notify.monitors.reader import Reading, Register, Round, leave
from beat.schedule.monitor import is_allowed
from beat.storage import connection, lifetimes, server_check
from beat.storage.event_stream import Outbox
from beat.storage.keys import Keys
from beat.storage.lock import Lock

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection

    from beat.engine.events import Emit
    from beat.notify.monitors.pings import Ping, Request
    from beat.storage.connection import Redis

LOCK_MS = lifetimes.MONITORING_MS
_TURN_S, _REST_S = 0.5, 2.0


class Monitors:
    """The service that pings the monitors."""

    name = "monitors"

    def __init__(
        self, redis: Redis | str, *, prefix: str, dsn: str | None, emit: Emit, hosts: Collection[str] = ()
    ) -> None:
        self._hosts = hosts
        self._source, self._keys, self._emit = redis, Keys(prefix), emit
        self._dsn, self._is_off = sentry_dsn.read(dsn or ""), dsn == sentry_dsn.OFF
        self._environment = os.environ.get("SENTRY_ENVIRONMENT")

    def run(self, stopping: threading.Event) -> None:
        """Ping monitors while this scheduler holds the lock; otherwise try to take the lock every 2 s."""
        client = connection.connect(self._source)
        try:
            register, lock = Register(client, self._keys), Lock(client, self._keys.monitoring, LOCK_MS)
            has_left = False
            while not stopping.is_set():
                is_empty = register.is_empty()
                has_left = has_left and is_empty
                if has_left or not lock.acquire():
                    stopping.wait(_REST_S)
                elif is_empty:
                    has_left = self._leave(client, register, lock)
                else:
                    self._lead(client, register, lock, stopping)
        except connection.Refused as e:
            if connection.forbids(e):
                raise server_check.may_not(client, "read the outbox as one of a group", e) from None
            raise
        finally:
            client.connection_pool.disconnect()

    def _leave(self, client: Redis, register: Register, lock: Lock) -> bool:
        """Delete the consumer group while no schedule has a monitor, and return whether that is still so.

        A group that stayed would deliver old events once a schedule has a monitor again.
        """
        if is_empty := register.is_empty():
            leave(self._outbox(client))
        lock.release()
        return is_empty

    def _outbox(self, client: Redis) -> Outbox:
        return Outbox(client, self._keys.events, self._keys.monitoring)

    def _lead(self, client: Redis, register: Register, lock: Lock, stopping: threading.Event) -> None:
        round_ = Round(Reading(self._outbox(client), lock.token), register, self._request, self._emit)
        try:
            round_.resume()
            while not stopping.is_set() and lock.extend() and not register.is_empty():
                if not round_.turn():
                    stopping.wait(_TURN_S)
        finally:
            round_.stop()
        round_.settle()
        lock.release()

    def _request(self, ping: Ping) -> Request | str:
        """Return the request for a ping, or the reason why there is none; it is empty if no ping is wanted."""
        monitor = ping.schedule.monitor
        if monitor is None or (monitor.of_sentry and self._is_off):
            return ""
        if ping.source != CODE and not is_allowed(monitor, self._hosts):  # data may name any host
            return "the schedule comes from data, and monitor_hosts does not allow this host: set BEAT_MONITOR_HOSTS"
        if not monitor.of_sentry:
            return healthchecks.request(ping, monitor.where)
        if self._dsn is None:
            return "this beat has no DSN: set BEAT_SENTRY_DSN for all beats"
        return sentry.request(ping, self._dsn, self._environment)
