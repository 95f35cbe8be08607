"""Drawings for the pages: pure functions that make SVG, in which everything is escaped."""
