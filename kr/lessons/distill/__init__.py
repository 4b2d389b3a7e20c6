"""From a failure to two lines. Pure."""

from functools import cache
from typing import Any


@cache
def read_table(name: str) -> Any:
    """Read a shipped table; what is read is shared, and not to be changed."""
    from importlib.resources import files

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("kr.lessons.distill").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders
