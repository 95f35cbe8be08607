"""Define what a schedule is, and declare schedules in code."""
