"""Draw tables, charts and progress in a terminal."""
