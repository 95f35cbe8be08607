"""Read the jobs of rq-scheduler from Redis: a sorted set of job ids by their next time, and RQ's hash of each job.

A job's meta says how it repeats. Expressions are read as the package `crontab` does: all fields must match, a sixth
field is the year, and of seven the first is seconds. rq-scheduler follows the clock of its host, whatever
`use_local_timezone` says. Jobs are pickles; they are read as plain data, without importing or calling anything.
"""

from __future__ import annotations

import functools
import uuid
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from beat.errors import BadSource, DeclarationError, NoSource
from beat.jobs.report.safe_pickle import LARGEST, NotPlain, Opaque
from beat.jobs.report.safe_pickle import read as read_plain
from beat.migrate import cron_fields, crontab_package, timezone
from beat.migrate.result import Draft, Found, NotCarried, gathered, named, positional
from beat.storage import connection
from beat.timing import clock, durations
from beat.timing.cron import Cron
from beat.timing.cron.fields import FIVE, SIX
from beat.timing.interval import Every

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.migrate.result import Reading
    from beat.storage.connection import Redis

SCHEDULED = "rq:scheduler:scheduled_jobs"
JOB = "rq:job:"
_PAGE = 500
_OWN = {"cron_string", "interval", "repeat", "use_local_timezone", "queue_class_name"}
_NUMBERS = {"timeout": "job_timeout", "ttl": "ttl", "result_ttl": "result_ttl", "failure_ttl": "failure_ttl"}
_DULL = {"timeout": 180, "result_ttl": -1}  # RQ's default, and rq-scheduler's for periodic jobs
_CALLBACK_TIMEOUT = 60
_CALLBACKS = {"success": "on_success", "failure": "on_failure", "stopped": "on_stopped"}
_YEAR, _SECONDS = 6, 7
_SECOND = timedelta(seconds=1)
_STOP = "stop rqscheduler before beat runs these, or every job comes twice"


def read(redis: Redis, *, tz: str | None = None) -> Reading:
    """Return the periodic jobs of rq-scheduler in that Redis; expressions are in `tz`, by default this host's zone."""
    own = tz or timezone.zone_name()
    drafts = [
        Draft(name, f"{JOB}{name}", functools.partial(_made, name, score, job, own))
        for name, score, job in _jobs(redis)
    ]
    if not drafts:
        raise NoSource(f"this Redis holds nothing of rq-scheduler: there is no {SCHEDULED}; --redis-url names another")
    told = f"rq-scheduler follows its host's clock, here taken to be in {own}: --tz names another zone"
    return gathered("rq-scheduler", SCHEDULED, drafts, [_STOP] if tz else [_STOP, told])


def _jobs(redis: Redis) -> Iterator[tuple[str, float, Mapping[bytes, bytes]]]:
    """Yield each job's id, its next time in seconds, and its hash, ordered by time."""
    start = 0
    while page := _page(redis, start):
        pipeline = redis.pipeline(transaction=False)
        for name, _ in page:
            pipeline.hgetall(JOB.encode() + name)
        hashes = pipeline.execute(raise_on_error=False)
        for (name, score), job in zip(page, hashes, strict=True):
            yield name.decode(errors="backslashreplace"), score, job if isinstance(job, dict) else {}
        start += len(page)


def _page(redis: Redis, start: int) -> list[tuple[bytes, float]]:
    try:
        found: Any = redis.zrange(SCHEDULED, start, start + _PAGE - 1, withscores=True)
    except connection.Refused as e:
        if connection.forbids(e):
            raise
        raise BadSource(f"{SCHEDULED} is not what rq-scheduler keeps there: {e}") from e
    return list(found)


def _made(name: str, score: float, job: Mapping[bytes, bytes], tz: str) -> Found:
    texts = {key.decode(errors="replace"): value for key, value in job.items()}
    if b"data" not in job:
        raise NotCarried(f"its job {JOB}{name} is gone, and rq-scheduler would drop it, too")
    meta, strange = _meta(texts.get("meta"))
    func, args, kwargs = _called(texts["data"])
    options, notes = _options(texts, func)
    rule, rule_notes = _rule(meta, score, tz)
    own = {key: value for key, value in meta.items() if key not in _OWN}
    notes += ["its meta was not carried over: it holds objects, not plain data"] if strange and own else []
    return Found(
        name=name,
        where=f"{JOB}{name}",
        id=func.rpartition(".")[2] if _is_random(name) else name,
        func=func,
        args=args,
        kwargs=kwargs,
        queue=_text(texts.get("origin")) or None,
        options={**rule.pop("options"), **options, **({"meta": own} if own and not strange else {})},
        notes=(*rule_notes, *notes),
        **rule,
    )


def _is_random(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="replace")


def _meta(raw: bytes | None) -> tuple[dict[str, Any], bool]:
    """Return the job's meta, and whether it contains objects that are not plain data."""
    if not raw:
        return {}, False
    meta, stranger = _plain(raw, "meta")
    if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
        raise NotCarried("its meta is not a dict, so that nothing says how it repeats")
    return meta, stranger is not None


def _plain(raw: bytes, what: str) -> tuple[Any, Opaque | None]:
    try:
        return read_plain(raw, "json" if raw[:1] in (b"[", b"{") else "pickle")
    except NotPlain as e:
        raise NotCarried(f"its {what} cannot be read: {e}") from e


def _called(data: bytes) -> tuple[str, tuple[Any, ...], Mapping[str, Any]]:
    """Return the function and its arguments; raise NotCarried if they are not plain data."""
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(data, LARGEST + 1)
    except zlib.error:
        raw = data  # not compressed; RQ accepts that, too
    value, _ = _plain(raw, "call")
    if not isinstance(value, list | tuple) or len(value) != 4 or not isinstance(value[0], str):  # noqa: PLR2004
        raise NotCarried("its call is not one of RQ's: a function, an object, arguments")
    func, instance, args, kwargs = value
    if instance is not None:
        raise NotCarried(f"it calls the method {func} of an object, which beat does not: schedule a plain function")
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        raise NotCarried(f"it calls {func}, and its arguments could not be carried over: they are no list and no dict")
    for given in (args, kwargs):
        if stranger := _stranger(given):
            raise NotCarried(
                f"it calls {func}, and its arguments could not be carried over: they hold a {stranger}, not plain data"
            )
    return func, positional(args), named(kwargs)


def _stranger(value: Any) -> str:
    todo = [value]
    while todo:
        part = todo.pop()
        if type(part) is Opaque:
            return part.name
        todo += [*part, *part.values()] if type(part) is dict else part if type(part) in (list, tuple) else []
    return ""


def _options(job: Mapping[str, bytes], func: str) -> tuple[dict[str, Any], list[str]]:
    """Return RQ's options of the job, and notes on those without a counterpart in beat."""
    numbers = {field: _number(job.get(field)) for field in _NUMBERS}
    kept: dict[str, Any] = {
        _NUMBERS[field]: number for field, number in numbers.items() if number not in (None, _DULL.get(field))
    }
    if _text(job.get("enqueue_at_front")) == "1":
        kept["at_front"] = True
    description = _text(job.get("description"))
    if description and not description.startswith(f"{func}(") and description.isprintable():
        kept["description"] = description
    notes = []
    for kind, name in _CALLBACKS.items():
        if path := _text(job.get(f"{kind}_callback_name")):
            kept[name] = path
            if _number(job.get(f"{kind}_callback_timeout")) not in (None, _CALLBACK_TIMEOUT):
                notes.append(f"the time-out of its {name} was not carried over: write {name}=rq.Callback(…, timeout=…)")
    if job.get("dependency_ids") or job.get("dependency_id"):
        notes.append("depends_on was not carried over: beat's jobs wait for no other job")
    return kept, notes


def _number(raw: bytes | None) -> int | None:
    text = _text(raw)
    return int(text) if text.removeprefix("-").isdigit() and len(text) <= 12 else None  # noqa: PLR2004


def _rule(meta: Mapping[str, Any], score: float, tz: str) -> tuple[dict[str, Any], list[str]]:
    at = clock.at(int(score)) if abs(score) < 2**40 else clock.EPOCH
    options = _repeats(meta.get("repeat"))
    if interval := meta.get("interval"):
        period = durations.short(Every(interval).period)
        return {"every": period, "options": {"start": at, **options}}, []
    if not (written := meta.get("cron_string")):
        raise NotCarried(f"it runs once, at {clock.text(at)}, and then no more: enqueue it with RQ's own enqueue_at")
    cron, seconds = _expression(written)
    rule = {"cron": cron, "seconds": seconds, "tz": tz, "options": options}
    return rule, _checked(Cron(cron, tz, seconds), at)


def _repeats(repeat: object) -> dict[str, Any]:
    """Return the option for the remaining runs; rq-scheduler counts down and still runs a job at 0 once more."""
    if not isinstance(repeat, int) or repeat < 0:
        return {}
    return {"max_runs": max(repeat, 1)}


def _checked(cron: Cron, at: Any) -> list[str]:
    """Return a note if the next time that rq-scheduler has computed is no tick in this zone."""
    try:
        fits = cron.after(at - _SECOND) == at
    except DeclarationError:
        fits = True
    told = f"rq-scheduler runs it next at {clock.text(at)}, which is no tick of {cron.expression!r} in {cron.tz}"
    return [] if fits else [f"{told}: its host's clock is in another zone, which --tz can name"]


def _expression(written: object) -> tuple[str, bool]:
    """Return the expression as beat writes it, and whether it has seconds."""
    if not isinstance(written, str):
        raise NotCarried(f"its cron_string is {written!r:.60}, not text")
    words = written.split()
    if len(words) in (_YEAR, _SECONDS):
        if words[-1] not in ("*", "?"):
            raise NotCarried(f"{written!r} has a year, and beat's expressions have none: use start= and end=")
        words = words[:-1]
    columns = SIX if len(words) == len(SIX) else FIVE
    if len(words) != len(columns):
        return written, False  # a macro, or beat rejects it with a reason
    try:
        chosen = [crontab_package.values(text, column) for text, column in zip(words, columns, strict=True)]
    except NotCarried:
        Cron(" ".join(words), seconds=columns is SIX, seed="")  # raises beat's own, clearer error
        raise
    texts = [cron_fields.kept(*each) for each in zip(words, columns, chosen, strict=True)]
    if "*" not in (texts[-3], texts[-1]):
        texts[-3], texts[-1] = cron_fields.both(chosen[-3], chosen[-1])
    return " ".join(texts), columns is SIX
