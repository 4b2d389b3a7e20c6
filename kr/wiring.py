"""Builds the operations of kr from the environment and the configuration."""

import logging
import os
from pathlib import Path

from kr.app import App
from kr.errors import ConfigError
from kr.research.service import Progress
from kr.settings import load_settings

logger = logging.getLogger(__name__)


def open_app(
    *,
    config: str | Path | None,
    knowledge_base: str | Path | None,
    progress: Progress,
    kind: type[App] = App,
) -> App:
    """Read environment and configuration, and build an app of this kind. Raises ``ConfigError``."""
    environ = dict(os.environ)
    try:
        cwd = Path.cwd()
    except OSError as error:
        raise ConfigError(f"the working directory is gone: {error.strerror}") from error
    settings = load_settings(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
    for warning in settings.warnings:
        logger.warning("%s", warning)
    return kind(settings, environ=environ, cwd=cwd, progress=progress)
