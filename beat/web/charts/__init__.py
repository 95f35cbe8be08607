"""Drawings: SVG made by pure functions, everything in it escaped, nothing in it by colour alone."""
