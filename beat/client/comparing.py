"""What a deploy would do: reads, page by page, what Redis knows of the schedules of the code. Nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat import clock, planning, provenance
from beat.client.connected import Connected
from beat.placement import foresee, standing
from beat.planning import KINDS, Kept, Plan
from beat.protocol import Sight
from beat.provenance import Known
from beat.registry import Registry
from beat.sources import UNNAMED
from beat.store import pages

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from datetime import datetime

    from beat.placement import Prospect
    from beat.planning import Step
    from beat.schedule import Schedule


class Comparing(Connected):
    """A client that says what would change if a beat with that code were started, and none without it went on."""

    def plan(self, schedules: Registry | Iterable[Schedule]) -> Plan:
        """Compare the schedules of the whole code with those that Redis knows of its application.

        Of modules that this code does not include nothing is removed: a registry knows which ones it has loaded, of
        other collections they are those in which the schedules are declared. Where the application has no name, a step
        that removes says in which place its scheduler must run (`place`).
        """
        declared = {each.id: each for each in schedules}
        modules = schedules.modules if isinstance(schedules, Registry) else None
        known = Known.of(declared.values(), self.settings.app, host="", modules=modules).modules
        with self._asking():
            now = self._store.time()
            steps = [each for page in pages(declared.values()) for each in self._page(page, now)]
            if declared:  # a beat without schedules retires nothing
                steps += self._removed(declared, known)
        steps.sort(key=lambda each: KINDS.index(each.kind))
        gone = sum(each.kind == "removed" for each in steps)
        return Plan(self.settings.app, tuple(steps), len(declared) - len(steps) + gone)

    def _page(self, page: Sequence[Schedule], now: datetime) -> Iterator[Step]:
        app, sights = self.settings.app, [Sight(each.id, each.rev, standing(each, now)) for each in page]
        looked = self._store.looking(sights, app=app)()
        found = [foresee(page[n], seen, looked.now, app) for n, seen in looked.others.items()]
        owners = self._owners(found)
        known = self._kept([each.schedule.id for each in found])
        for prospect, kept in zip(found, known, strict=True):
            told = planning.step(prospect, kept, looked.now, app, owners.get(prospect.schedule.id, ""))
            if told:
                yield told

    def _removed(self, declared: Iterable[str], modules: Container[str]) -> Iterator[Step]:
        ids = (_text(each) for each in self._store.client.sscan_iter(self._keys.app(self.settings.app), count=1000))
        strangers = sorted({*ids} - {*declared})
        for found in pages(strangers):
            places = provenance.read(self._store, found)
            page = [each for each in found if not places[each].module or places[each].module in modules]
            for each, state, kept in zip(page, self._store.look(page), self._kept(page), strict=True):
                if state and state.rev and (state.source, state.app) == ("code", self.settings.app):
                    is_named = self.settings.app != UNNAMED or not places[each].file
                    place = "" if is_named else f"{places[each].directory} on {places[each].host}"
                    yield planning.removed(each, state, kept, self.settings.retire_after, place)

    def _kept(self, ids: Sequence[str]) -> list[Kept]:
        with self._store.client.pipeline(transaction=False) as pipe:
            for each in ids:
                pipe.hmget(self._keys.schedule(each), "definition", "declared", "overridden_at")
            found = pipe.execute(raise_on_error=False)
        read = (list(map(_text, each)) if isinstance(each, list) else ["", "", ""] for each in found)
        return [Kept(definition, declared or definition, clock.found(at)) for definition, declared, at in read]

    def _owners(self, found: Iterable[Prospect]) -> dict[str, str]:
        """Return the schedules that another live application has declared first, with its name: it keeps them."""
        theirs: dict[str, list[str]] = {}
        for each in found:
            before, own = each.before, {"", self.settings.app}
            if before and before.rev and before.app not in own and not before.unannounced_at:
                theirs.setdefault(before.app, []).append(each.schedule.id)
        if not theirs:
            return {}
        client, now = self._store.client, clock.to_ms(self._store.time())
        live = list(map(_text, client.zrangebyscore(self._keys.announcements, now, "+inf")))
        owners: dict[str, str] = {}
        for app, ids in theirs.items():
            for digest in (each for each in live if each.startswith(f"{app}.")):
                declared = client.hmget(self._keys.announced(digest), ids)
                owners |= {each: app for each, text in zip(ids, declared, strict=True) if text}
        return owners


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
