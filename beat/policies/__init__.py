"""Decide what becomes of a due tick. Everything here is pure: it reads no clock and no Redis."""
