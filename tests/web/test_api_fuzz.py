"""The API before a fuzzer, which asks what nobody would: no crash, no 5xx, and every answer is as it was promised.

LONG_TESTS=1 asks for longer: `make fuzz-api`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from beat import Client
from beat.web import api
from beat.web.app import made
from beat.web.auth import Access
from tests.web.inhabited import inhabited

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from schemathesis import Case

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

CONFIG = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": ["400", "404", "409", "413", "415"]}}}
)
EXAMPLES = 200 if os.environ.get("LONG_TESTS") else 6
IDS = ("report", "fragile", "held", "single", "nightly", "moved", "load", "reprot", "..", "'\"<b>\x00", "é" * 300)

# What reads these fields further on reads more than any schema says: words that nearly are what they should be.
_NUMBER = st.integers(-(10**12), 10**12)
_UNIT = st.sampled_from(["s", "m", "h", "d", "w", "ms", "y", "", " ago", "Z"])
_PERIOD = st.builds(lambda number, unit: f"{number}{unit}", _NUMBER, _UNIT)
_TIME = st.one_of(
    _PERIOD,
    st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    st.datetimes().map(lambda at: at.isoformat(" ", "minutes")),
    st.dates().map(str),
    st.sampled_from(["monday", "tomorrow 09:00", "25:00", "02:30", "9999-12-31T23:59:59-23:59", "0001-01-01"]),
    st.text(max_size=60),
)
_FIELD = st.one_of(
    st.sampled_from(["*", "*/7", "1-5", "mon-fri", "H", "L", "60", "0", "31", "feb"]),
    st.text("*/-,0123456789H", max_size=6),
)
FORMATS: dict[str, SearchStrategy[str]] = {
    "past": _TIME,
    "ahead": _TIME,
    "period": st.one_of(_PERIOD, st.text(max_size=20)),
    "cron": st.one_of(st.lists(_FIELD, min_size=5, max_size=6).map(" ".join), st.text(max_size=30)),
    "time-zone": st.one_of(
        st.sampled_from(["Europe/Berlin", "UTC", "localtime", "../../etc/passwd"]), st.text(max_size=20)
    ),
}


@pytest.fixture
def app(store: Store, server: PrivateRedis) -> object:
    """The real app over a real Redis that is not empty."""
    return made(Client(inhabited(store, server).url), Access(hosts=None))


@pytest.mark.parametrize("endpoint", api.ENDPOINTS, ids=lambda each: each.name)
def test_the_fuzzer_finds_nothing(endpoint: api.Endpoint, app: object) -> None:
    for name, strategy in FORMATS.items():
        schemathesis.openapi.format(name, strategy.filter(lambda text: 0 < len(text) <= 60))
    operation = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, config=CONFIG)[endpoint.path][
        endpoint.method
    ]
    known = {"schedule_id": st.sampled_from(IDS)} if "{schedule_id}" in endpoint.path else {}
    wrong = [GenerationMode.NEGATIVE] if endpoint.within or endpoint.query or endpoint.body else []
    for mode in (GenerationMode.POSITIVE, *wrong):  # where there is nothing to send, nothing can be wrong

        @given(case=operation.as_strategy(generation_mode=mode), path=st.fixed_dictionaries(known))
        @hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        def ask(case: Case[Any], path: dict[str, str]) -> None:
            if path:
                case.path_parameters = path
            # What a schema allows may still be no time and no zone: that it is refused is right.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        ask()
