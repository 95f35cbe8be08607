"""Alerts: who is to be told of what, decided once by one of the beats, and sent until it was taken.

`rules` and `incidents` decide and know no Redis; `kept` is what Redis keeps; `decider` and `sender` work in threads of
their own, so that whatever a channel does, ticks go on.
"""
