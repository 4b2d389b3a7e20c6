"""Entries that were found, each with a passage of its report."""

from typing import Any

from kr.catalog.catalog import Catalog
from kr.naming import fold
from kr.reports.bounded import fit, section

_PASSAGE_TOKENS = 80


def found_entries(catalog: Catalog, words: str, *, framework: str | None, limit: int) -> list[dict[str, Any]]:
    """Find entries by words: ``{id, framework, framework_version, topic, status, passage}``, best first."""
    wanted = None if framework is None else fold(framework)
    hits = (hit for hit in catalog.search(words) if wanted in {None, fold(hit["framework"])})
    keys = ("id", "framework", "framework_version", "topic", "status")
    return [
        {**{key: hit[key] for key in keys}, "passage": _passage(catalog, hit["id"])}
        for hit, _ in zip(hits, range(limit), strict=False)
    ]


def _passage(catalog: Catalog, entry_id: str) -> str:
    text = catalog.entry(entry_id, report=True)["report"] or ""
    summary = (section(text, "Summary") or text).partition("\n")[2].strip()
    return fit(summary, _PASSAGE_TOKENS)[0]
