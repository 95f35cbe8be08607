"""A program that asks the API, as short as tests want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from tests.web.visitor import Visitor

V1 = "/api/v1"


def told(answer: httpx.Response, status: int = 200) -> Any:
    """The document of an answer."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def get(visitor: Visitor, path: str, status: int = 200, /, **query: Any) -> Any:
    """What is told of it."""
    return told(visitor.get(f"{V1}{path}", params=query), status)


def post(visitor: Visitor, path: str, status: int = 200, /, **body: Any) -> Any:
    """What became of a change."""
    return told(visitor.ask("POST", f"{V1}{path}", json=body), status)


def refused(answer: httpx.Response, status: int) -> str:
    """The sentence of a refusal, which is all that it says."""
    found = told(answer, status)
    assert found.keys() == {"error", "status"}
    assert found["status"] == status
    assert "Traceback" not in found["error"]
    return str(found["error"])
