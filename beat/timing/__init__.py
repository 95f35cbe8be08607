"""Compute when a schedule ticks: cron expressions, intervals, time zones and clock changes."""
