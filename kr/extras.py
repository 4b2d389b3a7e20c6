"""Packages that kr does not bring by itself."""

import sys

from kr.errors import KrError


class NotInstalled(KrError):
    """What was asked for needs ``package``, which the extra ``kr[extra]`` brings."""

    code = "not_installed"

    def __init__(self, extra: str, package: str) -> None:
        how = how_to_install(extra)
        super().__init__(f"this needs the package {package}, which is not installed. This installs it: {how}")


def how_to_install(extra: str) -> str:
    """Give the command that adds an extra of kr to the installation that runs."""
    return f"in the clone of kr, {sys.executable} -m pip install '.[{extra}]'"
