"""Build RQ jobs and read what became of them. Nothing else in beat imports RQ's jobs."""
