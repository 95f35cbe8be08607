"""Redraw the pictures of the policy guides from the decisions of a `ManualBeat`: `python -m docs.pictures`."""

from __future__ import annotations

import re
from pathlib import Path

from docs.pictures.drawing import sentence, svg
from docs.pictures.scenes import SCENES
from docs.pictures.stage import play

PAGES = [Path(__file__).parent.parent / f"guides/{name}.md" for name in ("policies", "places")]


def drawn(page: Path) -> dict[Path, str]:
    """Return every picture of a page, and the page with each picture described in words."""
    files, text = {}, page.read_text(encoding="utf-8")
    for scene in (each for each in SCENES if each.page == page.stem):
        rows = play(scene)
        files[page.with_suffix("") / f"{scene.name}.svg"] = svg(scene, rows)
        link = f"]({page.stem}/{scene.name}.svg)"
        text = re.sub(r"!\[[^\]]*" + re.escape(link), f"![{sentence(scene, rows)}{link}", text)
    return files | {page: text}


def main() -> None:
    """Write all pictures, and the pages that contain them."""
    for page in PAGES:
        page.with_suffix("").mkdir(exist_ok=True)
        for file, text in drawn(page).items():
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
