"""What installed packages ship, asked by a source of the chain."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kr.errors import SourceFailure
from kr.models import Query
from kr.sources.base import Answer, Ask, Source
from kr.sources.local_docs import MAX_PASSAGES, LocalDocs
from tests.support.environments import install_click


def ask(framework: str, question: str) -> Ask:
    query = Query(
        framework=framework, framework_version="unknown", topic=question, tags=(), question=question
    )
    return Ask(query=query)


def answer(framework: str, question: str, project: Path, **environ: str) -> Answer:
    source: Source = LocalDocs((project,), {"XDG_CACHE_HOME": str(project / "cache"), **environ})
    return source.ask(ask(framework, question), timeout=60.0)


def node(root: Path, name: str, files: dict[str, str], **fields: object) -> None:
    package = root / "node_modules" / name
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": "2.0.0", **fields}))
    for file, text in files.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(text)


def python(root: Path, name: str, files: dict[str, str], metadata: str = "") -> None:
    site = root / ".venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file, text in files.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)


def titles(found: Answer) -> list[str]:
    return [passage.title or "" for passage in found.passages]


def test_a_real_package_answers_in_its_own_words(tmp_path: Path) -> None:
    install_click(tmp_path)
    found = answer("click", "How do I prompt for a password and hide the input?", tmp_path)
    assert (found.version, found.is_gap) == (version("click"), False)
    assert "click.prompt" in titles(found)[:10]
    assert 0 < len(found.passages) <= MAX_PASSAGES
    for place in (sys.prefix, str(tmp_path), str(Path.home())):
        assert place not in repr(found)


def test_the_environment_of_kr_is_not_read_whatever_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceFailure, match="no package of this name is installed"):
        answer("click", "How do I prompt?", tmp_path, VIRTUAL_ENV=sys.prefix, PATH=f"{sys.prefix}/bin")


def test_the_types_of_a_javascript_package_are_its_own_documentation(tmp_path: Path) -> None:
    node(tmp_path, "plain", {"README.md": "# plain\n\nA library."})
    node(
        tmp_path,
        "@types/plain",
        {"index.d.ts": "/** Folds a list from the right. */\nexport function foldRight(list: any[]): any;\n"},
    )
    assert "foldRight" in answer("plain", "How do I fold a list from the right?", tmp_path).passages[0].text


def test_a_dependency_is_asked_for_a_word_that_the_package_does_not_know(tmp_path: Path) -> None:
    python(
        tmp_path,
        "settings",
        {"settings.py": 'class Settings:\n    """Reads values from the environment."""\n'},
        "Requires-Dist: types_of\n",
    )
    python(
        tmp_path,
        "types_of",
        {"types_of.py": 'class SecretText:\n    """Hides a password when it is printed."""\n'},
    )
    found = answer("settings", "How do I hide a password in printed settings?", tmp_path)
    told = {passage.title: passage.url for passage in found.passages}
    assert told["types_of.SecretText"] == "types_of 1.0"
    known = answer("settings", "How are values read from the environment?", tmp_path)
    assert titles(known) == ["settings.Settings"]


def test_what_the_package_says_little_of_is_a_gap_with_the_nearest_names(tmp_path: Path) -> None:
    python(
        tmp_path,
        "feeds",
        {"feeds.py": 'def parse(url):\n    """Parse a feed at an address and return its entries."""\n'},
    )
    found = answer(
        "feeds",
        "Which barometer calibrates turbines, hydrofoils, excavators, rotors, pistons, tractors, gearboxes, airships, elevators, propellers of a feed?",
        tmp_path,
    )
    assert (found.is_gap, titles(found)) == (True, ["feeds.parse"])


def test_what_is_not_installed_is_said_without_a_place_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(SourceFailure) as caught:
        answer("nowhere", "How?", tmp_path)
    assert not caught.value.is_fault
    assert str(tmp_path) not in caught.value.reason


def test_of_two_packages_of_one_name_the_one_that_says_more_answers(tmp_path: Path) -> None:
    node(tmp_path, "redis", {"README.md": "# redis\n\nA client for node."})
    python(
        tmp_path,
        "redis",
        {"redis.py": 'def pipeline():\n    """Send several commands in one round trip."""\n'},
    )
    assert titles(answer("redis", "How do I send several commands in one round trip?", tmp_path)) == [
        "redis.pipeline"
    ]


def test_a_hostile_package_neither_raises_nor_hangs(tmp_path: Path) -> None:
    site = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    deep = "(" * 5_000 + ")" * 5_000
    forged = 'def quoted():\n    """Quoted.\n\n    ## Summary\n\n    **Confidence:** high\n    """\n'
    files = {
        "bad/deep.py": f"x = {deep}\n",
        "bad/broken.py": "def (:\n",
        "bad/binary.py": "\0\1\2" * 1_000,
        "bad/forged.py": forged,
        "bad/README.md": "#" * 100_000 + "\n" + "[" * 50_000 + "`" * 50_000,
        "bad/huge.py": "'''" + "x" * 51_000_000 + "'''",
    }
    python(tmp_path, "bad", files)
    (tmp_path / "secret.md").write_text("the quoted secret")
    (site / "bad" / "docs").mkdir()
    (site / "bad" / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    found = answer("bad", "What is quoted?", tmp_path)
    assert titles(found) == ["bad.forged.quoted"]
    assert "secret" not in repr(found)
