import os
from pathlib import Path

import pytest

from kr.research.llm import LEAN_PERSONA, load_persona

CUSTOMIZE = '[agent]\nname = "{name}"\nrole = "Architect"\nprinciples = ["Boring technology."]\n'
SKILL = "---\nname: bmad-agent-architect\n---\n\n# Overview\n"
OLDER = (
    '<agent name="{name}"><persona><role>Architect</role><principles>Simple.</principles></persona></agent>'
)

ARCHITECT = "bmad:bmm:agents:architect"


def _skill(base: Path, name: str) -> None:
    folder = base / "bmad-agent-architect"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "customize.toml").write_text(CUSTOMIZE.format(name=name))


def _older(root: Path, folder: str, name: str) -> Path:
    path = root / folder / "bmm" / "agents" / "architect.md"
    path.parent.mkdir(parents=True)
    path.write_text(OLDER.format(name=name))
    return path


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def name_of(persona_id: str, root: Path, home: Path) -> str | None:
    persona = load_persona(persona_id, root, home)
    return persona.name if persona else None


def test_the_newest_layout_is_taken(root: Path, home: Path) -> None:
    """Laid out from the oldest to the newest: each new one wins over those before."""
    assert load_persona(ARCHITECT, root, home) is None
    for folder in ("bmad", ".bmad", "_bmad"):
        _older(root, folder, folder)
        assert name_of(ARCHITECT, root, home) == folder
    for base in (home / ".claude", root / ".agent", root / ".agents", root / ".claude"):
        _skill(base / "skills", str(base.name))
        assert name_of(ARCHITECT, root, home) == base.name


def test_overrides_of_the_project_are_merged_and_a_broken_one_is_passed_over_with_a_warning(
    root: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _skill(root / ".claude" / "skills", "Winston")
    custom = root / "_bmad" / "custom"
    custom.mkdir(parents=True)
    team = custom / "bmad-agent-architect.toml"
    team.write_text('[agent]\nname = "Team"\nprinciples = ["Ours."]\n')
    (custom / "bmad-agent-architect.user.toml").write_text('[agent]\nprinciples = ["Mine."]\n')
    persona = load_persona(ARCHITECT, root, home)
    assert persona is not None
    assert (persona.name, persona.traits[-1]) == ("Team", "principles: Boring technology. Ours. Mine.")
    team.write_text("[agent\n")
    assert name_of(ARCHITECT, root, home) == "Winston"
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith(f"{team} was passed over: it is not valid TOML: ")


def test_a_broken_file_gives_way_to_the_next(root: Path, home: Path) -> None:
    folder = root / ".claude" / "skills" / "bmad-agent-architect"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    (root / ".agents" / "skills" / "bmad-agent-architect" / "SKILL.md").mkdir(parents=True)
    _older(root, "_bmad", "Winston")
    assert name_of(ARCHITECT, root, home) == "Winston"


def test_a_file_in_the_project_or_the_lean_one(root: Path, home: Path) -> None:
    (root / "personas").mkdir()
    (root / "personas" / "me.md").write_text("---\nname: me\n---\n\n## Principles\n\n- Short.\n")
    persona = load_persona("personas/me.md", root, home)
    assert persona is not None
    assert (persona.name, persona.traits) == ("me", ("principles: - Short.",))
    assert load_persona(" Lean ", root, home) == LEAN_PERSONA


@pytest.mark.parametrize(
    "hostile",
    [
        "bmad:../../etc:agents:..",
        "bmad:bmm:agents:../../../outside",
        "bmad:bmm:agents:",
        "../outside.md",
        "{outside}",
        "link.md",
        "loop.md",
        "x" * 5000,
        "a\x00b",
        ".",
        "fifo.md",
        "\ud800",
    ],
)
def test_hostile_ids_read_nothing_outside(hostile: str, root: Path, home: Path) -> None:
    outside = root.parent / "outside.md"
    outside.write_text(OLDER.format(name="outsider"))
    (root / "link.md").symlink_to(outside)
    (root / "loop.md").symlink_to(root / "loop.md")
    os.mkfifo(root / "fifo.md")
    assert load_persona(hostile.replace("{outside}", str(outside)), root, home) is None
