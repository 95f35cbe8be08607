"""What drawings have in common: how each outcome is filled, and what a shape says of itself."""

from __future__ import annotations

from markupsafe import Markup

OUTCOMES = ("failed", "lost", "stopped", "skipped", "open", "succeeded")
"""The worst first."""
_ON_ITS_WAY = frozenset(("queued", "started", "scheduled", "deferred", "waiting"))


def outcome(state: str) -> str:
    """The outcome as which a state is drawn: what is on its way is open."""
    return "open" if state in _ON_ITS_WAY or state not in OUTCOMES else state


def fill(state: str) -> Markup:
    """The attribute that fills a shape: a colour, and unless all went well a pattern."""
    named = outcome(state)
    return Markup('class="f-succeeded"') if named == "succeeded" else Markup('fill="url(#p-{})"').format(named)


def box(at: tuple[float, float], size: tuple[float, float], filled: Markup, title: str = "") -> Markup:
    """A rectangle that says what it is."""
    x, y, width, height = map(number, (*at, *size))
    said = Markup("<title>{}</title>").format(title) if title else ""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" {}>{}</rect>').format(x, y, width, height, filled, said)


def number(value: float) -> str:
    """In as few digits as are seen."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def joined(parts: list[Markup]) -> Markup:
    """One after the other."""
    return Markup("").join(parts)
