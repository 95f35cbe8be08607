"""Measure one topic per module. Each has the `TITLE` and `run` of `benchmarks.figures.Suite`."""
