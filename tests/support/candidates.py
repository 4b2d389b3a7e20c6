"""Entries to hold a request against, made by hand, and the request."""

from collections.abc import Iterable
from typing import Any

from kr.matching.evidence import Candidate
from kr.matching.terms import Need, keys_of
from kr.values import Entry, Query, replace

ENTRY = Entry(
    id="e1",
    framework="react",
    framework_version="19",
    topic="virtual scroll configuration for large tables",
    tags=("performance",),
    path="frameworks/react/e1.md",
    created="2026-01-01",
    last_accessed="2026-01-01T00:00:00.000000Z",
    status="fresh",
    confidence="high",
)


def candidate(
    topic: str = ENTRY.topic,
    *tags: str,
    report: str = "",
    wordings: Iterable[Need] = (),
    **changes: Any,
) -> Candidate:
    """Return an entry with the keys that a write would have made for it."""
    entry = replace(ENTRY, topic=topic, tags=tags, **changes)
    return Candidate(entry, keys_of((entry.topic, entry.tags, entry.question), wordings, report))


def query(topic: str, *tags: str, question: str = "How?", framework: str = "react") -> Query:
    return Query(framework=framework, framework_version="19", topic=topic, tags=tags, question=question)
