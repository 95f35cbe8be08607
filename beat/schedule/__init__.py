"""Describe a schedule, and declare it in code."""
