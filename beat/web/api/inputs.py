"""The fields that several endpoints have."""

from __future__ import annotations

from beat.web.api.fields import Text, Whole

SCHEDULE = Text(name="schedule_id", about="The id of a schedule.", example="report", longest=1000, required=True)
JOB = Text(name="job_id", about="The id of an RQ job.", example="beat_report_1763359200", longest=1000, required=True)
TZ = Text(
    name="tz",
    about="An IANA time zone. Default: the setting tz, or UTC.",
    example="Europe/Berlin",
    longest=100,
    kind="time-zone",
)
PAST = "a length of time before now (24h, 7d), a day, or a time, in the zone of the schedule unless it has an offset"
SINCE = Text(name="since", about=f"Nothing older than this: {PAST}.", example="24h", longest=60, kind="past")
UNTIL = Text(
    name="until", about=f"Nothing written from then on: {PAST}.", example="2026-11-16T02:00Z", longest=60, kind="past"
)
AHEAD = (
    "a length of time from now (2h), a time of day (09:00), a day (monday, tomorrow, 2026-11-20: its beginning) or "
    "both, in the zone of the schedule; or 2026-11-20T09:00Z"
)
PAUSED_UNTIL = Text(
    name="until",
    about=f"When it goes on by itself: {AHEAD}. Default: when an operator resumes it.",
    example="2h",
    longest=60,
    kind="ahead",
)
REASON = Text(name="reason", about="Why: everybody who looks will see it.", example="the disk is full", longest=500)
VERSION = Whole(
    name="expected_version",
    about="Refuse the change with 409 if the schedule has another version by now: another client has changed it.",
    example=7,
)
CRON = Text(
    name="cron", about="Five fields, or the name of a preset.", example="0 9 * * mon-fri", longest=256, kind="cron"
)
EVERY = Text(name="every", about="An interval instead: 10s, 15m, 1h30m, 1d.", example="15m", longest=60, kind="period")
