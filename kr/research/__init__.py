"""The nine steps of research (seed 000)."""
