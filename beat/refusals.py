"""What is wrong with declarations: raised where it is found, or collected, so that all of it is found at once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.errors import DeclarationError
    from beat.place import Place


class Refusals:
    """Of one registry."""

    def __init__(self) -> None:
        self.found: list[DeclarationError] | None = None
        """What was collected so far; None where the first is raised."""

    def refuse(self, error: DeclarationError, place: Place | None = None) -> None:
        """Raises it, or keeps it, with the place where it was written, if that is not known yet."""
        error.where = error.where or (str(place) if place else None)
        if self.found is None:
            raise error
        self.found.append(error)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[list[DeclarationError]]:
        """Within it nothing is raised."""
        outer, self.found = self.found, []
        try:
            yield self.found
        finally:
            self.found = outer
