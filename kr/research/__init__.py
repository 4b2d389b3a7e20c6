"""The nine steps of research (F1)."""
