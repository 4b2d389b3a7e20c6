"""Builds what looks after the knowledge base: cheap, since it leaves everything that asks sources alone."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from kr.freshness import Limits
from kr.settings import Settings
from kr.store.store import Store

if TYPE_CHECKING:
    from kr.catalog.catalog import Catalog


def freshness_limits(settings: Settings) -> Limits:
    """Give the ages at which entries become stale, and are archived (SPEC 3.3)."""
    return Limits(
        ttl_days=settings.hit.cache_ttl_days,
        archive_after_days=settings.hit.archive_after_days,
        max_age_days=settings.hit.max_age_days,
        configured_sources=settings.hit.configured_sources,
    )


def build_export(settings: Settings, store: Store) -> Callable[[], None]:
    """Build what writes the YAML files after a change; nothing where ``auto_export`` is off (SPEC 3.8)."""

    def export() -> None:
        if settings.knowledge_research.auto_export:
            from kr.transfer.export import refresh_exports

            refresh_exports(store, settings.knowledge_base)

    return export


def build_catalog(settings: Settings, store: Store, *, clock: Callable[[], datetime]) -> "Catalog":
    """Build what looks through the knowledge base, and changes it by hand (SPEC 6.3)."""
    from kr.catalog.catalog import Catalog

    limits = freshness_limits(settings)
    return Catalog(store=store, limits=limits, clock=clock, export=build_export(settings, store))
