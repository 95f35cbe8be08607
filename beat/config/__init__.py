"""Read beat's settings: where each value comes from, its type, and its validation."""
