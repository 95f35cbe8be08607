"""A program that asks the API, as short as tests want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.web import api

if TYPE_CHECKING:
    import httpx

    from tests.support.schedulers_in_turn import Crew
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


def everything(program: Visitor, crew: Crew) -> dict[str, str]:
    """Every answer there is to a question, as text."""
    jobs = [line.job_id for line in crew.client.history() if hasattr(line, "job_id")]
    paths = {each.path for each in api.ENDPOINTS if each.method == "GET"}
    asked = {path: [path] for path in paths if "{" not in path}
    for path in paths - asked.keys():
        ids = jobs if "{job_id}" in path else [each.standing.schedule_id for each in crew.client.schedules()]
        asked[path] = [path.format(job_id=each, schedule_id=each) for each in ids]
    more = {"/preview": "?every=15m", "/schedules": "?runs=30", "/schedules/{schedule_id}/why": "?time=03:00"}
    found = {}
    for path, each in asked.items():
        for one in each:
            answer = program.get(f"{V1}{one}{more.get(path, '')}")
            assert answer.status_code == 200, answer.text
            found[one] = answer.text
    assert jobs
    return found
