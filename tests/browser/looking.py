"""What must hold for every page: who cannot see or use a mouse gets all of it, and a narrow screen does, too."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

_AXE = Path(__file__).parent / "axe.min.js"
_RUN = "only => axe.run(document, {resultTypes: ['violations'], ...only})"
_RULES: dict[str, dict[str, list[str]]] = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
"""In other colours nothing else is different."""
_WIDTH = "() => [document.documentElement.scrollWidth, window.innerWidth]"
_POLLED = """() => new Promise(done => document.addEventListener("htmx:afterRequest", function ended(event) {
  if (event.detail.elt.id === "live") { document.removeEventListener("htmx:afterRequest", ended); done(); }
}))"""
NARROW, WIDE = 360, 2560


def accessible(page: Page) -> None:
    """Fails with what axe finds, in light and in dark colours."""
    found: dict[str, None] = {}
    page.evaluate(_script())
    for scheme, only in _RULES.items():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found |= dict.fromkeys(f"{scheme}: {each}" for each in map(_told, page.evaluate(_RUN, only)["violations"]))
    page.emulate_media(color_scheme=None)
    assert not found, "axe finds on " + page.url + "\n" + "\n".join(found)


def fits(page: Page, *widths: int) -> None:
    """Fails where somebody would have to scroll sideways; the width is as before afterwards."""
    before = page.viewport_size
    for width in widths or (NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": 800})
        content, window = page.evaluate(_WIDTH)
        assert content <= window, f"{page.url} is {content} px wide on a screen of {width} px"
    if before:
        page.set_viewport_size(before)


def polled(page: Page) -> None:
    """Wait until the page has asked again, and shows the answer if there is anything new."""
    page.evaluate(_POLLED)


@cache
def _script() -> str:
    return _AXE.read_text(encoding="utf-8")


def _told(violation: Any) -> str:
    places = [f"    {' '.join(map(str, node['target']))}: {node['failureSummary']}" for node in violation["nodes"][:5]]
    return "\n".join([f"{violation['id']} ({violation['impact']}): {violation['help']}", *places])
