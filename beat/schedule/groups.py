"""Collect the groups that code declares; several declarations of a name must be equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.config import groups
from beat.config.groups import Group
from beat.errors import BadOption, DeclarationError
from beat.schedule import options

if TYPE_CHECKING:
    from collections.abc import Container

    from beat.config.groups import Limits
    from beat.schedule.mistakes import Refusals
    from beat.schedule.source_location import Place


class Groups:
    """The groups of one registry, and where each was first declared."""

    def __init__(self, refusals: Refusals) -> None:
        self.found: dict[str, Group] = {}
        self._places: dict[str, Place] = {}
        self._refusals = refusals

    def declare(self, name: str, limits: Limits, place: Place) -> Group:
        """Add a group; reject it if the name is already declared with other limits."""
        try:
            with options.Reading("the group"):
                return self._insert(groups.declared(name, limits), place)
        except DeclarationError as e:
            self._refusals.refuse(e, place)
            return Group("refused", 1)

    def adopt(self, others: Groups, modules: Container[str], names: Container[str | None]) -> None:
        """Copy the groups of `others` that are declared in `modules` or named in `names`."""
        for name, group in list(others.found.items()) if others is not self else []:
            place = others._places[name]
            try:
                if place.module in modules or name in names:
                    self._insert(group, place)
            except DeclarationError as e:
                self._refusals.refuse(e, place)

    def _insert(self, group: Group, place: Place) -> Group:
        first = self.found.setdefault(group.name, group)
        if first != group:
            raise BadOption(
                f"group {group.name!r} is declared twice, first at {self._places[group.name]} as '{first}', "
                f"here as '{group}': say the same, or leave one of them out"
            )
        self._places.setdefault(group.name, place)
        return first
