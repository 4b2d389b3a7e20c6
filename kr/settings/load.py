"""The function that makes the configuration of an invocation."""

import os
from collections.abc import Mapping
from pathlib import Path

from kr.settings.memory import Memory
from kr.settings.settings import Settings


def load_settings(
    *,
    config: Path | None,
    knowledge_base: Path | None,
    environ: Mapping[str, str],
    cwd: Path,
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
    memory = Memory(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
    hit = memory.recall()
    if hit is None:
        settings = read()
        if not settings.warnings and memory.may_remember(settings.knowledge_base):
            settings.remember_with(memory.remember)
        return settings
    return Settings(
        hit=hit,
        read=lambda: read().details,
        knowledge_base=Path(os.path.realpath(memory.base)),
        database_url=None if knowledge_base else environ.get("KR_DATABASE_URL", "").strip() or None,
    )
