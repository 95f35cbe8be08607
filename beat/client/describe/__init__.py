"""What the faces say: times, verdicts, policies and states in sentences for people, and as plain data for programs."""

SCHEMA_VERSION = 1
"""Of all documents that programs read, whichever face prints them."""
