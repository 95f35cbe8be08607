"""The OpenAPI document: valid, whole, and true of every answer; and the pages that are made from it."""

from __future__ import annotations

import copy
import json
import shlex
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from starlette.applications import Starlette
from starlette.routing import Mount

from beat import Client
from beat.web import api
from beat.web.app import made
from beat.web.auth import Access
from tests.web import reference
from tests.web.program import V1, told
from tests.web.visitor import HOST, Visitor, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.support.schedulers_in_turn import Crew

NAMES = [each.name for each in api.ENDPOINTS]
BY_NAME = {each.name: each for each in api.ENDPOINTS}


@pytest.fixture
def document(visitor: Visitor) -> Any:
    """As it is served."""
    return told(visitor.get(f"{V1}/openapi.json"))


def inner(found: Any) -> Iterator[dict[str, Any]]:
    """Every object in it."""
    if isinstance(found, dict):
        yield found
    for each in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from inner(each)


def test_it_is_valid(document: Any) -> None:
    assert [str(each) for each in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_everything_in_it_is_described(document: Any) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) == len(NAMES) == len({each["operationId"] for each in operations})
    for operation in operations:
        assert operation["summary"]
        assert {"400", "401", "403", "503"} <= operation["responses"].keys()
        for each in operation["parameters"]:
            assert each["description"], each
            assert "example" in each or each["schema"]["type"] == "boolean" or each["name"] in {"after", "from"}, each
    changes = [each for each in operations if "change" in each["tags"]]
    assert all({"413", "415"} <= each["responses"].keys() and "requestBody" in each for each in changes)


def test_every_reference_leads_somewhere(document: Any) -> None:
    references = {each["$ref"] for each in inner(document) if "$ref" in each}
    assert references
    for each in references:
        found = document
        for part in each.removeprefix("#/").split("/"):
            found = found[part]
    used = {each.rpartition("/")[2] for each in references if "/schemas/" in each}
    assert used == document["components"]["schemas"].keys()


def test_it_knows_where_the_app_is_mounted(crew: Crew) -> None:
    alone = made(Client(crew.url), Access())
    program = Visitor(Starlette(routes=[Mount("/ops/beat", alone)]))
    assert told(program.get(f"/ops/beat{V1}/openapi.json"))["servers"] == [{"url": "/ops/beat/api/v1"}]
    answer = program.ask("POST", f"/ops/beat{V1}/schedules/report/trigger", json={})
    assert told(program.get(answer.headers["location"]))["run"]["schedule"] == "report"
    assert told(program.get(f"/ops/beat{V1}/nothing"), 404)["status"] == 404
    assert f"{HOST}/ops/beat{V1}/overview" in text(program.get("/ops/beat/api"))


def asked(program: Visitor, name: str, crew: Crew) -> httpx.Response:
    """The example of an endpoint, as `curl` would send it."""
    run = next(line.job_id for line in crew.client.history("report") if hasattr(line, "job_id"))
    if name == "resume":
        crew.client.pause("report")
    words = shlex.split(BY_NAME[name].curl(HOST).replace("beat_report_1763359200", run))
    assert words[0] == "curl"
    url = words[-1].removeprefix(HOST)
    if "-d" not in words:
        return program.get(url)
    headers = dict([words[words.index("-H") + 1].split(": ")])
    return program.ask("POST", url, content=words[words.index("-d") + 1], headers=headers)


@pytest.mark.parametrize("name", NAMES)
def test_its_examples_work_and_the_answers_have_no_field_that_it_does_not_name(
    name: str, program: Visitor, crew: Crew
) -> None:
    document = told(program.get(f"{V1}/openapi.json"))
    endpoint = BY_NAME[name]
    answer = told(asked(program, name, crew), endpoint.status)
    responses = document["paths"][endpoint.path][endpoint.method.lower()]["responses"]
    schema = copy.deepcopy(responses[str(endpoint.status)]["content"]["application/json"]["schema"])
    whole = {**schema, "components": copy.deepcopy(document["components"])}
    for each in inner(whole):
        if each.get("type") in ("object", ["object", "null"]) and "properties" in each:
            each.setdefault("additionalProperties", False)
    validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    assert [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(answer)] == []


def test_the_page_of_the_reference_is_that_of_the_document() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.text(), "make reference writes it anew"


def test_people_find_every_address_with_a_line_for_a_terminal(visitor: Visitor) -> None:
    answer = visitor.get("/api")
    assert answer.status_code == 200
    for each in api.ENDPOINTS:
        assert f"{each.method} {V1}{each.path}" in text(answer)
    assert json.dumps({"copies": 2}) in answer.text.replace("&#34;", '"')
