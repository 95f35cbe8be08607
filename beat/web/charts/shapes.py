"""Shared parts of the charts: the fill of each outcome, and boxes with tooltips."""

from __future__ import annotations

from markupsafe import Markup

OUTCOMES = ("failed", "lost", "stopped", "skipped", "open", "succeeded")
"""The outcomes, the worst first."""
_ON_ITS_WAY = frozenset(("queued", "started", "scheduled", "deferred", "waiting"))


def outcome(state: str) -> str:
    """Map a state to the outcome that charts draw for it; a run that has not ended is `open`."""
    return "open" if state in _ON_ITS_WAY or state not in OUTCOMES else state


def fill(state: str) -> Markup:
    """Return the attribute that fills a shape: a plain colour for success, a pattern for all other states."""
    named = outcome(state)
    return Markup('class="f-succeeded"') if named == "succeeded" else Markup('fill="url(#p-{})"').format(named)


def box(at: tuple[float, float], size: tuple[float, float], filled: Markup, title: str = "") -> Markup:
    """Return a rectangle, with a tooltip if it has a title."""
    x, y, width, height = map(number, (*at, *size))
    said = Markup("<title>{}</title>").format(title) if title else ""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" {}>{}</rect>').format(x, y, width, height, filled, said)


def number(value: float) -> str:
    """Return a number with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def joined(parts: list[Markup]) -> Markup:
    """Return all parts as one."""
    return Markup("").join(parts)
