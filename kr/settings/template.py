"""The text of ``kr.yaml`` that ``kr init`` writes: every key with its explanation and default."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import yaml

from kr.settings.model import Configuration, Server

_HEAD = """\
# The configuration of kr. Every key stands here with its default: take the # away from a line that
# begins with it directly to change the setting. Environment variables override: KR_MAX_ENTRIES is
# max_entries, KR_CIRCUIT_BREAKER__FAILURES is failures of circuit_breaker.
"""


def render_config(*, persona: str | None = None, knowledge_base_path: str | None = None) -> str:
    """Return the text of ``kr.yaml``: what is passed is set, everything else stands commented out with its default."""
    given = {"knowledge_researcher_persona": persona, "knowledge_base_path": knowledge_base_path}
    chosen = {key: value for key, value in given.items() if value is not None}
    parts = [_HEAD]
    for outer in fields(Configuration):
        parts.append(f"\n# {outer.metadata['help']}\n{outer.name}:\n")
        defaults = plain(outer.default)
        for key in fields(outer.metadata["kind"].section):
            parts.append(f"  # {key.metadata['help']}\n")
            mark = "" if key.name in chosen else "#"
            parts.append(f"  {mark}{key.name}: {_flow(chosen.get(key.name, defaults[key.name]))}\n")
    return "".join(parts)


def plain(value: Any) -> Any:
    """Return a default as YAML would hold it: sections as mappings of the keys that matter, tuples as lists."""
    if isinstance(value, Server):
        return {"url": value.url}
    if is_dataclass(value):
        return {key.name: plain(getattr(value, key.name)) for key in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _flow(value: Any) -> str:
    written: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return written.removesuffix("\n").removesuffix("\n...")
