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
    config = settings.knowledge_research
    return Limits(
        ttl_days=config.cache_ttl_days,
        archive_after_days=config.archive_after_days,
        max_age_days=config.max_age_days,
        configured_sources=configured_sources(settings),
    )


def configured_sources(settings: Settings) -> str:
    """Name the sources that can be asked, and in which way they are configured, parted by commas: no addresses or keys."""
    from kr.source_kinds import DEFAULT_SERVERS

    config = settings.knowledge_research
    named = []
    for name in dict.fromkeys((*config.sources, config.fallback_if_mcp_unavailable)):
        if name == "web_search":
            search = config.web_search
            ways = (search.provider, search.url and "url", search.api_key_env and "key")
            named.append(f"{name} ({' '.join(way for way in ways if way)})")
        elif name is not None and name in config.servers:
            is_own = config.servers[name].url != DEFAULT_SERVERS[name] or config.servers[name].headers
            named.append(f"{name} (own)" if is_own else name)
    return ", ".join(named)


def build_export(settings: Settings, store: Store) -> Callable[[], None] | None:
    """Build what writes the YAML files after a change; None where ``auto_export`` is off (SPEC 3.8)."""
    if not settings.knowledge_research.auto_export:
        return None

    def export() -> None:
        from kr.transfer.export import refresh_exports

        refresh_exports(store, settings.knowledge_base)

    return export


def build_catalog(settings: Settings, store: Store, *, clock: Callable[[], datetime]) -> "Catalog":
    """Build what looks through the knowledge base, and changes it by hand (SPEC 6.3)."""
    from kr.catalog.catalog import Catalog

    limits = freshness_limits(settings)
    return Catalog(store=store, limits=limits, clock=clock, export=build_export(settings, store))
