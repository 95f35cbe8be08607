"""What the benchmarks read off a run: percentiles, and the slow log."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.readings import Ran, longest_ms, percentile, ran

SHA = "b94403d5f8199fdaf682ddbbddd3d7ac37b356ea"


def entry(command: bytes, micros: int = 1500) -> dict[str, Any]:
    return {"command": command, "duration": micros}


@pytest.mark.parametrize(
    ("values", "percent", "found"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 99, 7.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([4.0, 3.0, 2.0, 1.0], 50, 2.0),
        (list(range(1, 101)), 50, 50),
        (list(range(1, 101)), 99, 99),
        (list(range(1, 101)), 100, 100),
        (list(range(1, 201)), 99, 198),
        (list(range(1, 12)), 99, 11),
    ],
)
def test_a_percentile_is_the_lowest_value_that_so_many_do_not_exceed(
    values: list[float], percent: float, found: float
) -> None:
    assert percentile(values, percent) == found


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 99)


def test_only_scripts_are_taken_from_the_slow_log() -> None:
    log = [entry(b"ZCARD beat:due"), entry(f"EVALSHA {SHA} 0".encode()), entry(b"HGET evalsha x")]
    assert ran(log) == [Ran(SHA, 1.5, 3)]


def test_a_script_that_was_sent_as_text_has_no_digest() -> None:
    assert ran([entry(b"EVAL return_1 0", 250)]) == [Ran("", 0.25, 3)]


def test_the_arguments_that_the_slow_log_leaves_out_are_counted() -> None:
    shown = b" ".join([b"EVALSHA", SHA.encode(), b"0", *(b"x" for _ in range(28))])
    assert ran([entry(shown + b" ... (226 more arguments)")])[0].arguments == 31 + 226


def test_arguments_that_are_no_text_do_no_harm() -> None:
    assert ran([entry(b"EVALSHA " + SHA.encode() + b" 0 \xff\xfe")])[0].arguments == 4


def test_the_longest_of_no_scripts_took_no_time() -> None:
    assert longest_ms([]) == 0


def test_the_longest_script_is_the_one_that_kept_redis_longest() -> None:
    assert longest_ms([Ran(SHA, 3.0, 3), Ran("", 12.5, 3), Ran(SHA, 1.0, 3)]) == 12.5
