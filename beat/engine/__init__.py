"""Run a scheduler: the ticker, the run tracker, waiting ticks, registration and housekeeping."""
