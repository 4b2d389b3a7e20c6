"""From a source's name to what asks it. What the names stand for is in ``kr.source_kinds``."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from kr.sources.base import Source

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch


def build_source(name: str, config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:
    """Build a source of the chain with its module's ``build(config, environ)``. Nothing is asked yet."""
    source: Source = import_module(f"kr.sources.{name}").build(config, environ)
    return source
