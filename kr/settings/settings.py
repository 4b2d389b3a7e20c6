"""The one value that the rest of kr reads its configuration from, and the function that makes it."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from kr.values import CacheMatch, Tier, Value

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import StrPath

    from kr.freshness import Limits
    from kr.settings.model import Defaults, E2EInspection, KnowledgeResearch, RoleMapping


class HitSettings(Value):
    """What a hit, and lessons for an agent, need to know: plain values, and no secret among them.

    ``patience`` is how many seconds a busy database is waited for at most, ``configured_sources`` names the sources
    that can be asked (``kr.settings.validate``).
    """

    enabled: bool
    phases: tuple[str, ...]
    lessons_injection_budget: int
    cache_ttl_days: int
    archive_after_days: int
    max_age_days: int | None
    max_entries: int
    max_calls_per_story: int
    cache_match: CacheMatch
    cache_match_floor: Tier | None
    cache_fuzzy_match: bool
    aliases: Mapping[str, str]
    configured_sources: str
    has_embeddings: bool
    overall_timeout: float

    @property
    def limits(self) -> "Limits":
        """The ages at which entries become stale, and are archived (SPEC 3.3)."""
        from kr.freshness import Limits

        return Limits(
            ttl_days=self.cache_ttl_days,
            archive_after_days=self.archive_after_days,
            max_age_days=self.max_age_days,
            configured_sources=self.configured_sources,
        )


class Details(Value):
    """All of the configuration, validated: its sections, the project's root, and the file, if there is one."""

    knowledge_research: "KnowledgeResearch"
    role_mapping: "RoleMapping"
    defaults: "Defaults"
    e2e_inspection: "E2EInspection"
    project_root: "Path"
    config_file: "Path | None"


class Settings:
    """The configuration of one invocation. Paths are absolute and resolved.

    ``database_url`` is as given (SQLite's relative paths are SQLAlchemy's to read), None for ``kr.db`` in the knowledge
    base, as always with ``--kb``. ``warnings`` are sentences for standard error, without secrets.

    ``hit`` may be remembered from an earlier invocation (``kr.settings.memory``). The details never are: the first look
    at one of them reads the files (``read``; it raises ``ConfigError``).
    """

    def __init__(
        self,
        *,
        hit: HitSettings,
        read: Callable[[], Details],
        knowledge_base: "StrPath",
        database_url: str | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.hit = hit
        self.base = os.fspath(knowledge_base)
        """The knowledge base as text: a hit does without ``pathlib``, which costs a tenth of Python and click."""
        self.database_url = database_url
        self.warnings = warnings
        self._read = read
        self._remember: Callable[[HitSettings], None] | None = None
        self.key = ""
        """Stands for everything that these settings are made of; empty where that is not known."""

    def remember_with(self, remember: Callable[[HitSettings], None]) -> None:
        """Say how ``hit`` is kept for the next invocation."""
        self._remember = remember

    def remember(self) -> None:
        """Let the next invocation begin with ``hit``, where it may and this one did not."""
        if self._remember is not None:
            self._remember(self.hit)
            self._remember = None

    @cached_property
    def details(self) -> Details:
        """All of it."""
        return self._read()

    @cached_property
    def knowledge_base(self) -> "Path":
        """The folder of database, reports and lessons."""
        from pathlib import Path

        return Path(self.base)

    @property
    def lessons_file(self) -> "Path":
        """The append-only file of lessons (SPEC 2)."""
        return self.knowledge_base / "lessons" / "_lessons-learned.md"

    @property
    def project_root(self) -> "Path":
        """What relative paths in the file are relative to."""
        return self.details.project_root

    @property
    def config_file(self) -> "Path | None":
        """The file, if there is one."""
        return self.details.config_file

    @property
    def knowledge_research(self) -> "KnowledgeResearch":
        """The section ``knowledge_research``."""
        return self.details.knowledge_research

    @property
    def role_mapping(self) -> "RoleMapping":
        """The section ``role_mapping``."""
        return self.details.role_mapping

    @property
    def defaults(self) -> "Defaults":
        """The section ``defaults``."""
        return self.details.defaults

    @property
    def e2e_inspection(self) -> "E2EInspection":
        """The section ``e2e_inspection``."""
        return self.details.e2e_inspection


def load_settings(
    *,
    config: "StrPath | None",
    knowledge_base: "StrPath | None",
    environ: Mapping[str, str],
    cwd: "StrPath",
    may_recall: bool = False,
) -> Settings:
    """Read the configuration as SPEC 7 has it.

    ``config`` and ``knowledge_base`` are ``--config`` and ``--kb``; relative, they are relative to
    ``cwd``. Raises ``ConfigError``, whose message has one line per wrong value: file and line or
    variable, key, and what is allowed. With ``may_recall`` what a hit needs may be remembered from an earlier
    invocation (``kr.settings.memory``).
    """

    def read() -> Settings:
        from kr.settings.raw import read_raw
        from kr.settings.validate import validated

        raw = read_raw(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
        return validated(raw, environ)

    if not may_recall:
        return read()
    from kr.settings.memory import Memory

    memory = Memory(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
    hit = memory.recall()
    if hit is None:
        settings = read()
        if not settings.warnings and memory.may_remember(settings.base):
            settings.remember_with(memory.remember)
            settings.key = memory.key
        return settings
    recalled = Settings(
        hit=hit,
        read=lambda: read().details,
        knowledge_base=os.path.realpath(memory.base),
        database_url=None
        if knowledge_base is not None
        else environ.get("KR_DATABASE_URL", "").strip() or None,
    )
    recalled.key = memory.key
    return recalled
