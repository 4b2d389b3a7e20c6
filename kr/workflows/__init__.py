"""Workflows: templates that run, stop, wait and go on (rule 9)."""
