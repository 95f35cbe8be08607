"""What is wrong with declarations: raised where it is found, or collected, so that all of it is found at once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from beat.errors import DeclarationError, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.schedule.source_location import Place


class Mistakes:
    """Collects the mistakes of one declaration, so that one error names them all.

    As a context manager it swallows a DeclarationError and keeps it.
    """

    def __init__(self) -> None:
        self.found: list[DeclarationError] = []

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, DeclarationError):
            self.found.append(error)
            return True
        return False

    def refuse(self) -> None:
        """Raise one error for all that was collected, if there is any."""
        if self.found:
            raise together(self.found)


class Refusals:
    """Of one registry."""

    def __init__(self) -> None:
        self.found: list[DeclarationError] | None = None
        """What was collected so far; None where the first is raised."""

    def refuse(self, error: DeclarationError, place: Place | None = None) -> None:
        """Raise the error, or keep each of its mistakes, with the place of the declaration if none is known yet."""
        for each in (error, *error.mistakes):
            each.where = each.where or (str(place) if place else None)
        if self.found is None:
            raise error
        self.found.extend(error.mistakes)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[list[DeclarationError]]:
        """Within it nothing is raised."""
        outer, self.found = self.found, []
        try:
            yield self.found
        finally:
            self.found = outer
