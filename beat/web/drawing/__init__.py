"""Drawings: SVG made of plain values, with nothing in it that is not escaped."""
