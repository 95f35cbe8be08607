"""One module for each thing that is measured: `TITLE` and `run`, as `benchmarks.figures.Suite` says."""
