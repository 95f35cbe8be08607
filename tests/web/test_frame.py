"""What all pages have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.web.visitor import text

if TYPE_CHECKING:
    from tests.web.visitor import Visitor


def test_every_answer_keeps_a_browser_from_doing_what_was_not_meant(visitor: Visitor) -> None:
    answer = visitor.get("/")
    assert answer.status_code == 200, text(answer)
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_what_is_not_there_says_so(visitor: Visitor) -> None:
    answer = visitor.get("/nowhere")
    assert answer.status_code == 404
    assert "There is nothing here." in text(answer)
