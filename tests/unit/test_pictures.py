"""The pictures of docs/guides/policies.md show what beat decides now, and each is on the page, in words, too."""

from __future__ import annotations

import re

from docs.pictures.__main__ import FOLDER, PAGE, drawn


def test_the_pictures_and_their_words_are_what_the_script_makes() -> None:
    stale = [file.name for file, text in drawn().items() if file.read_text(encoding="utf-8") != text]
    assert not stale, "run `make pictures`, and look at them"


def test_every_picture_is_on_the_page_with_a_text_for_those_who_do_not_see_it() -> None:
    shown = dict(re.findall(r"!\[([^\]]*)\]\(policies/([\w-]+\.svg)\)", PAGE.read_text(encoding="utf-8")))
    assert sorted(shown.values()) == sorted(file.name for file in FOLDER.glob("*.svg"))
    assert all(len(words) > 20 for words in shown)
