"""Turn ledger lines into a history, statistics, and a check that every tick was decided once."""
