"""``kr init``, and where kr leaves something at all: the program as a user meets it."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.support.program import Project, request


@pytest.fixture
def empty(project: Project) -> Project:
    """A folder that is no project; ``HOME`` is another one."""
    for path in project.root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    project.env["HOME"] = str(project.root.parent / "home")
    return project


def made(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize(
    "words",
    ["search rows", "entries list", "lessons list", "db path", "db check", "stats",
     "doctor", "versions", "explain vue rows", "archive list", "review", "trust", "lessons search rows"],
)  # fmt: skip
def test_looking_makes_nothing(empty: Project, words: str) -> None:
    empty.run(*words.split())
    assert (made(empty.root), made(empty.root.parent / "home")) == ([], [])


def test_without_a_project_a_report_goes_to_the_users_own_knowledge_base(empty: Project) -> None:
    answer = empty.ask(request())
    assert answer["status"] == "degraded"
    assert made(empty.root) == []
    own = empty.root.parent / "home/.local/share/kr"
    assert (own / answer["results"]["report_path"]).is_file()


def test_init_makes_a_project_of_an_empty_folder(empty: Project) -> None:
    done = yaml.safe_load(empty.run("init").stdout)
    assert [row["path"] for row in done["files"]] == [
        str(empty.root / "kr.yaml"),
        str(empty.root / ".kr/kr.db"),
    ]
    text = (empty.root / "kr.yaml").read_text()
    assert yaml.safe_load(text) == {"knowledge_research": {"knowledge_base_path": ".kr"}}
    assert "bmad" not in text
    assert made(empty.root) == [".kr", "kr.yaml"]


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (None, "/.kr/\n", "created"),
        ("dist", "dist\n/.kr/\n", "changed"),
        ("dist\n.kr\n", "dist\n.kr\n", "exists"),
    ],
)
def test_init_leaves_the_knowledge_base_out_of_git(
    empty: Project, before: str | None, after: str, state: str
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=empty.root, check=True)
    if before is not None:
        (empty.root / ".gitignore").write_text(before)
    done = yaml.safe_load(empty.run("init").stdout)
    assert done["files"][2] == {"path": str(empty.root / ".gitignore"), "state": state}
    assert (empty.root / ".gitignore").read_text() == after
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=empty.root, check=True, capture_output=True, text=True
    )
    assert ".kr" not in status.stdout
    assert "Commit kr.yaml and .gitignore" in done["hints"][0]


def test_init_says_what_to_commit_of_bmads_output_and_of_another_folder(empty: Project) -> None:
    (empty.root / "_bmad").mkdir()
    done = empty.run("init", "--format", "text").stdout.decode()
    assert "Commit kr.yaml and _bmad-output/knowledge-base/" in done
    ignored = (empty.root / "_bmad-output/knowledge-base/.gitignore").read_text().splitlines()
    assert {"kr.db*", "*.lock", "*.bak"} < set(ignored)
    written = yaml.safe_load((empty.root / "kr.yaml").read_text())
    assert written["knowledge_research"] == {"knowledge_base_path": "_bmad-output/knowledge-base"}
    assert "role_mapping" in written
    (empty.root / "kr.yaml").unlink()
    done = empty.run("init", "--kb", "../shared", "--format", "text").stdout.decode()
    assert "lies outside of the project" in done
    assert str(empty.root.parent / "shared") in (empty.root / "kr.yaml").read_text()


def test_init_suggests_a_question_about_what_the_project_uses(empty: Project) -> None:
    (empty.root / "package.json").write_text('{"dependencies": {"vue": "^3.5.0"}}')
    following = yaml.safe_load(empty.run("init").stdout)["next"]
    assert following[0].startswith('kr research vue "')
    assert following[1:] == ["kr warm", "kr doctor"]


def test_a_knowledge_base_leaves_its_database_out_of_git_also_without_init(empty: Project) -> None:
    subprocess.run(["git", "init", "-q"], cwd=empty.root, check=True)
    (empty.root / "package.json").write_text("{}")
    empty.run("save", "vue", "What are slots?", "--answer", "Holes in a component.")
    for name in ("index.yaml.5f70bf18.bak", "_archived-index.yaml.5f70bf18.bak", "kr-20261121T120000Z.db"):
        (empty.root / ".kr" / name).touch()
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=empty.root, check=True, capture_output=True, text=True
    )
    assert sorted(line[3:] for line in status.stdout.splitlines() if ".kr" in line) == [
        ".kr/.gitignore",
        ".kr/_archived-index.yaml",
        ".kr/frameworks/vue/slots.md",
        ".kr/index.yaml",
    ]
    (empty.root / ".kr/.gitignore").write_text("mine\n")
    empty.run("save", "vue", "What are refs?", "--answer", "Names of elements.")
    assert (empty.root / ".kr/.gitignore").read_text() == "mine\n"


def test_five_at_once_make_one_project(empty: Project) -> None:
    subprocess.run(["git", "init", "-q"], cwd=empty.root, check=True)
    with ThreadPoolExecutor(5) as pool:
        done = list(pool.map(lambda _: empty.run("init"), range(5)))
    assert [(it.returncode, it.stderr) for it in done] == [(0, b"")] * 5
    states = [yaml.safe_load(it.stdout)["files"][0]["state"] for it in done]
    assert sorted(states) == ["created"] + ["exists"] * 4
    assert (empty.root / ".gitignore").read_text() == "/.kr/\n"
    assert made(empty.root) == [".git", ".gitignore", ".kr", "kr.yaml"]
