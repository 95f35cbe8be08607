"""Every policy is told in a sentence: by `beat why`, `beat show` and `beat history`, from what a beat really wrote."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from beat.client import reader
from beat.timing import clock
from tests.support.policy_stage import NINE, RUNS, Policed

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
LATE = "no scheduler decided it in time, the first to do so came 7m later"
STRETCH = "skipped by manual-beat, one of {} ticks until 2026-11-16 09:0{}: "


def job(minute: int) -> str:
    return f"beat_report_{clock.floor(NINE) + 60 * minute}"


def held_up(policed: Policed, minute: int = 2) -> Policed:
    """The run of 09:01 has begun at once, and goes on until then."""
    policed.until(1).begin(1)
    return policed.until(minute - 1)


def replaced(newest: str) -> str:
    return f"replaced: the tick of {newest} UTC took its place, after it had waited since 09:02 UTC behind {job(1)} "


def put_to_rest(state: str) -> Policed:
    """09:02 waits; its turn comes when the schedule is in that state."""
    policed = Policed(overlap="wait").until(2)
    policed.redis.hset("beat:schedule:report", "state", state)
    return policed.work()


def raised() -> Policed:
    return Policed(max_runs=2).until(4).change(max_runs=3).until(3)


RUNNING = f"{job(1)} (the run of 09:01 UTC) was still running since 09:01 UTC"
NOBODY = "no live worker reads default: rq worker default"
QUEUED = f"{job(1)} (the run of 09:01 UTC) was still in its queue since 09:01 UTC"

TOLD: list[tuple[str, Callable[[], Policed], str, str, str]] = [
    (
        "misfire once",
        lambda: Policed().away(10),
        "09:03",
        "skipped",
        STRETCH.format(8, 8) + f"misfire: {LATE}, and of the ticks that were missed only the latest fires "
        "(misfire='once'): that of 09:09 UTC",
    ),
    (
        "misfire skip",
        lambda: Policed(misfire="skip").away(10),
        "09:03",
        "skipped",
        STRETCH.format(9, 9) + f"misfire: {LATE}, and what is missed stays missed (misfire='skip')",
    ),
    (
        "too old",
        lambda: Policed(misfire="all", catchup_window="4m").away(10),
        "09:03",
        "skipped",
        STRETCH.format(5, 5) + f"too_old: {LATE}, and what is older than catchup_window='4m' never fires",
    ),
    (
        "too old by the setting",
        lambda: Policed(every="1d").away(1440 * 400),
        "2026-11-18 00:00",
        "skipped",
        (
            "skipped by manual-beat, one of 34 ticks until 2026-12-20 00:00: too_old: no scheduler decided it in time, "
            "the first to do so came 398d9h later, and what is older than the setting catchup_window allows never fires"
        ),
    ),
    (
        "overlap skip, running",
        lambda: held_up(Policed(overlap="skip")),
        "09:02",
        "skipped",
        f"skipped by manual-beat: overlap: {RUNNING}, and only 1 may run at a time (overlap='skip')",
    ),
    (
        "overlap skip, in the queue",
        lambda: Policed(overlap="skip").until(2),
        "09:02",
        "skipped",
        f"skipped by manual-beat: overlap: {QUEUED}, and only 1 may run at a time (overlap='skip')",
    ),
    (
        "max_running",
        lambda: Policed(overlap="skip", max_running=2).until(3),
        "09:03",
        "skipped",
        (
            f"skipped by manual-beat: overlap: {job(2)} (the run of 09:02 UTC) was still in its queue since 09:02 UTC, "
            "and only 2 may run at a time (overlap='skip')"
        ),
    ),
    (
        "overlap wait, no room to wait",
        lambda: held_up(Policed(overlap="wait", max_waiting=2), 5),
        "09:05",
        "skipped",
        f"skipped by manual-beat: overlap: {RUNNING}, and only 1 may run and 2 wait (overlap='wait', max_waiting=2)",
    ),
    (
        "the policy has changed since",
        lambda: held_up(Policed(overlap="skip")).change(),
        "09:02",
        "skipped",
        f"skipped by manual-beat: overlap: {RUNNING}, and there was no room for another",
    ),
    (
        "replaced",
        lambda: held_up(Policed(overlap="replace"), 3),
        "09:02",
        "skipped",
        f"skipped by manual-beat: {replaced('09:03')}(overlap='replace')",
    ),
    (
        "excluded by a date, in its zone",
        lambda: Policed(every="6h", tz="Asia/Tokyo", exclude=["2026-11-17"]).until(24 * 60),
        "2026-11-17 03:00",
        "skipped",
        "skipped by manual-beat: excluded: the schedule rests on Tue 2026-11-17 in Asia/Tokyo (exclude: 2026-11-17)",
    ),
    (
        "excluded by a stretch",
        lambda: Policed(every="6h", exclude=["2026-11-01", "2026-11-16..2026-11-20"]).until(12 * 60),
        "18:00",
        "skipped",
        (
            "skipped by manual-beat: excluded: the schedule rests on Mon 2026-11-16 in UTC "
            "(exclude: 2026-11-16 to 2026-11-20)"
        ),
    ),
    (
        "excluded by a function, which nobody calls to tell",
        lambda: Policed(exclude=["2026-12-25", "tests.support.declared.is_monday"]).until(1),
        "09:01",
        "skipped",
        (
            "skipped by manual-beat: excluded: the schedule rests on Mon 2026-11-16 in UTC "
            "(exclude: the days of tests.support.declared.is_monday)"
        ),
    ),
    *(
        (
            f"{state} when its turn came",
            lambda state=state: put_to_rest(state),
            "09:02",
            "skipped",
            (
                f"skipped by manual-beat: {state}: when its turn came, after it had waited since 09:02 UTC "
                f"behind {job(1)}, the schedule was {state}"
            ),
        )
        for state in ("paused", "disabled", "retired", "broken")
    ),
    (
        "finished by those that wait",
        lambda: Policed(overlap="wait", max_runs=9).until(2).change(overlap="wait", max_runs=2).until(1),
        "09:03",
        "skipped",
        ("skipped by manual-beat: finished: as many ticks had become jobs, or waited, as there are to be (max_runs)"),
    ),
    (
        "waits now",
        lambda: held_up(Policed(overlap="wait"), 4),
        "09:02",
        "waiting",
        (
            f"waits since 09:02 UTC, for 2m, behind {job(1)} (the run of 09:01 UTC), "
            "which has been running since 09:01 UTC (overlap='wait')"
        ),
    ),
    (
        "waits now for what is in its queue",
        lambda: Policed(overlap="wait").until(2),
        "09:02",
        "waiting",
        (
            f"waits since 09:02 UTC, for 0 ms, behind {job(1)} (the run of 09:01 UTC), "
            "which has been in its queue since 09:01 UTC (overlap='wait')"
        ),
    ),
    (
        "had waited",
        lambda: Policed(overlap="wait").until(2).end(1),
        "09:02",
        "enqueued",
        f"enqueued by manual-beat after it had waited 1 s behind {job(1)}, and waits in its queue; {NOBODY}",
    ),
    (
        "put off by jitter",
        lambda: Policed(jitter="30s").until(3),
        "09:03",
        "not_due",
        "not due yet: in 16.1 s, 16.1 s after its time (jitter); the next tick is Mon 2026-11-16 09:03 UTC",
    ),
    (
        "ahead, and put off by jitter",
        lambda: Policed(jitter="30s").until(2.5),
        "2026-11-16 09:03",
        "not_due",
        "not due yet: in 46.1 s, 16.1 s after its time (jitter); the next tick is Mon 2026-11-16 09:03 UTC",
    ),
    (
        "the next to be caught up with",
        lambda: Policed(misfire="all", catchup_limit=3).away(10),
        "09:04",
        "catching_up",
        (
            "due for 6m: missed ticks are caught up with, 3 at a time (catchup_limit); it is the next of them; "
            "no scheduler is running"
        ),
    ),
    (
        "to be caught up with later",
        lambda: Policed(misfire="all").away(20),
        "09:15",
        "catching_up",
        (
            "due for 5m: missed ticks are caught up with, a few at a time (catchup_limit); 4 of them go before it; "
            "no scheduler is running"
        ),
    ),
    (
        "caught up with",
        lambda: Policed(misfire="all").away(10),
        "09:03",
        "enqueued",
        f"enqueued by manual-beat 7m late to catch up, and waits in its queue; {NOBODY}",
    ),
    (
        "after max_runs",
        lambda: Policed(max_runs=2).until(5),
        "09:04",
        "not_a_tick",
        "no tick: the schedule had finished with Mon 2026-11-16 09:02 UTC (max_runs: 2)",
    ),
    (
        "after max_runs, and before it was raised",
        raised,
        "09:04",
        "not_a_tick",
        (
            "no tick: the schedule had finished with Mon 2026-11-16 09:02 UTC (max_runs: 2), "
            "and went on with Mon 2026-11-16 09:05 UTC"
        ),
    ),
    (
        "after max_runs was raised and reached again",
        raised,
        "09:06",
        "not_a_tick",
        "no tick: the schedule had finished with Mon 2026-11-16 09:05 UTC (max_runs: 3)",
    ),
    (
        "after its end",
        lambda: Policed(end=NINE + 2.5 * MINUTE).until(5),
        "09:04",
        "not_a_tick",
        "no tick: the schedule had finished with Mon 2026-11-16 09:02 UTC (end: Mon 2026-11-16 09:02:30 UTC)",
    ),
]


@pytest.mark.parametrize(
    ("made", "time", "answer", "sentence"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD]
)
def test_why_says_it_in_a_sentence(made: Callable[[], Policed], time: str, answer: str, sentence: str) -> None:
    policed = made()
    first = policed.says("why", *time.split(" ")).splitlines()[0]
    head, _, said = first.partition(": ")
    assert said == sentence
    assert time[-5:] in head
    told = policed.document("why", *time.split(" "))
    assert (told["answer"], told["sentence"]) == (answer, sentence)
    policed.sound()


def test_every_reason_has_its_sentence() -> None:
    states = {"paused", "disabled", "retired", "broken", "finished"}
    reasons = {"misfire", "too_old", "overlap", "replaced", "excluded", *states}
    told = {row[4].split(": ")[1] for row in TOLD if row[3] == "skipped"}
    assert told == reasons


def test_programs_are_told_who_was_in_the_way() -> None:
    policed = held_up(Policed(overlap="wait"), 3)
    waiting = policed.document("why", "09:02")
    assert waiting["waiting"] == {
        "type": "waiting", "schedule": "report", "tick": "2026-11-16T09:02:00Z", "job": job(2), "state": "waiting",
        "behind": job(1), "group": None, "at": "2026-11-16T09:02:00Z", "beat": "manual-beat",
    }  # fmt: skip
    assert (waiting["behind"]["job"], waiting["behind"]["state"]) == (job(1), "started")
    skipped = policed.document("why", "09:03")
    assert (skipped["skipped"]["behind"], skipped["behind"]["worker"]) == (job(1), "w1")


def test_programs_are_told_what_came_instead() -> None:
    assert held_up(Policed(overlap="replace"), 3).document("why", "09:02")["instead"] == "2026-11-16T09:03:00Z"
    assert Policed().away(10).document("why", "09:03")["instead"] == "2026-11-16T09:09:00Z"
    assert Policed(misfire="skip").away(10).document("why", "09:03")["instead"] is None


def test_programs_are_told_what_finished_a_schedule() -> None:
    assert Policed(max_runs=2).until(5).document("why", "09:04")["finished"] == {"end": None, "max_runs": 2}
    assert Policed().until(1).document("why", "09:00:30")["finished"] is None


def test_a_newer_tick_that_was_replaced_itself_is_named_all_the_same() -> None:
    told = held_up(Policed(overlap="replace"), 4)
    assert [told.why(minute).instead for minute in (2, 3)] == [NINE + 3 * MINUTE, NINE + 4 * MINUTE]


def test_a_tick_that_is_told_to_wait_and_does_not_is_missing() -> None:
    policed = held_up(Policed(overlap="wait"))
    policed.redis.delete("beat:waiting:report")
    assert policed.why(2).answer == "missing"


def test_a_tick_waits_though_its_line_was_trimmed() -> None:
    policed = held_up(Policed(overlap="wait"), 3)
    policed.redis.ltrim(RUNS, 0, 0)
    assert policed.says("why", "09:02") == (
        "Mon 2026-11-16 09:02 UTC: waits for an earlier run to end (overlap='wait')\n"
    )


def test_what_was_trimmed_beside_a_tick_that_waited_long_is_not_called_missing() -> None:
    policed = held_up(Policed(overlap="wait"), 5).end(1)
    policed.redis.ltrim(RUNS, 0, 0)
    assert policed.why(2).answer == "enqueued", "the only line that is left"
    assert policed.why(4).answer == "trimmed", "it was skipped while the other waited"


# --- beat show --------------------------------------------------------------------------------------------------------


def shown(policed: Policed) -> dict[str, str]:
    lines = (line for line in policed.says("show").partition("\n\n")[0].splitlines() if "  " in line)
    return {name: value.strip() for name, value in (line.split("  ", 1) for line in lines)}


POLICIES = {"misfire", "misfire_after", "catchup_window", "catchup_limit", "overlap", "max_running", "max_waiting",
            "max_runs", "exclude", "jitter"}  # fmt: skip


def test_a_schedule_without_policies_of_its_own_shows_none() -> None:
    assert not POLICIES.intersection(shown(Policed().until(1)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"misfire": "skip"}, {"misfire": "skip: ticks that were missed are skipped"}),
        (
            {"misfire": "all", "misfire_after": "1m30s", "catchup_window": "2h", "catchup_limit": 3},
            {
                "misfire": "all: every tick that was missed fires, oldest first",
                "misfire_after": "a tick counts as missed when it is 1m30s late",
                "catchup_window": "a tick that is more than 2h late never fires",
                "catchup_limit": "missed ticks fire 3 at a time",
            },
        ),
        (
            {"overlap": "skip", "max_running": 2},
            {"overlap": "skip: while a run goes on, ticks are skipped", "max_running": "2 may run at a time"},
        ),
        (
            {"overlap": "wait", "max_waiting": 3},
            {"overlap": "wait: while a run goes on, ticks wait for it to end", "max_waiting": "3 may wait"},
        ),
        (
            {"overlap": "replace"},
            {"overlap": "replace: the newest tick takes the place of the run that goes on"},
        ),
        ({"max_runs": 1000}, {"max_runs": "1 of 1,000 ticks have become jobs"}),
        (
            {"exclude": ["2026-12-25", "2026-12-31..2027-01-01", "tests.support.declared.is_monday"]},
            {
                "exclude": "it rests on 2026-12-25, 2026-12-31 to 2027-01-01, "
                "the days of tests.support.declared.is_monday"
            },
        ),
        (
            {"exclude": [f"2026-12-{day:02}" for day in range(1, 9)]},
            {
                "exclude": "it rests on 2026-12-01, 2026-12-02, 2026-12-03, 2026-12-04, 2026-12-05, and 3 more"
            },
        ),
        ({"jitter": "30s"}, {"jitter": "each tick fires up to 30s after its time"}),
    ],
)  # fmt: skip
def test_show_says_each_policy_in_a_line(options: dict[str, Any], words: dict[str, str]) -> None:
    told = shown(Policed(**options).until(1.5))
    assert {name: told[name] for name in POLICIES.intersection(told)} == words


def test_show_says_when_the_next_tick_is_due() -> None:
    assert shown(Policed(jitter="30s").until(2.5))["next"] == (
        "Mon 2026-11-16 09:03 UTC (in 30 s), due 16.1 s after 09:03:00"
    )
    assert shown(Policed().until(2.5))["next"] == "Mon 2026-11-16 09:03 UTC (in 30 s)"


def test_show_says_how_many_run_and_wait() -> None:
    told = shown(held_up(Policed(overlap="wait", max_waiting=3), 3))
    assert told["open"] == f"1 of 1: {job(1)} (started)"
    assert told["waiting"] == "2 of 3: Mon 2026-11-16 09:02 UTC, Mon 2026-11-16 09:03 UTC"
    assert "waiting" not in shown(Policed(overlap="wait").until(1))


def test_a_tick_that_waited_for_a_run_makes_no_beat_late() -> None:
    assert "lateness       p50 0 ms, p95 0 ms, max 0 ms" in Policed(overlap="wait").until(3).end(1).says("show")


def test_show_says_why_a_schedule_has_finished() -> None:
    assert shown(Policed(max_runs=3).until(5))["state"] == "finished (max_runs: 3 of 3)"
    assert shown(Policed(end=NINE + 2 * MINUTE).until(5))["state"] == "finished (end: Mon 2026-11-16 09:02 UTC)"


def test_show_for_programs() -> None:
    told = held_up(Policed(overlap="wait", max_runs=2), 3).document("show")
    assert told["waiting"] == ["2026-11-16T09:02:00Z"]
    assert told["schedule"]["finished"] == {"end": None, "max_runs": 2}
    assert told["schedule"]["definition"]["overlap"] == "wait"


# --- beat history -----------------------------------------------------------------------------------------------------


def test_a_history_names_who_waits_and_who_was_in_the_way() -> None:
    policed = held_up(Policed(overlap="wait"), 3)
    assert policed.says("history").splitlines()[1:3] == [
        f"2026-11-16 09:03  skipped                 overlap, behind {job(1)}",
        f"2026-11-16 09:02  waiting                 behind {job(1)}",
    ]
    assert [line["type"] for line in policed.document("history")["lines"]] == [
        "skipped",
        "waiting",
        "run",
        "registered",
    ]
    assert f"09:02 UTC: waits for 1m, until {job(1)} has ended" in policed.says("history", "-v")


def test_a_history_says_how_long_a_tick_had_waited() -> None:
    policed = Policed(overlap="wait").until(2).end(1)
    assert policed.says("history").splitlines()[1].endswith(f"waited 1 s behind {job(1)}")
    run = policed.document("history")["lines"][0]
    assert (run["waited_since"], run["behind"]) == ("2026-11-16T09:02:00Z", job(1))


def test_a_history_names_who_took_the_place() -> None:
    policed = held_up(Policed(overlap="replace"), 3)
    assert policed.says("history").splitlines()[2].endswith(f"replaced, by {job(3)}")
    skipped = policed.document("history")["lines"][1]
    assert (skipped["behind"], skipped["waited_since"]) == (job(3), "2026-11-16T09:02:00Z")


def test_only_what_waits_can_be_asked_for() -> None:
    policed = held_up(Policed(overlap="wait", max_waiting=2), 3)
    for schedule_id in ("report", None):
        lines = policed.client.history(schedule_id, outcome="waiting")
        assert [line.at for line in lines] == [NINE + 3 * MINUTE, NINE + 2 * MINUTE]


def test_a_history_is_read_no_further_than_asked() -> None:
    policed = held_up(Policed(overlap="wait"), 40)
    with (
        mock.patch.object(reader, "_PAGE", 10),
        mock.patch.object(policed.redis, "lrange", wraps=policed.redis.lrange) as asked,
    ):
        assert len(policed.client.history("report", limit=5)) == 5
    assert asked.call_count == 1
