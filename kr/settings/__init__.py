"""The configuration, read once into frozen values (SPEC 7).

Discovery, reading, overrides and paths (``raw``) need nothing but PyYAML; validation (``model``,
``validate``) is imported when ``load_settings`` reads the files.
"""

from kr.settings.settings import Settings, load_settings

__all__ = ["Settings", "load_settings"]
