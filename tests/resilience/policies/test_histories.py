"""Whatever the policies, the outages and the length of the runs: every tick gets one verdict, and it is the model's.

Most histories are played on a real Redis, which takes a fifth of the time that the fake one takes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import given, settings

from tests.resilience.policies.company import Company, Shared
from tests.resilience.policies.histories import groups, histories
from tests.resilience.policies.stage import History, Stage

if TYPE_CHECKING:
    from tests.resilience.policies.clients import Connect

TIMES = 20 if os.environ.get("LONG_TESTS") else 1


@settings(max_examples=25 * TIMES)
@given(history=histories())
def test_every_tick_has_the_verdict_of_the_model(connect: Connect, history: History) -> None:
    Stage(history, connect).goes_on_to_the_end()


@settings(max_examples=5 * TIMES)
@given(history=histories())
def test_so_it_has_in_the_manual_beat_of_a_users_tests(history: History) -> None:
    Stage(history).goes_on_to_the_end()


@settings(max_examples=12 * TIMES)
@given(shared=groups())
def test_however_many_share_a_group_no_more_run_at_once_than_may_and_who_waits_gets_in(
    connect: Connect, shared: Shared
) -> None:
    Company(shared, connect).goes_on_to_the_end()
