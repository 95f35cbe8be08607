"""Send alerts, and ping dead-man monitors."""
