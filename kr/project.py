"""``kr versions`` and ``kr warm``: what a project uses, compared with the cache; asking about what the cache lacks."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr.frameworks import is_usual_name
from kr.models import Entry, Envelope
from kr.packages.model import UNKNOWN, Dependency
from kr.packages.versions import find_dependencies, fitting, version_of
from kr.research.decide import judge
from kr.settings.model import KnowledgeResearch
from kr.store import entries as entry_rows
from kr.store.engine import Store, Transaction
from kr.text import fold
from kr.times import major_key, same_major

logger = logging.getLogger(__name__)

Environ = Mapping[str, str]
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
        live = entry_rows.all(tx)
        known = {name: fitting(used, name) for name in {entry.framework for entry in live}}
        for entry in live:
            other = _other_major(entry, known[entry.framework])
            if other is None or entry.status == "stale":
                continue
            reason = f"version {entry.framework_version}, the project uses {other.version}"
            if entry_rows.mark_stale(tx, entry.id, reason, major=major_key(other.version)):
                marked.setdefault(used.index(other), []).append(entry.id)
        return marked

    return store.change(write)


def _dependencies(project: Path, environ: Environ) -> list[Dependency]:
    """Return the packages that a project declares; a language is none."""
    found = find_dependencies(project, environ)
    for warning in found.warnings:
        logger.warning("%s", warning)
    return [one for one in found.dependencies if one.direct and one.ecosystem != "language"]


def _other_major(entry: Entry, known: Sequence[Dependency]) -> Dependency | None:
    """Return the best dependency of an entry's framework, if the entry's major version is that of none of them."""
    if not known or any(same_major(entry.framework_version, dependency.version) for dependency in known):
        return None
    return known[0]


TOPIC = "overview and key APIs"
_TAGS = ("overview", "getting-started")
_QUESTION = "What is {framework} for, how does one get started with it, and which are its key APIs?"
_GIVE_UP_AFTER = 3
_WHY_SKIPPED = ("beyond the limit of this run", "the budget of this run is spent", "no source answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A framework of the project: its ``fresh`` and ``stale`` entries that have a report."""

    framework: str
    version: str
    fresh: int = 0
    stale: int = 0

    @property
    def state(self) -> Literal["fresh", "stale", "missing"]:
        return "fresh" if self.fresh else "stale" if self.stale else "missing"

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "state": self.state}


def needs(
    project: Path,
    store: Store,
    config: KnowledgeResearch,
    now: datetime,
    *,
    names: Sequence[str] = (),
    environ: Environ,
) -> list[Need]:
    """List the direct dependencies, or ``names``, with what the cache holds for each: missing, stale, fresh.

    Among these what has a usual name comes first, then what has most packages; tools of development come last.
    """
    used = _dependencies(project, environ)
    chosen = _by_name(project, used, names, environ) if names else _by_importance(used)
    wanted: dict[str, Need] = {}
    for need in chosen:
        wanted.setdefault(fold(need.framework), need)
    with store.read_if_exists() as tx:
        entries = entry_rows.all(tx)
    kindred = {name: _names(used, name) for name in {entry.framework for entry in entries}}
    held: Counter[tuple[str, bool]] = Counter()
    for entry in entries:
        key = next((name for name in kindred[entry.framework] if name in wanted), None)
        # Without a text a look-up would find nothing to serve, and remove it.
        is_lost = entry.sha256 is None and not store.files.read(entry.path)
        if key is not None and entry.origin != "placeholder" and not is_lost:
            held[key, judge(entry, wanted[key].version, config, now).status == "fresh"] += 1
    found = [replace(it, fresh=held[key, True], stale=held[key, False]) for key, it in wanted.items()]
    return sorted(found, key=lambda need: ("missing", "stale", "fresh").index(need.state))


def _names(used: Sequence[Dependency], framework: str) -> list[str]:
    return [fold(framework), *(fold(dependency.framework) for dependency in fitting(used, framework))]


def _by_importance(used: Sequence[Dependency]) -> list[Need]:
    development = {d.framework for d in used if d.dev}
    packages = Counter(d.framework for d in used)

    def rank(need: Need) -> tuple[bool, bool, int, str, bool]:
        is_tool, size, name = (
            need.framework in development,
            packages[need.framework],
            need.framework.casefold(),
        )
        return is_tool, not is_usual_name(name), -size, name, need.version == UNKNOWN

    rows = (Need(framework=d.framework, version=d.version) for d in used)
    return sorted(rows, key=rank)


def _by_name(project: Path, used: Sequence[Dependency], names: Sequence[str], environ: Environ) -> list[Need]:
    found = []
    for name in names:
        known = next(iter(fitting(used, name)), None)
        version = known.version if known else version_of(project, name, environ) or UNKNOWN
        found.append(Need(framework=known.framework if known else name, version=version))
    return found


def research_needs(
    found: Sequence[Need],
    ask: Callable[[Mapping[str, Any]], Envelope],
    *,
    session_id: str,
    max_calls: int | None,
    limit: int | None,
    tell: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Ask about each framework without a fresh entry, while the budget lasts.

    Returns a row for each: ``status`` of the answer, ``fresh``, or ``skipped`` with a ``note``: over the limit or
    budget, or no source had answered three times in a row.
    """
    lacking = [need for need in found if need.state != "fresh"]
    asked = lacking[:limit]
    left, in_vain, rows = max_calls, 0, []
    for number, need in enumerate(lacking, 1):
        causes = (number > len(asked), left == 0, in_vain >= _GIVE_UP_AFTER)
        if any(causes):
            rows.append(_row(need, "skipped", note=_WHY_SKIPPED[causes.index(True)]))
            continue
        tell(f"[{number}/{len(asked)}] {need.framework} {need.version}")
        about = {
            "framework": need.framework,
            "framework_version": need.version,
            "topic": TOPIC,
            "tags": _TAGS,
        }
        question = _QUESTION.format(framework=need.framework)
        envelope = ask({**about, "question": question, "session_id": session_id, "max_calls": left})
        results, notes = envelope.results, [problem.message for problem in envelope.errors]
        if results is None:
            in_vain += 1
            rows.append(_row(need, envelope.status, note="; ".join(notes)))
            continue
        left = results.budget_remaining
        is_answered = results.cache_hit or any(it.status == "success" for it in results.sources_consulted)
        in_vain = 0 if is_answered else in_vain + 1
        note = "; ".join([*notes, *results.degradation_notes]) or None
        row = _row(need, envelope.status, note=note)
        rows.append(row | {"entry_id": results.cache_entry_id, "report_path": results.report_path})
    return rows + [_row(need, "fresh") for need in found if need.state == "fresh"]


def _row(need: Need, status: str, *, note: str | None = None) -> dict[str, Any]:
    return {**need.plain(), "status": status, "entry_id": None, "report_path": None, "note": note}
