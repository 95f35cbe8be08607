"""Watch the scripts that check their rights: they check all that they write, and all that they read after a write."""

from __future__ import annotations

import dataclasses
import functools

import pytest

from beat.jobs import job_template
from beat.storage import scripts

WATCH = """
local redis = (function(server)
  local prefixes, asked, has_written, reads, exempt = {%s}, {}, false, {}, {%s}
  for word in string.gmatch('exists get hexists hget hgetall hlen hmget hrandfield hvals lrange mget pttl scard '
    .. 'smembers srandmember time type xinfo xpending xrange zcard zcount zmscore zrange zrangebyscore zscore', '%%S+')
  do
    reads[word] = true
  end
  local function named(command, ...)  -- a command and the family of its key
    command = string.lower(command)
    local key = command == 'xinfo' and select(2, ...) or ... or ''
    for _, prefix in ipairs(prefixes) do
      if string.sub(key, 1, #prefix) == prefix then return command, command .. ' ' .. prefix end
    end
    return command, command .. ' ' .. key
  end
  local function watch(run)
    return function(...)
      local command, use = named(...)
      local is_read = reads[command]
      if not asked[use] and not exempt[use] and (has_written or not is_read) then error('UNASKED ' .. use) end
      has_written = has_written or not is_read
      return run(...)
    end
  end
  return {call = watch(server.call), pcall = watch(server.pcall), error_reply = server.error_reply,
    acl_check_cmd = function(...)
      local _, use = named(...)
      asked[use] = true
      return server.acl_check_cmd(...)
    end}
end)(redis)
"""
RUN = job_template.job_key("")
"""RQ's hash of a run: `close` and `withdraw` read it before they write about this run, but after other runs."""


def watched(script: scripts.Script) -> scripts.Script:
    if "forbidden({{" not in script.text or script.name in {"observe", "staff"}:
        return script
    prefixes = ", ".join(f"ARGV[{n}]" for n, name in enumerate(script.args, 1) if name.endswith("_prefix"))
    first, _, rest = script.text.partition("\n")
    exempt = f"['hmget {RUN}'] = true, ['type {RUN}'] = true" if script.name in {"close", "withdraw"} else ""
    return dataclasses.replace(script, text=f"{first}\n{WATCH % (prefixes, exempt)}{rest}")


@pytest.fixture(autouse=True)
def _watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.name != "test_scripts.py":  # whose subject is the text itself
        written = scripts.script
        monkeypatch.setattr(scripts, "script", functools.cache(lambda name: watched(written(name))))
