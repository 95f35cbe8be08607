"""Mutants: beat with one safeguard taken out, each of which the tests must notice. `make mutants` runs them.

A mutant is a copy of the project with a few exact replacements. Its tests run in the copy, beats and all, and must
fail. Without any replacement they must pass, so that no mutant is killed by a test that fails anyway.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
COPIED = ("beat", "tests", "pyproject.toml")


RPUSH = """\
        for item, reply in zip(self.sent.pop(0), getattr(decided, "replies", ())):
            if item.kind == "fire" and reply.code == "OK":
                self.client.rpush(item.queue, item.job)
        if not claims:
"""
LOCAL_CLOCK = """\
        import dataclasses, time
        told = "{'%d', '0'}" % time.time()
        local = lambda script: dataclasses.replace(script, text=script.text.replace("redis.call('TIME')", told))
        found = ((local(scripts.script(call.name)), call) for call in calls)
"""


class Mutant(NamedTuple):
    """What is taken out, where, and which tests are asked."""

    name: str
    changes: tuple[tuple[str, str, str], ...]
    """File, what stands there, what stands there instead."""
    tests: tuple[str, ...]


FIRE = ("tests/storage/test_fire.py",)
SLOTS = ("tests/storage/test_slots.py",)
ASKED = ("tests/storage/test_operations.py",)
VERSIONS = ("tests/integration/test_versions.py",)
RETIRED = ("tests/integration/test_retirement.py",)
APART = ("tests/integration/test_two_programs.py",)
GROUPED = ("tests/integration/test_groups.py",)
CROWDED = ("tests/storage/test_batches.py",)
BROADCAST = ("tests/integration/test_broadcast.py",)
FANOUT = ("tests/storage/test_follow.py",)
FOLLOWED = ("tests/integration/test_following.py",)
REQUIRED = ("tests/integration/test_requires.py",)
ROUTED = ("tests/integration/test_routing.py",)
RETRIED = ("tests/unit/engine/test_retrying.py",)
AHEAD = ("tests/storage/test_ahead.py",)
ENDED = ("tests/unit/jobs/test_outcomes.py",)
WATCHED = ("tests/integration/test_run_tracker.py", "-k", "just_started")
HEARD = ("tests/unit/engine/test_listening.py",)
INTERLEAVED = ("tests/resilience/test_interleaving.py",)
STRUCK = ("tests/resilience/test_commands.py", "-k", "fire or claim")

MUTANTS = [
    Mutant(
        "no compare-and-set",
        (("beat/storage/scripts/fire.lua", "if next_run ~= tick then return stale(key) end", ""),),
        FIRE,
    ),
    Mutant(
        "no rev check",
        (("beat/storage/scripts/fire.lua", "if now_rev ~= rev then return 'CHANGED', '' end", ""),),
        FIRE,
    ),
    Mutant(
        "no TYPE guard",
        (
            (
                "beat/storage/scripts/fire.lua",
                "wrong = not places and queue_problem(id, job, queue, crowd and not crowd.is_more)",
                "",
            ),
        ),
        FIRE,
    ),
    Mutant(
        "a queue that this user may not fill",
        (("beat/storage/scripts/fire.lua", "  if barred[queue] then return barred[queue] end\n", ""),),
        FIRE,
    ),
    Mutant(
        "slots that this user may not use",
        (("beat/storage/scripts/fire.lua", "if is_special then", "if false then"),),
        SLOTS,
    ),
    Mutant(
        "the rights that functions need are forgotten",
        (("beat/storage/scripts/rights.py", "for use in self._of(self._functions[call[1]]):", "for use in ():"),),
        FIRE,
    ),
    Mutant(
        "no counter guard",
        (("beat/storage/scripts/parts/sane.lua", "  return counts[value]\n", "  return true\n"),),
        FIRE,
    ),
    Mutant(
        "an error reply instead of an item code",
        (
            (
                "beat/storage/scripts/fire.lua",
                "return 'BADTYPE', key .. ' is a ' .. found end",
                "return error('WRONGTYPE') end",
            ),
        ),
        FIRE,
    ),
    Mutant("no #!lua", (("beat/storage/scripts/fire.lua", "#!lua\n", ""),), FIRE),
    Mutant(
        "enqueue outside the script",
        (
            (
                "beat/storage/scripts/fire.lua",
                "redis.call('RPUSH', queue, unpack(ends.back, n, math.min(n + 999, #ends.back)))",
                "local _ = queue",
            ),
            (
                "beat/storage/pipelined.py",
                "        self._line.ask(calls)\n",
                "        self._line.ask(calls)\n        self.sent += [items]\n",
            ),
            (
                "beat/storage/pipelined.py",
                "        self._line.hang_up()\n",
                "        self._line.hang_up()\n        self.sent = []\n",
            ),
            ("beat/storage/pipelined.py", "    def ask(self", "    sent: list = []\n\n    def ask(self"),
            ("beat/storage/pipelined.py", "        if not claims:\n", RPUSH),
        ),
        STRUCK,
    ),
    Mutant(
        "redis-py's default retry",
        (("beat/storage/connection.py", '"retry": Retry(NoBackoff(), 0),', '"retry": Retry(NoBackoff(), 10),'),),
        ("tests/unit/storage/test_connection.py",),
    ),
    Mutant(
        "the local clock instead of TIME",
        (
            (
                "beat/storage/connection.py",
                "        found = ((scripts.script(call.name), call) for call in calls)\n",
                LOCAL_CLOCK,
            ),
        ),
        ("tests/resilience/test_clocks.py",),
    ),
    Mutant(
        "next tick from now",
        (
            (
                "beat/policies/decide.py",
                "following, after(schedule, following)",
                "following, schedule.after(max(now, following))",
            ),
        ),
        ("tests/unit/policies/test_decide.py",),
    ),
    Mutant(
        "unguarded lock release",
        (
            (
                "beat/storage/scripts/release.lua",
                "if redis.call('TYPE', lock)['ok'] ~= 'string' or redis.call('GET', lock) ~= token then",
                "if false then",
            ),
        ),
        ("tests/storage/test_lock.py",),
    ),
    Mutant(
        "release inside a chain",
        (
            (
                "beat/storage/scripts/fire.lua",
                "  elseif last_code[id] ~= 'ENDED' then last_code[id] = code end\n",
                "  else last_code[id] = code redis.call('DEL', lock_prefix .. id) ours = {} end\n",
            ),
        ),
        FIRE,
    ),
    Mutant(
        "no room is room enough",
        (("beat/storage/scripts/fire.lua", "if count >= item.room then return stand", "if false then return stand"),),
        SLOTS,
    ),
    Mutant(
        "who waits is let in twice",
        (
            (
                "beat/storage/scripts/parts/room.lua",
                "if not redis.call('ZSCORE', waiting_prefix .. item.id, member_of(item)) then return 'STALE'",
                "if false then return 'STALE'",
            ),
        ),
        SLOTS,
    ),
    Mutant(
        "a run that has ended keeps its room",
        (("beat/storage/scripts/close.lua", "    leave_slots(id, group, job)\n    if ttl", "    if ttl"),),
        SLOTS,
    ),
    Mutant(
        "ended runs are not closed first",
        (("beat/storage/scripts/parts/room.lua", "if cleared == '' and (ended > 0", "if cleared == '' and (false"),),
        SLOTS,
    ),
    Mutant(
        "a worker is told again and again to stop",
        (
            (
                "beat/storage/scripts/withdraw.lua",
                "worker, 'NX', 'PX', told) then return 'STARTED'",
                "worker, 'PX', told) then return 'STARTED'",
            ),
        ),
        (*SLOTS, *BROADCAST),
    ),
    Mutant(
        "who replaces a run comes a second later",
        (("beat/storage/slots.py", "        if freed:\n", "        if not ids:\n"),),
        SLOTS,
    ),
    Mutant(
        "who waits is overtaken",
        (
            (
                "beat/storage/scripts/parts/room.lua",
                "if count < room and waits == 0 then return 0",
                "if count < room then return 0",
            ),
        ),
        SLOTS,
    ),
    Mutant(
        "claim without hiding",
        (("beat/storage/scripts/claim.lua", "  hide(id, now + lock_ttl)\n", ""),),
        ("tests/storage/test_claim.py",),
    ),
    Mutant(
        "job id reused",
        (("beat/storage/keys.py", "_{schedule_id}_{second}", "_{schedule_id}"),),
        ("tests/unit/engine/test_fire_items.py",),
    ),
    Mutant(
        "a run is closed by whoever comes",
        (("beat/storage/scripts/close.lua", " or redis.call('HGET', records, job) ~= seen then", " then"),),
        ("tests/storage/test_close.py", "tests/integration/test_run_tracker.py"),
    ),
    Mutant(
        "lost at first sight",
        (("beat/jobs/outcomes.py", "MISSING_MS = 60_000", "MISSING_MS = 0"),),
        ("tests/unit/jobs/test_outcomes.py",),
    ),
    Mutant(
        "a run is lost though RQ would let it go on",
        (("beat/jobs/outcomes.py", "GRACE_MS = 90_000", "GRACE_MS = 0"),),
        ("tests/unit/jobs/test_outcomes.py",),
    ),
    Mutant(
        "nobody remembers which tick replaced a run",
        (("beat/storage/scripts/withdraw.lua", "  note(job)\n  if redis", "  if redis"),),
        SLOTS,
    ),
    Mutant(
        "a live worker is dead",
        (("beat/storage/scripts/observe.lua", "alive = life_of(job)", "alive = '0'"),),
        ("tests/storage/test_observe.py",),
    ),
    Mutant(
        "a verdict without a line",
        (
            (
                "beat/storage/scripts/parts/ledger.lua",
                "local length = redis.pcall('LPUSH', key, line)",
                "local length = 1",
            ),
        ),
        ("tests/integration/test_ledger.py",),
    ),
    Mutant(
        "a line that goes on after a lost reply",
        (("beat/storage/connection.py", "            self._connection.disconnect()\n", "            pass\n"),),
        ("tests/storage/test_pipeline.py",),
    ),
    Mutant(
        "a ledger that grows for ever",
        (
            (
                "beat/storage/scripts/parts/ledger.lua",
                "while kept > most_verdicts and length > shortest do",
                "while false do",
            ),
        ),
        ("tests/integration/test_ledger.py",),
    ),
    Mutant(
        "what somebody asked for is not remembered",
        (("beat/storage/scripts/fire.lua", "redis.call('SET', request_prefix .. job, now_text, 'EX', number)", ""),),
        ASKED,
    ),
    Mutant(
        "what is not paused is resumed",
        (("beat/storage/scripts/fire.lua", "if state ~= 'paused' then return 'INACTIVE', state or '' end", ""),),
        ASKED,
    ),
    Mutant(
        "a rollback while the new version lives",
        (("beat/storage/scripts/register.lua", "if newer then return 'OLDER', newer end", ""),),
        VERSIONS,
    ),
    Mutant(
        "what a live beat declares is retired",
        (("beat/storage/scripts/retire.lua", "or is_announced(id)) then", ") then"),),
        RETIRED,
    ),
    Mutant(
        "a later application takes an id over",
        (
            (
                "beat/storage/scripts/register.lua",
                "'code' and now_rev and was_app",
                "'code' and now_rev == rev and was_app",
            ),
        ),
        APART,
    ),
    Mutant(
        "an older definition of another application counts as an older version",
        (
            (
                "beat/storage/scripts/register.lua",
                "if other and is_announced(id, nil, was_app) then",
                "if other and now_rev == rev and is_announced(id, nil, was_app) then",
            ),
        ),
        APART,
    ),
    Mutant(
        "schedules of modules that are not loaded are retired",
        (("beat/storage/provenance.py", "(not place.module or place.module in self.modules)", "True"),),
        APART,
    ),
    Mutant(
        "without a name of the application, another directory or host is retired",
        (
            (
                "beat/storage/provenance.py",
                "place.host == self.host and place.directory in self.directories",
                "True",
            ),
        ),
        APART,
    ),
    Mutant(
        "a scheduler that only exposes functions announces nothing as its declarations",
        (("beat/engine/registrar.py", 'hexdigest()[:16]}" if revs else', 'hexdigest()[:16]}" if told else'),),
        APART,
    ),
    Mutant(
        "two programs of one name are not told apart",
        (("beat/engine/conflicts.py", "comparison.size and not comparison.common", "False"),),
        APART,
    ),
    Mutant(
        "two programs of one name retire what the other declares",
        (("beat/engine/housekeeper.py", "not (self._neighbours and self._neighbours.unrelated)", "True"),),
        ("tests/process/test_two_programs.py",),
    ),
    Mutant(
        "what is held fires",
        (("beat/storage/scripts/claim.lua", "if unannounced_at then return hide(id, now + 5000) end", ""),),
        RETIRED,
    ),
    Mutant(
        "counters that forget what was replaced",
        (("beat/storage/scripts/close.lua", "  if counters[was] then\n", "  if false then\n"),),
        ("tests/storage/test_close.py",),
    ),
    Mutant(
        "a full group has room",
        (("beat/storage/scripts/fire.lua", "if full then return stand_in_line", "if false then return stand_in_line"),),
        GROUPED,
    ),
    Mutant(
        "a full group lets in who waits",
        (
            (
                "beat/storage/scripts/parts/room.lua",
                "if others == 0 and fits_in(item) then return end",
                "if true then return end",
            ),
        ),
        GROUPED,
    ),
    Mutant(
        "who waits for the group is overtaken",
        (
            (
                "beat/storage/scripts/parts/room.lua",
                "if waits == 0 and fits and ended == 0 then return false end",
                "if fits and ended == 0 then return false end",
            ),
        ),
        GROUPED,
    ),
    Mutant(
        "a broadcast counts as one in its group",
        (("beat/storage/scripts/fire.lua", "jobs = places and #places or 1,", "jobs = 1,"),),
        BROADCAST,
    ),
    Mutant(
        "a run that has ended keeps the room of its group",
        (("beat/storage/scripts/close.lua", "ipairs(group ~= '' and {id, '@' .. group} or {id})", "ipairs({id})"),),
        GROUPED,
    ),
    Mutant(
        "a run has no room in its group",
        (
            (
                "beat/storage/scripts/fire.lua",
                "if group ~= '' then take_room(running_prefix .. '@' .. group",
                "if false then take_room(running_prefix .. '@' .. group",
            ),
        ),
        GROUPED,
    ),
    Mutant(
        "who waits for the group has no room of its own",
        (("beat/storage/scripts/parts/hall.lua", "    number = number + (score and 1 or 0)\n", ""),),
        GROUPED,
    ),
    Mutant(
        "who is let in stays in the line of the group",
        (
            (
                "beat/storage/scripts/parts/room.lua",
                "ipairs(group ~= '' and {id, '@' .. group} or {id}) do\n    leave(",
                "ipairs({id}) do\n    leave(",
            ),
        ),
        GROUPED,
    ),
    Mutant(
        "who has left a group stands in its line",
        (("beat/storage/scripts/attend.lua", "if rev and '@' .. (group or '') == slot and", "if rev and"),),
        GROUPED,
    ),
    Mutant(
        "what was expected need not be so",
        (
            (
                "beat/storage/scripts/fire.lua",
                "if expects ~= '' and not holds(expects) then return 'CHANGED', '' end",
                "",
            ),
        ),
        REQUIRED,
    ),
    Mutant(
        "a success is followed again",
        (
            (
                "beat/storage/scripts/close.lua",
                "if counted == 'succeeded' and before ~= 'succeeded' then",
                "if counted == 'succeeded' then",
            ),
        ),
        FOLLOWED,
    ),
    Mutant(
        "whatever ends is followed",
        (
            (
                "beat/storage/scripts/close.lua",
                "if counted == 'succeeded' and before ~= 'succeeded' then",
                "if counters[counted] then",
            ),
        ),
        FOLLOWED,
    ),
    Mutant(
        "who does not follow any more does",
        (
            (
                "beat/storage/scripts/parts/followers.lua",
                " or redis.call('HGET', schedule_prefix .. each, 'follows') ~= id then",
                " then",
            ),
        ),
        FOLLOWED,
    ),
    Mutant(
        "a line that is something else swallows a success",
        (
            (
                "beat/storage/scripts/parts/followers.lua",
                "    passes_by(each, tick, job, 'broken', line .. ' is a ' .. kind)\n",
                "",
            ),
        ),
        FOLLOWED,
    ),
    Mutant(
        "who cannot be let in keeps the group waiting",
        (("beat/storage/scripts/fire.lua", "      step_aside(i)\n", ""),),
        CROWDED,
    ),
    Mutant(
        "one item breaks the page",
        (("beat/storage/scripts/fire.lua", "pcall(decided, i, crowds[n])", "true, decided(i, number)"),),
        CROWDED,
    ),
    Mutant(
        "a broadcast goes where it can",
        (
            (
                "beat/storage/scripts/fire.lua",
                "wrong = wrong or queue_problem(id, job .. '_s' .. n - 1, place, true)",
                "local _ = n",
            ),
        ),
        BROADCAST,
    ),
    Mutant(
        "a broadcast has ended with its first part",
        (
            (
                "beat/storage/scripts/close.lua",
                "if ended - (was ~= '' and 1 or 0) < tonumber(all) then",
                "if false then",
            ),
        ),
        BROADCAST,
    ),
    Mutant(
        "what a broadcast was counted as is one of its parts",
        (
            (
                "beat/storage/scripts/close.lua",
                "if ended - (was ~= '' and 1 or 0) < tonumber(all) then",
                "if ended < tonumber(all) then",
            ),
        ),
        BROADCAST,
    ),
    Mutant(
        "the best of its parts is that of a broadcast",
        (("beat/storage/scripts/close.lua", "severity[how] > severity[worst]", "severity[how] < severity[worst]"),),
        BROADCAST,
    ),
    Mutant(
        "who waits is found by nobody",
        (("beat/storage/scripts/repair.lua", "local waits = is_forgotten(id, group)", "local waits = false"),),
        FOLLOWED,
    ),
    Mutant(
        "a line that grows for ever",
        (
            (
                "beat/storage/scripts/parts/followers.lua",
                "elseif redis.call('ZCARD', line) >= longest then",
                "elseif false then",
            ),
        ),
        FOLLOWED,
    ),
    Mutant(
        "a success with many followers that is not kept for the next step",
        (
            (
                "beat/storage/scripts/close.lua",
                "redis.call('ZADD', fanout, now, id .. ' ' .. tick .. ' ' .. job) return",
                "return",
            ),
        ),
        FANOUT,
    ),
    Mutant(
        "followers that are handed the same success again",
        (("beat/storage/scripts/follow.lua", "  if #ids > 0 then redis.call('SREM', rest, unpack(ids)) end\n", ""),),
        FANOUT,
    ),
    Mutant(
        "a success that is forgotten after its first followers",
        (("beat/storage/scripts/follow.lua", ", entry .. ' begun')\n", ", 'begun')\n"),),
        FANOUT,
    ),
    Mutant(
        "a turn that nobody remembers",
        (("beat/storage/scripts/fire.lua", "if uses ~= '' then redis.call('HSET', key, 'uses', uses) end", ""),),
        ROUTED,
    ),
    *(
        Mutant(f"a rejected tick: {name}", ((f"beat/{file}", what, instead),), RETRIED)
        for name, file, what, instead in (
            ("waits without a bound", "storage/scripts/parts/retry.lua", ", longest_wait)", ")"),
            ("waits for a whole interval", "engine/pacing.py", ", LONGEST_WAIT)", ")"),
            ("waits for more than a quarter of misfire_after", "storage/scripts/parts/retry.lua", "limit / 4, ", ""),
            (
                "waits until it is a misfire",
                "storage/scripts/parts/retry.lua",
                "if left and left + limit > now then",
                "if false then",
            ),
            (
                "waits without regard to its own misfire_after",
                "storage/scripts/parts/retry.lua",
                "return type(own) == 'string' and",
                "return false and",
            ),
            ("believes any misfire_after", "storage/scripts/parts/retry.lua", "and is_count(own) and own ~= '0' ", ""),
            ("is retried at once for ever", "storage/scripts/parts/retry.lua", "(now - due) / 2 or", "0 or"),
        )
    ),
    *(
        Mutant(f"too far ahead: {name}", ((f"beat/storage/scripts/{file}.lua", what, instead),), AHEAD)
        for name, file, what, instead in (
            (
                "a lock lasts as long as it likes",
                "parts/remaining",
                "  redis.call('PEXPIRE', key, most)",
                "  local _ = most",
            ),
            (
                "a lock of another is taken for short",
                "acquire",
                "local _, is_cut = remaining(lock, ttl)",
                "local is_cut",
            ),
            ("a score stays where it is", "parts/ahead", "if #moves > 0 then", "if false then"),
            (
                "an open run is not looked at",
                "observe",
                "bring_near(open, math.max(",
                "bring_near(open, math.huge + math.max(",
            ),
            (
                "a slot is not looked at",
                "attend",
                "bring_near(waiting_slots, math.max(",
                "bring_near(waiting_slots, math.huge + math.max(",
            ),
            ("a scheduler lives for ever", "heartbeat", "remaining(instance_prefix .. other, ttl)", "local _ = other"),
            (
                "a right that a cut lock needs is missed too late",
                "parts/acl",
                "if barred then return",
                "if false then return",
            ),
            ("a hold begins some day", "claim", "if hold_from and hold_from > now then", "if false then"),
            ("a hidden schedule stays hidden", "repair", "tonumber(found) <= furthest", "true"),
        )
    ),
    *(
        Mutant(f"many followers: {name}", ((f"beat/storage/scripts/{file}.lua", what, instead),), FANOUT)
        for name, file, what, instead in (
            ("all in one step", "follow", "redis.call('SRANDMEMBER', rest, room)", "redis.call('SMEMBERS', rest)"),
            ("all at once", "close", "if number > most then", "if false then"),
            ("all runs in one step", "close", "if work >= most then", "if false then"),
            (
                "without a bound on successes",
                "close",
                ">= most_pending then return 'CHANGED'",
                "< 0 then return 'CHANGED'",
            ),
            ("a foreign key stops all", "follow", "    drop(entry, id, job, kind)\n", ""),
            (
                "a foreign index stops all",
                "follow",
                "redis.pcall('SREM', followers_prefix",
                "redis.call('SREM', followers_prefix",
            ),
            ("a missing right is noticed too late", "parts/acl", "if barred then return", "if false then return"),
        )
    ),
    *(
        Mutant(f"a silent run: {name}", ((f"beat/{file}.py", what, instead),), tests)
        for name, file, what, instead, tests in (
            ("lost at the first look", "jobs/outcomes", "LISTEN_MS = 35_000", "LISTEN_MS = 0", ENDED),
            (
                "lost by a scheduler that has just started",
                "jobs/outcomes",
                "max(record.missing, since) +",
                "record.missing +",
                ENDED,
            ),
            (
                "lost before its callbacks have ended",
                "jobs/outcomes",
                "(limit + callbacks) * 1000",
                "limit * 1000",
                ENDED,
            ),
            ("lost without a time limit", "jobs/outcomes", "        return math.inf\n", "        return 0\n", ENDED),
            ("lost by the clock of its worker", "jobs/outcomes", "max(started, enqueued)", "started", ENDED),
            (
                "heard through an outage",
                "engine/listening",
                "if now - self._answered_ms > BREAK_MS:",
                "if False:",
                HEARD,
            ),
            (
                "nobody asks since when it is heard",
                "engine/run_tracker",
                "judge(each, seen.now, since)",
                "judge(each, seen.now, 0)",
                WATCHED,
            ),
            ("heard through a leap", "engine/listening", " or abs(ahead - self._ahead_ms) > LEAP_MS:", ":", HEARD),
        )
    ),
    *(
        Mutant(f"many ticks in a page: {name}", ((f"beat/storage/scripts/{file}.lua", what, instead),), tests)
        for name, file, what, instead, tests in (
            (
                "who takes a place is not counted",
                "fire",
                "sizes[key] = sizes[key] + added",
                "sizes[key] = sizes[key]",
                CROWDED,
            ),
            (
                "who leaves a line is counted on",
                "fire",
                "sizes[key] = sizes[key] - removed",
                "sizes[key] = sizes[key]",
                SLOTS,
            ),
            ("who is in a slot is asked too early", "parts/room", "if has_new[key] then write_opened() end", "", SLOTS),
            ("nobody knows what a page has put into a slot", "fire", "or is_new[job]\n", "\n", SLOTS),
            ("what was fired just now is not known", "parts/room", "is_new[job] or ", "", SLOTS),
            ("a tick waits untold", "parts/room", "policy ~= 'skip' and no_kind(", "false and no_kind(", SLOTS),
            (
                "a tick is skipped untold",
                "parts/room",
                "newest, tally) then return",
                "newest, tally) and false then return",
                SLOTS,
            ),
            ("what is not counted on", "fire", "      tally.kept = digits_of(kept)\n", "", ASKED),
            ("a count that is no text", "fire", "total, digits_of(kept), one_more", "total, kept, one_more", SLOTS),
            ("who steps aside is counted on", "fire", "  sizes[waiting_prefix .. '@' .. group] = nil\n", "", GROUPED),
            ("a crowd is of another", "fire", "known[-words]", "known[#known]", FIRE),
            ("its room is everybody's", "fire", "crowd.is_more = crowd.slot ~= ''", "crowd.is_more = false", SLOTS),
        )
    ),
    *(
        Mutant(f"a plain tick: {name}", (("beat/storage/scripts/parts/plain.lua", what, instead),), FIRE)
        for name, what, instead in (
            ("no compare-and-set", "or h[3] ~= tick or h[4] ~= tick ", ""),
            ("no rev check", "or h[2] ~= rev ", ""),
            ("no lock", "or not ours[id] ", ""),
            ("whatever its state", "h[1] ~= 'active' or ", ""),
            ("before it is due", "and due <= now ", ""),
            ("moved by an operator", "or h[4] ~= tick ", ""),
            ("no TYPE guard", "and not queue_problem(id, job, queue)", ""),
            ("no counter guard", "or not is_count(h[5]) ", ""),
            ("whatever its job needs", "or not h[8] ", "or not h[8] and false "),
            ("a meta that is none", "'^ (%x+)$'", "'^ (.+)$'"),
            ("the meta of another rev", "string.sub(text, 1, #rev) == rev and ", ""),
            ("a job that needs quotes", "and not string.find(crowd.before .. crowd.after, '[^%w_-]') ", ""),
            (
                "an old job is there",
                "if redis.pcall('COPY', template_prefix .. id, hash) ~= 1 then return end",
                "redis.pcall('COPY', template_prefix .. id, hash)",
            ),
            ("a job stays that was refused", "    redis.call('DEL', hash)\n", ""),
            ("a template that is no hash", "type(written) == 'number' and ", ""),
        )
    ),
    Mutant(
        "a decided tick comes back",
        (
            (
                "beat/storage/scripts/register.lua",
                "if (to_ms(next) or math.huge) <=",
                "if false and (to_ms(next) or 0) <=",
            ),
        ),
        ("tests/storage/test_register.py",),
    ),
    *(
        Mutant(f"interleaved: {name}", ((f"beat/storage/scripts/{file}.lua", what, instead),), INTERLEAVED)
        for name, file, what, instead in (
            ("no compare-and-set", "fire", "if next_run ~= tick then return stale(key) end", ""),
            ("no lock", "fire", "elseif not ours[id] then", "elseif false then"),
            (
                "a tick before it is due",
                "fire",
                "if number_of(due) > now then return 'EARLY'",
                "if false then return 'EARLY'",
            ),
            ("the lock stays", "fire", "if #locks > 0 then redis.call('DEL', unpack(locks)) end", ""),
            (
                "a full slot",
                "fire",
                "if count >= item.room then return stand_in_line(item, key, newest, tally) end",
                "",
            ),
            ("a request that is repeated", "fire", "if redis.call('EXISTS', request) == 1", "if false"),
            ("a pause that was made longer", "fire", "if redis.call('HGET', key, 'pause_until') ~= untl", "if false"),
            ("a resume of another version", "fire", "if version and version ~= max_runs then", "if false then"),
            ("a full slot for a tick that waits", "parts/room", "then return 'FULL', '' end", "then return end"),
            (
                "a tick that no longer waits",
                "parts/room",
                "then return 'STALE', item.last_job or '' end",
                "then local _ end",
            ),
            (
                "an empty waiting list is watched",
                "parts/room",
                "redis.call('ZREM', waiting_slots, slot) end",
                "local _ = slot end",
            ),
            ("a plain tick of a paused schedule", "parts/plain", "h[1] ~= 'active' or ", ""),
            ("a claim takes the lock of another", "claim", "token, 'NX', 'PX', lock_ttl", "token, 'PX', lock_ttl"),
            ("a definition for another state", "register", "(now_rev or '') ~= seen_rev or ", ""),
            ("a tick that is due moves", "register", "and next ~= 'keep' then  -- be it", "and false then  -- be it"),
            ("a pause of another version", "pause", "if version ~= '' and version ~=", "if false and version ~="),
            ("a removal of another version", "remove", "if version ~= '' and version ~=", "if false and version ~="),
            ("a run is closed twice", "close", "redis.call('HGET', records, job) ~= seen", "false"),
            ("a run that goes on is closed", "close", "if sign_of(job) ~= sign then", "if false then"),
        )
    ),
]


def copy(place: Path) -> None:
    """The project, as far as its tests need it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)


def mutate(place: Path, mutant: Mutant) -> None:
    """Takes the safeguard out."""
    for file, what, instead in mutant.changes:
        text = (place / file).read_text(encoding="utf-8")
        if what not in text:
            raise SystemExit(f"{mutant.name}: {file} has changed, it no longer holds {what!r}")
        (place / file).write_text(text.replace(what, instead), encoding="utf-8")


def passes(place: Path, tests: tuple[str, ...]) -> bool:
    """Whether these tests pass in the copy, by which every beat that they start is imported, too."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and " failed" not in done.stdout:
        raise SystemExit(f"the tests {tests} could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> int:
    """Runs all of them; ends with 1 if one survives."""
    survivors = []
    with tempfile.TemporaryDirectory(prefix="beat-") as home:
        sound = Path(home) / "sound"
        copy(sound)
        for tests in {mutant.tests for mutant in MUTANTS}:
            if not passes(sound, tests):
                raise SystemExit(f"{' '.join(tests)} fails without any mutation")
        for number, mutant in enumerate(MUTANTS, 1):
            place = Path(home) / str(number)
            copy(place)
            mutate(place, mutant)
            began = time.monotonic()
            survived = passes(place, mutant.tests)
            survivors += [mutant.name] * survived
            verdict = "SURVIVED" if survived else "killed"
            sys.stdout.write(f"{verdict:8} {mutant.name} ({time.monotonic() - began:.0f} s)\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} mutants killed\n")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
