"""What a job can ask about itself: which run it is."""

from __future__ import annotations

from beat.jobs import job_template
from beat.schedule.run import META_KEY, Run


def get_current_run() -> Run | None:
    """Return the run that this job is, or None outside a job and in a job that beat did not fire.

    Ask in the thread in which RQ runs the job: RQ knows the job nowhere else.
    """
    meta = job_template.current_meta()
    return None if meta is None else Run.read(meta.get(META_KEY))
