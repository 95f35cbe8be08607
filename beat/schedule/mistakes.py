"""Raise errors of declarations immediately, or collect them so that one error lists all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from beat.errors import DeclarationError, together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.schedule.source_location import Place


class Mistakes:
    """The mistakes of one declaration, collected so that one error names them all.

    As a context manager, it catches and keeps a DeclarationError.
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
        """Raise one error for all collected mistakes, if there are any."""
        if self.found:
            raise together(self.found)


class Refusals:
    """The errors of one registry, raised at once or collected."""

    def __init__(self) -> None:
        self.found: list[DeclarationError] | None = None
        """The errors collected so far; None while errors are raised instead."""

    def refuse(self, error: DeclarationError, place: Place | None = None) -> None:
        """Raise or collect the error, after adding the source location to mistakes that have none."""
        for each in (error, *error.mistakes):
            each.where = each.where or (str(place) if place else None)
        if self.found is None:
            raise error
        self.found.extend(error.mistakes)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[list[DeclarationError]]:
        """Collect errors instead of raising them, within a `with` block."""
        outer, self.found = self.found, []
        try:
            yield self.found
        finally:
            self.found = outer
