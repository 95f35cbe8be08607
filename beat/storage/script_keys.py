"""Bind the names in the scripts' headers to the keys, prefixes and limits that never change, of beat and of RQ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.jobs import job_template
from beat.storage import lifetimes

if TYPE_CHECKING:
    from beat.storage.keys import Keys
    from beat.storage.scripts import Value

FORMAT = 1
"""The format of the keys; a scheduler does not touch keys of a newer format."""


def fixed(keys: Keys) -> dict[str, Value]:
    """Return the constant arguments of the scripts by name."""
    return {**_single(keys), **_families(keys), "format": FORMAT, **_FURTHEST, **_RQ}


def _single(keys: Keys) -> dict[str, Value]:
    return {
        "schedules": keys.schedules,
        **dict.fromkeys(("due", "due_index"), keys.due),
        "meta": keys.meta,
        "events": keys.events,
        "instances": keys.instances,
        "announcements": keys.announcements,
        "open": keys.open,
        "closed": keys.closed,
        "records": keys.records,
        "waiting_slots": keys.waiting_slots,
        "functions": keys.functions,
        "fanout": keys.fanout,
        "groups": keys.groups,
        "unread": keys.unread,
        "metrics": keys.metrics,
    }


def _families(keys: Keys) -> dict[str, Value]:
    return {
        "schedule_prefix": keys.schedule(""),
        "lock_prefix": keys.lock(""),
        "template_prefix": keys.template(""),
        "runs_prefix": keys.runs(""),
        "running_prefix": keys.running(""),
        "waiting_prefix": keys.waiting(""),
        "followers_prefix": keys.followers(""),
        "fanout_prefix": keys.rest(""),
        "slow_prefix": keys.slow(""),
        "shards_prefix": keys.shards(""),
        "announced_prefix": keys.announced(""),
        "instance_prefix": keys.instance(""),
        "index_prefix": keys.index(""),
        "app_prefix": keys.app(""),
        "request_prefix": keys.request(""),
        "told_prefix": keys.told(""),
        "deliveries_prefix": keys.deliveries(""),
        "messages_prefix": keys.messages(""),
    }


_FURTHEST: dict[str, Value] = {
    "hidden": lifetimes.HIDDEN_MS,
    "furthest_waiting": lifetimes.HIDDEN_MS,
    "furthest_open": lifetimes.OPEN_MS,
    "open_share": str(lifetimes.OPEN_SHARE_MS),
    "furthest_delivery": lifetimes.TRY_AGAIN_MS,
}
"""How far ahead a score may lie before the scripts correct it, in ms."""
_RQ: dict[str, Value] = {
    "queues": job_template.QUEUES_KEY,
    "job_prefix": job_template.job_key(""),
    "queue_prefix": job_template.queue_key(""),
    "scheduled_prefix": job_template.registry_key("scheduled", ""),
    "results_prefix": job_template.RESULTS_PREFIX,
    "executions_prefix": job_template.EXECUTIONS_PREFIX,
    "execution_prefix": job_template.EXECUTION_PREFIX,
    "worker_prefix": job_template.WORKER_PREFIX,
    "workers_prefix": job_template.workers_key(""),
    "channel_prefix": job_template.CHANNEL_PREFIX,
}
"""The names that the headers give to RQ's keys."""
