"""`beat dev`: a private Redis, a scheduler and RQ workers in one terminal, started again when a file changes.

`supervisor` runs the family and never imports the application, whose code changes: `survey` does, in a process of its
own. Each process stands under a `keeper`, so that nothing outlives the supervisor, however that ends.
"""
