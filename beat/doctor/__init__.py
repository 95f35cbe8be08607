"""Diagnose an installation: find what is wrong or could go wrong, and say what to do about it.

The facts are read first; then a function for each topic judges them. Nothing is written except Redis' script cache, and
no scheduler needs to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.connected import Connected
from beat.doctor import acl, collect, indexes, schedule_counts, schedule_rows
from beat.doctor.checks import acl as acl_checks
from beat.doctor.checks import declarations, growth, keys, queues, schedulers, schedules
from beat.doctor.checks import server as server_checks
from beat.doctor.facts import Unseen
from beat.doctor.findings import LEVELS, OK, PROBLEM, Finding, unseen
from beat.storage import connection, server_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from beat.doctor.acl import Rule
    from beat.doctor.schedule_counts import Taken

__all__ = ["LEVELS", "OK", "PROBLEM", "Doctor", "Finding"]


class Doctor(Connected):
    """The diagnosis of one installation; `redis` is a URL or a client, and options are settings by name."""

    def examine(self, say: Callable[[int], None] = lambda _: None) -> list[Finding]:
        """Return all findings in the order of the report; `say` is called with the number of schedules read so far."""
        with self._asking():
            return list(self._findings(say))

    def vitals(self) -> list[Finding]:
        """Return the findings about the server, the schedulers and the keys, without reading any schedule."""
        with self._asking():
            server_check.greet(self._store.client)
            found = collect.server(self._store, self._where)
            known = collect.tried(lambda: schedule_rows.number(self._store))
            number = 0 if isinstance(known, Unseen) else known
            looks = {
                "beats": lambda: schedulers.judge(collect.beats(self._store, self.settings, found.now, number)),
                "state": lambda: keys.judge(collect.kept(self._store, self.settings.app, (), found.now)),
            }
            return [
                *server_checks.judge(found),
                *(each for name, look in looks.items() for each in _looked(name, look)),
            ]

    def rule(self, *, every_feature: bool = False) -> tuple[Rule, list[str]]:
        """Return the ACL rule for this server and the features in use, and the features that were left out."""
        with self._asking():
            server_check.greet(self._store.client)
            info = collect.tried(self._store.client.info)
            features = list(acl.FEATURES) if every_feature else self._features_in_use()
            left_out = [each for each in acl.FEATURES if each not in features]
            return self._rule(info, features), left_out

    def _findings(self, say: Callable[[int], None]) -> Iterator[Finding]:
        server_check.greet(self._store.client)
        found = collect.server(self._store, self._where)
        yield from server_checks.judge(found)
        if not isinstance(found.info, Unseen) and any(server_check.refusals(found.info)):
            return  # no other check is meaningful on such a server
        taken = collect.tried(lambda: self._take(found.now, say))
        if isinstance(taken, Unseen):
            yield unseen("schedules", "number", taken.right, "the schedules")
            features = self._features(None)
        else:
            for group, look in self._looks(taken, found.now).items():
                yield from _looked(group, look)
            features = self._features(taken)
        yield from acl_checks.judge(acl.look(self._store, self._rule(found.info, features)))

    def _looks(self, taken: Taken, now: datetime) -> dict[str, Callable[[], Iterator[Finding]]]:
        """Return the checks beside that of the server, by topic and in order; each reads its facts and judges them."""
        store, settings = self._store, self.settings
        return {
            "memory": lambda: growth.judge(collect.growth(store, settings, taken, now)),
            "beats": lambda: schedulers.judge(collect.beats(store, settings, now, taken.total)),
            "schedules": lambda: schedules.judge(schedule_counts.told(store, taken)),
            "schedules that are declared": lambda: declarations.judge(collect.declarations(store, now)),
            "queues": lambda: queues.judge(collect.queues(store, taken.queues, now)),
            "state": lambda: keys.judge(collect.kept(store, settings.app, taken.from_data, now, taken.far_locks)),
            "state of the index": lambda: schedules.index(
                indexes.look(store, taken.looked, taken.suspects, taken.kinds)
            ),
        }

    def _take(self, now: datetime, say: Callable[[int], None] = lambda _: None) -> Taken:
        return schedule_counts.take(self._store, now, self.settings.misfire_limit, say, lock_ttl=self.settings.lock_ttl)

    def _features_in_use(self) -> list[str]:
        taken = collect.tried(lambda: self._take(self._store.time()))
        return self._features(None if isinstance(taken, Unseen) else taken)

    def _features(self, taken: Taken | None) -> list[str]:
        """Return the features in use that need more rights; include those whose use cannot be determined."""
        nobody_knows = taken is None or not taken.total
        used = {
            acl.REPLACE: nobody_knows or (taken and taken.replaces),
            acl.GROUPS: nobody_knows or bool(self.settings.alerts) or collect.groups(self._store),
            acl.DATABASE: bool(self._store.client.connection_pool.connection_kwargs.get("db")),
        }
        return [feature for feature, is_used in used.items() if is_used]

    def _rule(self, info: Mapping[str, Any] | Unseen, features: list[str]) -> Rule:
        version = server_check.OLDEST if isinstance(info, Unseen) else server_check.number(info)
        return acl.rule(self._keys, features, version)


def _looked(group: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return the findings of one check, or one finding that says why the check could not be made."""
    name = group.partition(" ")[0]
    try:
        return list(look())
    except connection.Refused as e:
        if collect.is_refused(e):
            return [unseen(name, "looking", collect.lacking(e), group)]
        remedy = "a key is of another type: beat redis -- TYPE KEY"
        return [Finding(name, "looking", PROBLEM, f"could not look at {group}: {e}", remedy)]
