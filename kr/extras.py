"""Packages that kr does not bring by itself."""

import sys


def how_to_install(extra: str) -> str:
    """Give the command that adds an extra of kr to the installation that runs."""
    return f"in the clone of kr, {sys.executable} -m pip install '.[{extra}]'"
