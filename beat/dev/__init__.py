"""Run `beat dev`: a private Redis, a scheduler and RQ workers in one terminal, restarted when a file changes.

`supervisor` never imports the application, because its code changes; `project` does so in a process of its own.
No process outlives the supervisor, even if that is killed: each one runs under `reaper`, and the private Redis is tied
to its parent by `embedded.child_process`.
"""
