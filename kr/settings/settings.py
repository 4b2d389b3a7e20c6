"""The one value that the rest of kr reads its configuration from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kr.settings.model import Defaults, E2EInspection, KnowledgeResearch, RoleMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of one invocation. Paths are absolute and resolved.

    ``project_root`` is what relative paths in the file are relative to; ``config_file`` is None without a
    file. ``database_url`` is as given (SQLite's relative paths are SQLAlchemy's to read), None for
    ``kr.db`` in the knowledge base, as always with ``--kb``. ``warnings`` are sentences for standard error, without secrets.
    """

    knowledge_research: "KnowledgeResearch"
    role_mapping: "RoleMapping"
    defaults: "Defaults"
    e2e_inspection: "E2EInspection"
    knowledge_base: Path
    project_root: Path
    config_file: Path | None = None
    database_url: str | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
