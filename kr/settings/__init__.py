"""The configuration, read once into frozen values (SPEC 7).

Discovery, reading, overrides and paths (``raw``) need nothing but PyYAML; validation (``model``,
``validate``) brings pydantic and is imported when ``load_settings`` is called.
"""

from kr.settings.load import load_settings
from kr.settings.settings import Settings

__all__ = ["Settings", "load_settings"]
