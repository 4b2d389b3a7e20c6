"""Turns the gathered text into validated settings, with one error for all that is wrong."""

from collections.abc import Iterator, Mapping, Sequence

from kr.errors import ConfigError
from kr.naming import nearest
from kr.settings import Details, HitSettings, Settings
from kr.settings.discovery import MAIN_SECTION, OWN_NAMES, PREFIX, SECTIONS, name_of
from kr.settings.kinds import Problem, Section, Wrong
from kr.settings.model import Configuration, KnowledgeResearch, Server
from kr.settings.raw import RawSettings, expand_placeholders, expand_variables
from kr.source_kinds import DEFAULT_SERVERS
from kr.tree import KeyPath, Tree, show_path

# The other sections hold other programs' keys too: only what looks like a slip is worth a word.
_NEARLY_EQUAL = 0.85


def validated(raw: RawSettings, environ: Mapping[str, str]) -> Settings:
    expand_variables(raw, environ)
    _expand_persona(raw, environ)
    raw.warnings.extend(_unknown_keys(raw))
    try:
        configuration = Configuration.read(raw.data)
    except Wrong as exc:
        raise _config_error(raw, exc.problems) from None
    if raw.problems:
        raise _config_error(raw, [])
    raw.warnings.extend(_unfinished(raw, configuration))
    details = Details(
        **configuration.fields(),
        project_root=raw.found.root,
        config_file=raw.found.file,
        left_out=tuple(raw.left_out),
        names_persona="knowledge_researcher_persona" in (_role_mapping(raw) or {}),
    )
    return Settings(
        hit=_for_hits(details),
        read=lambda: details,
        knowledge_base=raw.knowledge_base,
        database_url=raw.database_url,
        warnings=tuple(dict.fromkeys(raw.warnings)),
    )


def _for_hits(details: Details) -> HitSettings:
    config = details.knowledge_research
    told = {name: getattr(config, name) for name in HitSettings.names() if hasattr(config, name)}
    return HitSettings(
        **{**told, "aliases": dict(config.aliases)},
        overall_timeout=details.defaults.agent_timeout_seconds.knowledge_research,
    )


def _config_error(raw: RawSettings, found: Sequence[Problem]) -> ConfigError:
    known = {problem.path for problem in raw.problems}
    problems = [*raw.problems, *(problem for problem in found if problem.path not in known)]
    problems.sort(key=lambda problem: raw.found.content.lines.get(problem.path, 0))
    return ConfigError("\n".join(dict.fromkeys(raw.sentence(problem) for problem in problems)))


def _expand_persona(raw: RawSettings, environ: Mapping[str, str]) -> None:
    section, key = _role_mapping(raw), "knowledge_researcher_persona"
    value = section.get(key) if section is not None else None
    if section is not None and isinstance(value, str):
        section[key] = expand_placeholders(raw, value, ("role_mapping", key), environ)


def _role_mapping(raw: RawSettings) -> dict[str, Tree] | None:
    section = raw.data.get("role_mapping")
    return section if isinstance(section, dict) else None


def _unknown_keys(raw: RawSettings) -> Iterator[str]:
    for name in raw.found.content.others:
        if meant := nearest(name, SECTIONS - raw.data.keys(), cutoff=_NEARLY_EQUAL):
            yield f"{raw.origin((name,))}: {show_path((name,))} is not a setting of kr; did you mean {meant}?"
    for path, near in _strangers(Configuration, raw.data, ()):
        variable = raw.variables.get(path)
        if variable is not None:
            yield from _unknown_variable(variable, near)
        elif path[0] == MAIN_SECTION:
            hint = f"; did you mean {near[-1]}?" if near else ""
            yield f"{raw.origin(path)}: {show_path(path)} is not a setting of kr{hint}"
        elif near and nearest(str(path[-1]), [str(near[-1])], cutoff=_NEARLY_EQUAL):
            yield f"{raw.origin(path)}: {show_path(path)} is not a setting of kr; did you mean {near[-1]}?"


def _unknown_variable(name: str, near: KeyPath | None) -> Iterator[str]:
    names = [*sorted(OWN_NAMES), *(name_of((key,)) for key in KnowledgeResearch.keys)]
    # Compared without the beginning, which all of them share.
    alike = nearest(name.upper().removeprefix(PREFIX), [known.removeprefix(PREFIX) for known in names])
    meant = name_of(near[1:]) if near else alike and f"{PREFIX}{alike}"
    hint = f"; did you mean {meant}?" if meant else ""
    yield f"the environment variable {name} is not a setting of kr{hint}"


def _at(tree: Tree, path: KeyPath) -> Tree:
    for step in path:
        tree = tree.get(str(step)) if isinstance(tree, dict) else None
    return tree


def _strangers(
    section: type[Section], tree: Tree, path: "KeyPath"
) -> Iterator[tuple[KeyPath, KeyPath | None]]:
    """Yield the path of each unknown key, with the path of the nearest known one beside it."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        here = (*path, key)
        known = section.keys.get(key)
        if known is None:
            if path and path[-1] != "agent_timeout_seconds":
                near = nearest(key, section.keys)
                yield here, (*path, near) if near else None
        elif known.section is not None:
            yield from _strangers(known.section, value, here)
        elif here == (MAIN_SECTION, "servers") and isinstance(value, dict):
            for name, server in value.items():
                yield from _strangers(Server, server, (*here, name))


def _unfinished(raw: RawSettings, configuration: Configuration) -> Iterator[str]:
    """Yield what is allowed but can't work, or is used by nothing: research goes on without it."""
    research = configuration.knowledge_research
    asked = {one.server: one.name for one in research.own_sources if one.server}
    for name in research.servers.keys() - DEFAULT_SERVERS.keys() - asked.keys():
        path = (MAIN_SECTION, "servers", name)
        used = ", ".join(dict.fromkeys([*DEFAULT_SERVERS, *asked]))
        yield f"{raw.origin(path)}: {show_path(path)} is used by no source; the servers that are used: {used}"
    for server in asked.keys() - research.servers.keys():
        origin = raw.origin((MAIN_SECTION, "sources"))
        yield f"{origin}: the source {asked[server]} needs servers.{server}; it is unavailable"
    without_llm = {
        "synthesis": (research.synthesis, "reports stay excerpts"),
        "judge": (research.judge, "nobody chooses among the candidates"),
    }
    for name, (chosen, instead) in without_llm.items():
        if chosen == "llm" and (research.llm.base_url is None or research.llm.model is None):
            origin = raw.origin((MAIN_SECTION, name))
            yield f"{origin}: {name}: llm needs llm.base_url and llm.model; {instead}"
    if research.web_search.provider == "searxng" and research.web_search.url is None:
        origin = raw.origin((MAIN_SECTION, "web_search", "provider"))
        yield f"{origin}: web_search.provider: searxng needs web_search.url; web searches are unavailable"
