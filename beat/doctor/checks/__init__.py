"""Judge the facts: each check is a pure function of facts that yields findings."""
