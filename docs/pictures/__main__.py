"""`python -m docs.pictures`: draws the pictures of docs/guides/policies.md anew, from the verdicts of a manual beat."""

from __future__ import annotations

import re
from pathlib import Path

from docs.pictures.drawing import sentence, svg
from docs.pictures.scenes import SCENES
from docs.pictures.stage import play

PAGE = Path(__file__).parent.parent / "guides/policies.md"
FOLDER = PAGE.with_suffix("")


def drawn() -> dict[Path, str]:
    """Every picture, and the page with what each shows in words."""
    files, page = {}, PAGE.read_text(encoding="utf-8")
    for scene in SCENES:
        rows = play(scene)
        files[FOLDER / f"{scene.name}.svg"] = svg(scene, rows)
        link = f"]({FOLDER.name}/{scene.name}.svg)"
        page = re.sub(r"!\[[^\]]*" + re.escape(link), f"![{sentence(scene, rows)}{link}", page)
    return files | {PAGE: page}


def main() -> None:
    """Writes them."""
    FOLDER.mkdir(exist_ok=True)
    for file, text in drawn().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
