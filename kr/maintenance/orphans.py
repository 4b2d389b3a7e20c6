"""Reports that no row of the index speaks of: found below ``frameworks/``, and read by their headers."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from kr.freshness import parse_time
from kr.reports.restoring import fresh_until, origin_of
from kr.reports.template import read_confidence, read_date, read_version
from kr.store.times import to_text
from kr.text.characters import one_line
from kr.values import Entry

_FRAMEWORK = re.compile(r"^[ \t*_-]*framework[*_]*:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_HEADER_CHARACTERS = 20_000


class Facts(NamedTuple):
    """What an entry made from a report alone is told by."""

    framework: str
    topic: str


def report_paths(knowledge_base: Path) -> list[str]:
    """Return the Markdown files below ``frameworks/``, as the index writes paths, sorted.

    Symlinks are not followed, hidden files are not ours.
    """
    found = []
    for folder, folders, files in os.walk(knowledge_base / "frameworks"):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(folder).relative_to(knowledge_base)
        found += [
            (here / name).as_posix() for name in files if name.endswith(".md") and not name.startswith(".")
        ]
    return sorted(found)


def linked_folders(knowledge_base: Path) -> list[Path]:
    """Return what is a symbolic link where ``frameworks/`` or a folder below it would be, sorted."""
    top = knowledge_base / "frameworks"
    found = [top] if top.is_symlink() else []
    for folder, folders, _ in os.walk(top) if not found else ():
        found += [path for name in folders if (path := Path(folder, name)).is_symlink()]
    return sorted(found)


def read_facts(text: str) -> Facts | None:
    """Read framework and topic from ``# framework - topic``; None for a text that begins otherwise."""
    lines = (line.strip() for line in text[:_HEADER_CHARACTERS].lstrip("\ufeff").splitlines())
    title = next((line for line in lines if line), "")
    if not title.startswith("# "):
        return None
    title = _unescaped(title.removeprefix("# "))
    header = _FRAMEWORK.search(text[:_HEADER_CHARACTERS].split("\n## ", 1)[0])
    framework = _unescaped(header[1].strip("*_ \t")) if header else ""
    if not framework or not title.casefold().startswith(f"{framework} - ".casefold()):
        framework, _, _ = title.partition(" - ")
    topic = title[len(framework) + 3 :]
    facts = Facts(one_line(framework), one_line(topic))
    return facts if facts.framework and facts.topic else None


def entry_of(text: str, path: str, *, modified: datetime, now: datetime) -> Entry | None:
    """Make the entry that a report would have; its id is left open. None when its title tells nothing.

    Nobody knows when it was read last, so that the day of its research stands in (of its file, where the
    header has none): an old report comes back as stale, not as fresh.
    """
    facts = read_facts(text)
    if facts is None:
        return None
    researched = min(parse_time(read_date(text) or "") or modified, now)
    origin = origin_of(text)
    end = fresh_until(origin, to_text(researched))
    return Entry(
        id="",
        framework=facts.framework,
        framework_version=_unescaped(read_version(text) or "unknown"),
        topic=facts.topic,
        tags=(),
        path=path,
        created=to_text(researched),
        last_accessed=to_text(researched),
        status="stale" if origin in {"skeleton", "baseline"} else "fresh",
        confidence=read_confidence(text) or "low",
        researched_at=to_text(researched),
        fresh_until=to_text(end) if end is not None else None,
        origin=origin,
    )


def modified(path: Path) -> datetime:
    """Return when a file was written. Raises ``OSError``."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _unescaped(line: str) -> str:
    return _ESCAPED.sub(r"\1", line).strip()
