"""Decide what happens to a due tick, in pure functions that read neither the clock nor Redis."""
