"""The doctor: looks at everything that could be wrong with an installation, and says what to do about it.

First the facts are read, then each is judged by a function of its own. Nothing is written, and no beat needs to live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.connected import Connected
from beat.doctor import acl, collect, indexes, schedule_counts, schedule_rows
from beat.doctor.checks import acl as judging_rights
from beat.doctor.checks import declarations, growth, keys, queues, schedulers, schedules
from beat.doctor.checks import server as judging_server
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
    """Examines one installation. `redis` is a URL, a client, or what the settings say; options are settings by name."""

    def examine(self, say: Callable[[int], None] = lambda _: None) -> list[Finding]:
        """Every finding, in the order in which a person would look; `say` hears how many schedules were read so far."""
        with self._asking():
            return list(self._findings(say))

    def vitals(self) -> list[Finding]:
        """The findings about the server, the beats and the format of the keys: no schedule is looked at for them."""
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
                *judging_server.judge(found),
                *(each for name, look in looks.items() for each in _looked(name, look)),
            ]

    def rule(self, *, every_feature: bool = False) -> tuple[Rule, list[str]]:
        """The least rights for this server and what is in use there, and the features that were left out."""
        with self._asking():
            server_check.greet(self._store.client)
            info = collect.tried(self._store.client.info)
            features = list(acl.FEATURES) if every_feature else self._features_in_use()
            left_out = [each for each in acl.FEATURES if each not in features]
            return self._rule(info, features), left_out

    def _findings(self, say: Callable[[int], None]) -> Iterator[Finding]:
        server_check.greet(self._store.client)
        found = collect.server(self._store, self._where)
        yield from judging_server.judge(found)
        if not isinstance(found.info, Unseen) and any(server_check.refusals(found.info)):
            return  # with such a server nothing else makes sense
        taken = collect.tried(lambda: self._take(found.now, say))
        if isinstance(taken, Unseen):
            yield unseen("schedules", "number", taken.right, "the schedules")
            features = self._features(None)
        else:
            for group, look in self._looks(taken, found.now).items():
                yield from _looked(group, look)
            features = self._features(taken)
        yield from judging_rights.judge(acl.look(self._store, self._rule(found.info, features)))

    def _looks(self, taken: Taken, now: datetime) -> dict[str, Callable[[], Iterator[Finding]]]:
        """What there is to look at beside the server, in this order: each is read, and then judged."""
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
        """What is in use; where there is nothing to tell by, all that could be."""
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
    """What was found, or what keeps it from being found."""
    name = group.partition(" ")[0]
    try:
        return list(look())
    except connection.Refused as e:
        if collect.is_refused(e):
            return [unseen(name, "looking", collect.lacking(e), group)]
        remedy = "a key is of another type: beat redis -- TYPE KEY"
        return [Finding(name, "looking", PROBLEM, f"could not look at {group}: {e}", remedy)]
