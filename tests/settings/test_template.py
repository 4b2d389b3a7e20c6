"""The configuration that ``kr init`` writes: it loads back, as it is and with every line uncommented."""

import re
from pathlib import Path

import pytest
import yaml

from kr.settings import Settings, load_settings
from kr.settings.kinds import Section
from kr.settings.model import Configuration, plain, render_config


def load(folder: Path, text: str) -> Settings:
    (folder / "kr.yaml").write_text(text, encoding="utf-8")
    return load_settings(config=None, knowledge_base=None, environ={}, cwd=folder)


def uncommented(text: str) -> str:
    return re.sub(r"^( *)#(?! )", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("change", [str, uncommented])
def test_it_loads_to_the_defaults(tmp_path: Path, change: type[str]) -> None:
    settings = load(tmp_path, change(render_config()))
    defaults = Configuration()
    assert settings.knowledge_research == defaults.knowledge_research
    assert settings.role_mapping == defaults.role_mapping
    assert settings.defaults == defaults.defaults
    assert settings.e2e_inspection == defaults.e2e_inspection
    assert settings.warnings == ()
    assert settings.config_file == tmp_path / "kr.yaml"


def test_uncommented_it_holds_every_key_once() -> None:
    assert yaml.safe_load(uncommented(render_config())) == plain(Configuration())


def test_it_agrees_with_the_specification() -> None:
    shown = yaml.safe_load(uncommented(render_config()))
    assert shown["knowledge_research"]["knowledge_base_path"] == "_bmad-output/knowledge-base"
    assert shown["knowledge_research"]["circuit_breaker"] == {"failures": 3, "pause_seconds": 60}
    assert list(shown) == ["knowledge_research", "role_mapping", "defaults", "e2e_inspection"]


@pytest.mark.parametrize(
    "persona", ["lean", "bmad:bmm:agents:architect", "{project-root}/my persona.md", "a: b # c"]
)
def test_what_is_passed_is_set(tmp_path: Path, persona: str) -> None:
    settings = load(tmp_path, render_config(persona=persona, knowledge_base_path="../shared kb"))
    assert settings.role_mapping.knowledge_researcher_persona == persona.replace(
        "{project-root}", str(tmp_path)
    )
    assert settings.knowledge_base == tmp_path.parent / "shared kb"
    assert settings.warnings == ()


def test_every_key_has_its_explanation_above_it() -> None:
    lines = render_config().splitlines()
    for number, line in enumerate(lines):
        if re.match(r" *#?\w+:", line):
            assert re.match(r" *# +\S", lines[number - 1]), line
        assert len(line) <= 120, line


def test_every_field_of_every_section_is_described() -> None:
    sections: list[type[Section]] = [Configuration]
    while sections:
        for name, field in sections.pop().keys.items():
            assert field.description, name
            if field.section:
                sections.append(field.section)
