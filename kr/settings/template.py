"""The commented configuration that ``kr init`` writes, made from the model so that it can't go stale."""

from kr.settings.kinds import Key, Section

_HEAD = """\
# The configuration of kr. Every key stands here with its default: take the # away from a line that
# begins with it directly to change the setting. Environment variables override: KR_MAX_ENTRIES is
# max_entries, KR_CIRCUIT_BREAKER__FAILURES is failures of circuit_breaker.
"""


def render_config(*, persona: str | None = None, knowledge_base_path: str | None = None) -> str:
    """Return the text of ``kr.yaml``. What is passed is set, everything else stays commented out.

    As written, the file loads to the defaults and what was passed.
    """
    from kr.settings.model import Configuration

    chosen = {
        ("role_mapping", "knowledge_researcher_persona"): persona,
        ("knowledge_research", "knowledge_base_path"): knowledge_base_path,
    }
    parts = [_HEAD]
    for name, section in Configuration.keys.items():
        parts.append(f"\n# {section.description}\n{name}:\n")
        for key, field in section.default.keys.items():
            value = chosen.get((name, key))
            parts.extend(f"  # {line}\n" for line in _explained(field))
            mark, shown = ("#", plain(field.default)) if value is None else ("", value)
            parts.append(f"  {mark}{key}: {_flow(shown)}\n")
    return "".join(parts)


def _explained(field: Key) -> list[str]:
    """Return the key's line, and one for each key within it (for the servers: within each of them)."""
    default = field.default
    inner = next(iter(default.values()), None) if isinstance(default, dict) else default
    keys = inner.keys if isinstance(inner, Section) else {}
    return [field.description, *(f"  {key}: {within.description}" for key, within in keys.items())]


def plain(value: object) -> object:
    """Return a default as YAML would hold it: sections as mappings of the keys that matter, tuples as lists."""
    from kr.settings.model import Server

    if isinstance(value, Server):
        return {"url": value.url}
    if isinstance(value, Section):
        return {key: plain(item) for key, item in value.fields().items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _flow(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...").removesuffix("...\n")
