"""The judgements: each a pure function of facts that were read, which yields findings."""
