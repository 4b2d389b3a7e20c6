"""The index as YAML, for people and older tools: written after a change, and imported."""

from pathlib import Path

INDEX = "index.yaml"
ARCHIVE = "_archived-index.yaml"
WORDINGS = "_wordings.yaml"
"""Beside an index in another folder than the knowledge base: what its nine keys leave out, for an import.

One item for each text's writer (kind ``writer``), each entry's question (``question``) and each wording (``wording``).
"""


def has_export(folder: Path) -> bool:
    """Tell whether a folder holds an exported index or archive; one that can't be looked into holds none."""
    try:
        return any((folder / name).is_file() for name in (INDEX, ARCHIVE))
    except OSError:
        return False
