"""``kr versions`` and ``kr warm``: what a project uses, compared with the cache; asking about what the cache lacks."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kr.frameworks import is_usual_name
from kr.models import Envelope
from kr.packages import find_dependencies, fitting, version_of
from kr.packages.model import UNKNOWN, Dependency
from kr.research.decide import judge
from kr.settings.model import KnowledgeResearch
from kr.store import entries as entry_rows
from kr.store.engine import Store, Transaction
from kr.text import fold
from kr.times import major_key, same_major

logger = logging.getLogger(__name__)

Environ = Mapping[str, str]
Row = dict[str, Any]
_COLUMNS = ("framework", "version", "package", "file", "direct")


def list_versions(
    project: Path, store: Store, *, everything: bool, mark_stale: bool, environ: Environ
) -> list[dict[str, Any]]:
    """List direct dependencies, or ``everything``: ``framework``, ``version``, ``package``, ``file``, ``direct``.

    A dependency file that could not be used is a row of its own: its ``file``, a ``note`` that says why, and null for the
    rest. With ``mark_stale`` fresh entries are marked of whose major version the project has none; ``marked_stale``
    of each row holds the ids that were marked for it: for the project's major alone.
    """
    found = find_dependencies(project, environ)
    used = [dependency for dependency in found.dependencies if everything or dependency.direct]
    rows: list[dict[str, Any]] = [{name: getattr(one, name) for name in _COLUMNS} for one in used]
    if mark_stale:
        marked = _mark_stale(used, store) if store.exists() else {}
        rows = [row | {"marked_stale": marked.get(number, [])} for number, row in enumerate(rows)]
    for warning in found.warnings:
        logger.warning("%s", warning)
        file, _, why = warning.partition(": ")
        rows.append(dict.fromkeys(_COLUMNS) | {"file": file, "note": why})
    return rows


def _mark_stale(used: Sequence[Dependency], store: Store) -> dict[int, list[str]]:
    """Mark entries of another major than the project's stale; return their ids by the number of the dependency."""

    def write(tx: Transaction) -> dict[int, list[str]]:
        marked: dict[int, list[str]] = {}
        for entry in entry_rows.all(tx):
            known = fitting(used, entry.framework)
            is_of_one = any(same_major(entry.framework_version, one.version) for one in known)
            if not known or is_of_one or entry.status == "stale":
                continue
            other = known[0]  # the best one
            reason = f"version {entry.framework_version}, the project uses {other.version}"
            if entry_rows.mark_stale(tx, entry.id, reason, major=major_key(other.version)):
                marked.setdefault(used.index(other), []).append(entry.id)
        return marked

    return store.change(write)


TOPIC = "overview and key APIs"
_TAGS = ("overview", "getting-started")
_QUESTION = "What is {framework} for, how does one get started with it, and which are its key APIs?"
_GIVE_UP_AFTER = 3
_WHY_SKIPPED = ("beyond the limit of this run", "the budget of this run is spent", "no source answers")


def needs(
    project: Path,
    store: Store,
    config: KnowledgeResearch,
    now: datetime,
    *,
    names: Sequence[str] = (),
    environ: Environ,
) -> list[Row]:
    """List the direct dependencies, or ``names``, with what the cache holds for each: ``{framework, version, fresh, stale, state}``.

    ``fresh`` and ``stale`` count entries. Those without any come first, then the stale, then the fresh; among these
    what has a usual name, and tools of development last.
    """
    dependencies = find_dependencies(project, environ)
    for warning in dependencies.warnings:
        logger.warning("%s", warning)
    used = [one for one in dependencies.dependencies if one.direct and one.ecosystem != "language"]
    wanted: dict[str, Row] = {}
    for framework, version in _by_name(project, used, names, environ) if names else _by_importance(used):
        row = {"framework": framework, "version": version, "fresh": 0, "stale": 0}
        wanted.setdefault(fold(framework), row)
    with store.read() as tx:
        entries = entry_rows.all(tx)
    for entry in entries:
        names_of = [entry.framework, *(one.framework for one in fitting(used, entry.framework))]
        need = next((wanted[name] for name in map(fold, names_of) if name in wanted), None)
        if need is not None and entry.origin != "placeholder":
            is_fresh = judge(entry, need["version"], config, now).status == "fresh"
            need["fresh" if is_fresh else "stale"] += 1
    for need in wanted.values():
        need["state"] = "fresh" if need["fresh"] else "stale" if need["stale"] else "missing"
    return sorted(wanted.values(), key=lambda need: ("missing", "stale", "fresh").index(need["state"]))


def _by_importance(used: Sequence[Dependency]) -> list[tuple[str, str]]:
    tools = {one.framework for one in used if one.dev}

    def rank(one: Dependency) -> tuple[bool, bool, str, bool]:
        name = one.framework
        return name in tools, not is_usual_name(name), name.casefold(), one.version == UNKNOWN

    return [(one.framework, one.version) for one in sorted(used, key=rank)]


def _by_name(
    project: Path, used: Sequence[Dependency], names: Sequence[str], environ: Environ
) -> Iterator[tuple[str, str]]:
    for name in names:
        known = next(iter(fitting(used, name)), None)
        if known is not None:
            yield known.framework, known.version
        else:
            yield name, version_of(project, name, environ) or UNKNOWN


def research_needs(
    found: Sequence[Row],
    ask: Callable[[Mapping[str, Any]], Envelope],
    *,
    session_id: str,
    max_calls: int | None,
    limit: int | None,
    tell: Callable[[str], None],
) -> list[Row]:
    """Ask about each framework without a fresh entry, while the budget lasts.

    Returns a row for each: ``status`` of the answer, ``fresh``, or ``skipped`` with a ``note``: over the limit or
    budget, or no source had answered three times in a row.
    """
    empty = {"entry_id": None, "report_path": None, "note": None}
    lacking = [need for need in found if need["state"] != "fresh"]
    number_asked = len(lacking[:limit])
    left, in_vain, rows = max_calls, 0, []
    for number, need in enumerate(lacking, 1):
        causes = (number > number_asked, left == 0, in_vain >= _GIVE_UP_AFTER)
        if any(causes):
            rows.append({**need, "status": "skipped", **empty, "note": _WHY_SKIPPED[causes.index(True)]})
            continue
        framework, version = need["framework"], need["version"]
        tell(f"[{number}/{number_asked}] {framework} {version}")
        about = {"framework": framework, "framework_version": version, "topic": TOPIC, "tags": _TAGS}
        question = _QUESTION.format(framework=framework)
        envelope = ask({**about, "question": question, "session_id": session_id, "max_calls": left})
        results, notes = envelope.results, [problem.message for problem in envelope.errors]
        row = {**need, "status": envelope.status, **empty}
        in_vain += 1
        if results is not None:
            left = results.budget_remaining
            row |= {"entry_id": results.cache_entry_id, "report_path": results.report_path}
            notes += results.degradation_notes
            if results.cache_hit or any(it.status == "success" for it in results.sources_consulted):
                in_vain = 0
        rows.append({**row, "note": "; ".join(notes) or None})
    return rows + [{**need, "status": "fresh", **empty} for need in found if need["state"] == "fresh"]
