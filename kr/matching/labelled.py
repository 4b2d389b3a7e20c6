"""The labelled questions that kr ships: needs that four agents worded on their own (SPEC 3.2).

``labelled/*.yaml``: ``entries`` (``id, framework, framework_version, topic, tags, question, report``) and ``queries``
(``kind``, the request as ``ask``, and ``want``: the id of the entry whose report answers it, or null).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kr.values import Entry, Query

FILES = ("labelled/sharing-1.yaml", "labelled/sharing-2.yaml")
"""Beside this module. They share no framework, so that one can judge what was learned from the other."""


class Asked(NamedTuple):
    """A request of one ``kind`` (reworded, opposite, ...), and the id of the entry that answers it, if one does."""

    kind: str
    query: Query
    want: str | None


class Labelled(NamedTuple):
    """One file. ``reports`` are by the id of their entry."""

    entries: tuple[Entry, ...]
    reports: Mapping[str, str]
    asked: tuple[Asked, ...]


def read_labelled(text: str) -> Labelled:
    """Read the text of one file."""
    import yaml

    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    return Labelled(
        tuple(map(_entry, data["entries"])),
        {item["id"]: item["report"] for item in data["entries"]},
        tuple(Asked(item["kind"], Query(**_texts(item["ask"])), item["want"]) for item in data["queries"]),
    )


def _entry(item: Mapping[str, Any]) -> Entry:
    said = {key: value for key, value in item.items() if key not in {"id", "report"}}
    return Entry(
        id=item["id"],
        path=f"frameworks/{item['id']}.md",
        created="2026-01-01",
        last_accessed="2026-01-01",
        status="fresh",
        confidence="high",
        **_texts(said),
    )


def _texts(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
