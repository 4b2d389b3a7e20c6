"""The table of remedies: what to do about an error that many make. Matching is pure.

``remedies/<tool>.yaml`` holds the rows of one tool, and ``tests/data/remedies`` a real output of the tool for each. Users' own rows stand
in ``remedies.yaml`` beside the lessons file.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path

import yaml

from kr.requests import scalars

logger = logging.getLogger(__name__)

# What is particular goes first: a tool before the language it is written in, and what may be any tool's last.
_LAST = "java c rust go ruby php perl node typescript javascript python bash system general".split()
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[\w@$./:+<>#()\[\]*=, -]{1,60}")
_MOST_WORDS = 4
_MOST_PLACES = 5
# Advice must not be turned round by the name in it: `leave out verify_ssl`.
_SAFEGUARD = re.compile(r"verif|check_?host|insecure|unauthorized|strict.?ssl|sandbox|csrf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One row: a pattern (searched with ``re.MULTILINE``), what to do with the pattern's groups in it, and tags."""

    match: str
    fix: str
    tags: tuple[str, ...] = ()
    literals: tuple[str, ...] = field(default=(), compare=False)
    """Texts in small letters of which each output that the pattern matches has one; empty where none is sure."""


def find_remedy(output: str, own: Sequence[Remedy] = ()) -> tuple[Remedy, str, str] | None:
    """Return the first row that matches, what it says to do, and the line that it is about; users' own rows go first."""
    lowered = output.lower()
    for row in (*own, *shipped()):
        if row.literals and not any(literal in lowered for literal in row.literals):
            continue
        for found in islice(re.finditer(row.match, output, re.MULTILINE), _MOST_PLACES):
            if fix := _filled(row.fix, found):
                before = output[: found.start()].rpartition("\n")[2]
                line = (before + output[found.start() :]).lstrip().partition("\n")[0]
                return row, fix, line
    return None


def _filled(fix: str, found: re.Match[str]) -> str | None:
    """Put the names of the output into a fix; ``None`` where one is no plain name, or one of a safeguard."""
    # name, name2 … are one, for the alternatives of a pattern.
    names = {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
    filled = {name: names.get(name, "").strip().rstrip(".,;") for name in _PLACEHOLDER.findall(fix)}
    is_plain = all(
        _NAME.fullmatch(name) and len(name.split()) <= _MOST_WORDS and not _SAFEGUARD.search(name)
        for name in filled.values()
    )
    return _PLACEHOLDER.sub(lambda group: filled[group[1]], fix) if is_plain else None


@cache
def shipped() -> tuple[Remedy, ...]:
    """Return the shipped rows, in the order in which they are tried."""
    folder = files("kr.lessons").joinpath("remedies")
    tables = {it.name.removesuffix(".yaml"): it for it in folder.iterdir() if it.name.endswith(".yaml")}
    rows: list[Remedy] = []
    for name in sorted(tables, key=lambda name: (_LAST.index(name) if name in _LAST else -1, name)):
        data = yaml.load(tables[name].read_text(encoding="utf-8"), yaml.CBaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
        tags = tuple(data["tags"])
        rows += (Remedy(it["match"], it["fix"], tags, _literals(it["match"])) for it in data["rows"])
    return tuple(rows)


def _literals(pattern: str) -> tuple[str, ...]:
    """Find texts of which every match has one, so that most rows need no compiling: the longest of each alternative."""
    plain = re.sub(r"^\(\?[a-z]+\)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "\0", pattern, flags=re.DOTALL)
    shorter = ""
    while shorter != plain:
        shorter, plain = plain, re.sub(r"\([^()]*\)", "\0", plain)
    plain = re.sub(r".(?:[?*]|\{[\d,]*\})", "\0", plain, flags=re.DOTALL)
    runs = [max(re.split(r"[\0.^$+?]", part), key=len).lower() for part in plain.split("|")]
    return tuple(runs) if min(map(len, runs)) > 2 else ()


def read_own(path: Path) -> list[Remedy]:
    """Read users' own rows: a list of ``match``, ``fix`` and ``tags``. A file with a row that is none is logged, and passed over."""
    try:
        data = yaml.load(path.read_bytes(), yaml.CBaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
        for row in data or []:
            re.compile(row["match"])
        return [Remedy(row["match"], str(row["fix"]), scalars(row.get("tags"))) for row in data or []]
    except FileNotFoundError:
        return []
    except (OSError, yaml.YAMLError, ValueError, RecursionError, TypeError, KeyError, re.error) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        logger.warning("%s: no list of rows with match and fix: %s; passed over", path, why)
        return []
