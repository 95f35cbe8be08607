"""Read and write everything that beat keeps in Redis, one atomic script for each change."""
