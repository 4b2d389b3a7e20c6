"""The function that makes the configuration of an invocation."""

from collections.abc import Mapping
from pathlib import Path

from kr.settings.settings import Settings


def load_settings(
    *, config: Path | None, knowledge_base: Path | None, environ: Mapping[str, str], cwd: Path
) -> Settings:
    """Read the configuration as SPEC 7 has it.

    ``config`` and ``knowledge_base`` are ``--config`` and ``--kb``; relative, they are relative to
    ``cwd``. Raises ``ConfigError``, whose message has one line per wrong value: file and line or
    variable, key, and what is allowed.
    """
    from kr.settings.raw import read_raw
    from kr.settings.validate import validated

    return validated(
        read_raw(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd), environ
    )
