"""Judge how large the ledgers and the event stream are, how fast they grow, and how large they will become."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from beat.doctor.findings import NOTE, OK, RULE, Finding, counted, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from beat.doctor.facts import Growth, Ledger

A_TICK = 480
"""The assumed bytes of a tick that was fired and succeeded, for ledgers with too few ticks to measure."""
_ENOUGH = 20  # ticks in a ledger, to measure the size of one
_SPARE = 1.2  # the event stream is trimmed by whole blocks


class Estimate(NamedTuple):
    """The size of all ledgers together, in bytes."""

    now: float
    per_day: float
    in_the_end: float


def judge(found: Growth) -> Iterator[Finding]:
    """Yield findings about the ledgers, then about the event stream."""
    yield from ledgers(found)
    yield from events(found)


def ledgers(found: Growth) -> Iterator[Finding]:
    """Estimate the size of all ledgers from a sample."""
    if not found.sample:
        yield Finding("memory", "ledgers", OK, "there are no ledgers yet")
        return
    about = estimate(found.sample, found.ledgers, found.history_limit)
    seen = f"{size(about.now)} in {counted(found.ledgers, 'ledger')}"
    if any(each.size is None for each in found.sample):
        seen = counted(found.ledgers, "ledger")
    sampled = f" (by {len(found.sample)} of them)" if len(found.sample) < found.ledgers else ""
    kept = f"each keeps {counted(found.history_limit, 'tick')}"
    if about.per_day < 1:
        yield Finding("memory", "ledgers", OK, f"{seen}{sampled}; they grow no more, for {kept}")
    else:
        grows = f"about {size(about.per_day)} more a day, and {size(about.in_the_end)} in the end, for {kept}"
        yield Finding("memory", "ledgers", OK, f"{seen}{sampled}; {grows}")
    if any(each.size is None for each in found.sample):
        yield Finding("memory", "sizes", NOTE, "could not look at sizes: this user lacks +memory|usage", RULE)


def events(found: Growth) -> Iterator[Finding]:
    """Compare the length of the event stream with `events_limit`, to which it is trimmed approximately."""
    if found.events is None:
        return
    taken = "" if found.events_size is None else f", {size(found.events_size)}"
    what = f"{counted(found.events, 'event')}{taken}"
    limit = f"about {found.events_limit:,} (events_limit)"
    if found.events >= found.events_limit * _SPARE + 100:
        yield Finding("memory", "events", NOTE, f"{what}: more than {limit}; the next events make it shorter")
    elif found.events >= found.events_limit:
        yield Finding("memory", "events", OK, f"{what}; it grows no more, for it is kept to {limit}")
    else:
        yield Finding("memory", "events", OK, f"{what}; it grows to {limit}")


def estimate(sample: Sequence[Ledger], ledgers: int, limit: int) -> Estimate:
    """Estimate the size of all ledgers from the sample; a full ledger no longer grows."""
    now = per_day = in_the_end = 0.0
    for each in sample:
        taken = each.size if each.size is not None else each.verdicts * A_TICK
        a_tick = taken / each.verdicts if each.verdicts >= _ENOUGH else A_TICK
        now += taken
        per_day += min(each.per_day, max(0, limit - each.verdicts)) * a_tick
        in_the_end += max(taken, a_tick * limit) if each.per_day else taken
    share = ledgers / len(sample)
    return Estimate(now * share, per_day * share, in_the_end * share)
