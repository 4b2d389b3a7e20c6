"""Workflows: templates that run, stop, wait and go on (seed 004, SPEC 9)."""
