"""Packages that kr does not bring by itself: how they come into the installation that runs."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


def how_to_install(extra: str) -> str:
    """Give the command that adds an extra of kr to this very installation, from the clone that it came from (PEP 610)."""
    clone, options = _clone()
    words = [*_installer(), *options, f"{clone}[{extra}]"]
    return f"{'in the clone of kr: ' if clone == '.' else ''}{shlex.join(words)}"


def _installer() -> list[str]:
    if find_spec("pip") is None:  # what uv made has none
        return ["uv", "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install"]


def _clone() -> tuple[str, list[str]]:
    try:
        told = json.loads(distribution("kr").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        told = {}
    folder = Path(unquote(urlsplit(told.get("url", "")).path))
    if not (folder / "pyproject.toml").is_file() or "dir_info" not in told:
        return ".", []
    return str(folder), ["-e"] if told["dir_info"].get("editable") else []
