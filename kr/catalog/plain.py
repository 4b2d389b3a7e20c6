"""Rows as nested plain data: the seed's keys in the seed's order, then kr's own (seed 002, Cache Index Schema)."""

from typing import Any

from kr.store.archive import Archived
from kr.store.texts import Revision
from kr.values import Entry


def entry_item(entry: Entry) -> dict[str, Any]:
    """Give the nine keys of the index and the confidence."""
    return {
        "id": entry.id,
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "path": entry.path,
        "created": entry.created,
        "last_accessed": entry.last_accessed,
        "status": entry.status,
        "confidence": entry.confidence,
    }


def found_item(entry: Entry, passage: str) -> dict[str, Any]:
    """Give what a search says of an entry (SPEC 8); its id is what to go on with."""
    return {
        "id": entry.id,
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "status": entry.status,
        "passage": passage,
    }


def archived_item(archived: Archived) -> dict[str, Any]:
    """Give an archived row; ``archive_id`` tells it from others of its id."""
    item = entry_item(archived.entry) | {"status": "archived"}
    return {
        **item,
        "archived_at": archived.archived_at,
        "reason": archived.reason,
        "archive_id": archived.archive_id,
    }


def revision_item(revision: Revision) -> dict[str, Any]:
    """Give a revision; ``replaced_at`` is when a newer text took its place."""
    return {
        "revision": revision.revision,
        "framework_version": revision.framework_version,
        "confidence": revision.confidence,
        "researched_at": revision.researched_at,
        "replaced_at": revision.replaced_at,
        "sha256": revision.sha256,
    }
