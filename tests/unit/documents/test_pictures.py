"""The pictures of the guides to policies show what beat decides now, and each is on its page, in words, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from docs.pictures.__main__ import PAGES, drawn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pictures_and_their_words_are_what_the_script_makes(page: Path) -> None:
    stale = [file.name for file, text in drawn(page).items() if file.read_text(encoding="utf-8") != text]
    assert not stale, "run `make pictures`, and look at them"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_picture_is_on_the_page_with_a_text_for_those_who_do_not_see_it(page: Path) -> None:
    shown = re.findall(rf"!\[([^\]]*)\]\({page.stem}/([\w-]+\.svg)\)", page.read_text(encoding="utf-8"))
    assert sorted(name for _, name in shown) == sorted(file.name for file in page.with_suffix("").glob("*.svg"))
    assert all(len(words) > 20 for words, _ in shown)
