"""Let a job find out which run it is."""

from __future__ import annotations

from beat.jobs import job_template
from beat.jobs.run import META_KEY, Run


def get_current_run() -> Run | None:
    """Return the run of the current job, or None outside a job and in a job that beat did not fire.

    Call it in the thread in which RQ runs the job, because RQ knows the current job only there.
    """
    meta = job_template.current_meta()
    return None if meta is None else Run.read(meta.get(META_KEY))
