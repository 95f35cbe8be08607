"""The API for users with the least rights: who may only read is told everything, and can change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from beat.doctor import acl
from beat.storage import server_check
from beat.storage.keys import Keys
from beat.web.auth import Access
from tests.web.program import V1, everything, post, refused
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.schedulers_in_turn import Crew

PASSWORD = "of-a-test"  # noqa: S105
CHANGES = ("trigger", "pause", "resume", "reschedule")


@pytest.fixture
def admin(crew: Crew) -> Iterator[Any]:
    """Who may do everything, and forgets the user in the end."""
    with Redis.from_url(crew.url, decode_responses=True) as client:
        client.execute_command("ACL", "LOG", "RESET")
        yield client
        client.execute_command("ACL", "DELUSER", "web")


def least(admin: Any) -> acl.Rule:
    """The rights of a beat, in the words that this server knows."""
    return acl.rule(Keys(), version=server_check.number(admin.info()))


def user(admin: Any, crew: Crew, rule: acl.Rule) -> str:
    """The URL of a user with these rights."""
    assert admin.execute_command("ACL", "SETUSER", "web", *rule.words(), f">{PASSWORD}") == "OK"
    return crew.url.replace("://", f"://web:{PASSWORD}@")


def test_a_user_who_may_only_read_is_told_everything(admin: Any, crew: Crew) -> None:
    url = user(admin, crew, least(admin).reading())
    program = Visitor.of(url, access=Access(read_only=True))
    assert everything(program, crew)
    assert program.get("/metrics").status_code == 200
    assert program.get("/readyz").status_code == 200
    assert admin.execute_command("ACL", "LOG") == []


def test_what_redis_does_not_let_a_user_change_is_refused_in_a_sentence(admin: Any, crew: Crew) -> None:
    program = Visitor.of(user(admin, crew, least(admin).reading()))
    for change in CHANGES:
        body = {"every": "2h"} if change == "reschedule" else {}
        answer = program.ask("POST", f"{V1}/schedules/{'held' if change == 'resume' else 'report'}/{change}", json=body)
        assert "refuses" in refused(answer, 503)
    assert program.get("/metrics").status_code == 200
    assert (crew.client.get("report").state, crew.client.get("held").state) == ("active", "paused")


def test_the_user_of_a_beat_can_change_everything(admin: Any, crew: Crew) -> None:
    program = Visitor.of(user(admin, crew, least(admin)))
    assert post(program, "/schedules/report/trigger", 201, kwargs={"copies": 3})
    assert post(program, "/schedules/report/pause", until="1h")
    assert post(program, "/schedules/report/resume")
    assert post(program, "/schedules/report/reschedule", every="2h")
    assert post(program, "/pause_all")["paused"]
    assert post(program, "/resume_all")["resumed"]
    assert everything(program, crew)
    assert program.get("/metrics").status_code == 200
    assert admin.execute_command("ACL", "LOG") == []
