"""Ask and change an installation from Python.

This file imports nothing, so that a command which needs one sentence of `describe` does not load redis and RQ.
"""
