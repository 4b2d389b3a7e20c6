"""Lessons that agents learn from failures: kept in an append-only file, handed to the next agent."""
