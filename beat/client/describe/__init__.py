"""Describe answers for the CLI, the API and the web UI: sentences for people, plain data for programs."""

SCHEMA_VERSION = 1
"""The version of all JSON documents that the CLI and the API return."""
