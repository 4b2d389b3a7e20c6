"""The versions that a project uses, held against the cache (SPEC 6.4; seed 002, version-aware invalidation)."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kr.freshness import major_key, same_major
from kr.packages.dependencies import Dependency, find_dependencies, fitting, with_installed
from kr.store.store import Store
from kr.values import Entry

Warn = Callable[[str], None]
Environ = Mapping[str, str]


def list_versions(project: Path, *, everything: bool, warn: Warn, environ: Environ) -> list[dict[str, Any]]:
    """List what the project's dependency files name: direct dependencies, or ``everything``.

    Each row: ``framework``, ``version``, ``package``, ``file``, ``direct``. ``warn`` is told of files that
    can't be used.
    """
    used = dependencies_of(project, everything=everything, warn=warn, environ=environ)
    return [_row(dependency) for dependency in used]


def mark_versions(
    project: Path, store: Store, *, everything: bool, warn: Warn, environ: Environ
) -> list[dict[str, Any]]:
    """List as ``list_versions`` does, and mark fresh entries stale whose major version is another one.

    An entry is marked when the project knows its framework and no version of it has the entry's major: for the
    project's own, so that a project on the entry's version is still served (SPEC 3.3). The
    key ``marked_stale`` of each row holds the ids that were marked for it.
    """
    used = dependencies_of(project, everything=everything, warn=warn, environ=environ)
    rows = [{**_row(dependency), "marked_stale": []} for dependency in used]
    if not store.exists():
        return rows
    with store.write() as unit:
        live = unit.entries.all()
        known = {name: fitting(used, name) for name in {entry.framework for entry in live}}
        for entry in live:
            other = _other_major(entry, known[entry.framework])
            if other is None or entry.status == "stale":
                continue
            reason = f"version {entry.framework_version}, the project uses {other.version}"
            if unit.entries.mark_stale(entry.id, reason, major=major_key(other.version)):
                rows[used.index(other)]["marked_stale"].append(entry.id)
    return rows


def dependencies_of(project: Path, *, everything: bool, warn: Warn, environ: Environ) -> list[Dependency]:
    """Read the project's dependency files; where they tell no version, the installed one counts, as for a question."""
    found = find_dependencies(project)
    for warning in found.warnings:
        warn(warning)
    used = [dependency for dependency in found.dependencies if everything or dependency.direct]
    return with_installed(used, project, environ)


def _other_major(entry: Entry, known: Sequence[Dependency]) -> Dependency | None:
    """Return the best dependency of an entry's framework, if the entry's major version is that of none of them.

    ``node >= 18`` says where a language begins, so that later majors are meant as well.
    """
    known = [d for d in known if d.ecosystem != "language" or not re.fullmatch(r">=?[^<,]*", d.version)]
    if not known or any(same_major(entry.framework_version, dependency.version) for dependency in known):
        return None
    return known[0]


def _row(dependency: Dependency) -> dict[str, Any]:
    return {
        "framework": dependency.framework,
        "version": dependency.version,
        "package": dependency.package,
        "file": dependency.file,
        "direct": dependency.direct,
    }
