import sys
from contextlib import closing
from pathlib import Path

import pytest

from kr.documents.library import package_files, package_index
from kr.packages.installed import InstalledPackage, find_installed
from tests.packages.helpers import distribution, environment, node

HERE = Path(sys.prefix)


def places(package: InstalledPackage) -> list[str]:
    """The files of which something is in the package's index."""
    with closing(package_index(package, None, None)) as index:
        return [place for (place,) in index.execute("SELECT DISTINCT place FROM passages")]


def test_node_package_of_a_folder_above(tmp_path: Path) -> None:
    package = node(tmp_path, "express", repository="expressjs/express", homepage="https://expressjs.com/")
    for file in (
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "GOVERNANCE.md",
        "SFTP.md",
        "notice.txt",
        "docs/routing.md",
        "docs/deep/more.txt",
        "lib/notes.md",
    ):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("# x")
    nested = tmp_path / "apps" / "web"
    nested.mkdir(parents=True)
    (found,) = find_installed("Express", (nested,), {})
    assert (found.name, found.version, found.ecosystem) == ("express", "1.2.3", "npm")
    assert found.repository == "expressjs/express"
    assert set(package_files(found)) == {"README.md", "SFTP.md", "docs/deep/more.txt", "docs/routing.md"}


@pytest.mark.parametrize(
    ("repository", "expected"),
    [
        ("vercel/next.js", "vercel/next.js"),
        ({"url": "git+https://github.com/o/r.git", "directory": "packages/x"}, "o/r"),
        ({"url": "git+ssh://git@github.com/o/r.git"}, "o/r"),
        ("git://github.com/o/r.git#main", "o/r"),
        ("https://gitlab.com/o/r", None),
        ("https://github.com.evil.org/o/r", None),
        ("https://evil.org/github.com/o/r", None),
        ("https://github.com/o/..", None),
        ("o/r\n/x", None),
        ("https://github.com/sponsors/o", None),
        (None, None),
    ],
)
def test_repository_of_a_node_package(tmp_path: Path, repository: object, expected: str | None) -> None:
    node(tmp_path, "thing", repository=repository)
    assert find_installed("thing", (tmp_path,), {})[0].repository == expected


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (["Source, https://github.com/o/r"], "o/r"),
        (["Homepage, https://example.org/o", "Issues, https://github.com/o/r/issues"], "o/r"),
        (["Homepage, https://example.org", "Funding, https://github.com/sponsors/o"], None),
    ],
)
def test_repository_of_a_distribution(tmp_path: Path, urls: list[str], expected: str | None) -> None:
    site = environment(tmp_path / ".venv")
    distribution(site, "thing", ("thing/__init__.py",), "".join(f"Project-URL: {url}\n" for url in urls))
    assert find_installed("thing", (tmp_path,), {})[0].repository == expected


@pytest.mark.parametrize("name", ["PyYAML", "pyyaml", "Py.YAML", "py_yaml"])
def test_names_of_a_distribution(tmp_path: Path, name: str) -> None:
    site = environment(tmp_path / ".venv")
    (site / "yaml").mkdir()
    (site / "yaml" / "__init__.py").write_text("")
    spelt = "Py-YAML" if name in {"Py.YAML", "py_yaml"} else "PyYAML"
    distribution(site, spelt, ("yaml/__init__.py",))
    (found,) = find_installed(name, (tmp_path,), {})
    assert (found.name, found.version, found.ecosystem) == (spelt, "2.0", "python")
    assert package_files(found) == ["yaml/__init__.py"]


def test_a_package_is_found_by_the_frameworks_other_usual_names(tmp_path: Path) -> None:
    site = environment(tmp_path / ".venv")
    distribution(site, "Jinja2", ("jinja2/__init__.py",))
    distribution(site, "scikit-learn", ("sklearn/__init__.py",))
    node(tmp_path, "react")
    named = {
        name: find_installed(name, (tmp_path,), {}) for name in ("jinja", "scikitlearn", "reactjs", "ninja")
    }
    assert {name: [it.name for it in found] for name, found in named.items()} == {
        "jinja": ["Jinja2"],
        "scikitlearn": ["scikit-learn"],
        "reactjs": ["react"],
        "ninja": [],
    }


def test_the_active_environment_before_the_projects_own(tmp_path: Path) -> None:
    distribution(environment(tmp_path / ".venv"), "thing", version="1.0")
    distribution(environment(tmp_path / "active"), "thing", version="2.0")
    assert find_installed("thing", (tmp_path,), {})[0].version == "1.0"
    active = {"VIRTUAL_ENV": str(tmp_path / "active")}
    assert find_installed("thing", (tmp_path,), active)[0].version == "2.0"
    assert find_installed("thing", (tmp_path,), {"VIRTUAL_ENV": str(tmp_path / "gone")})[0].version == "1.0"


def test_an_environment_is_found_from_a_folder_inside_the_project(tmp_path: Path) -> None:
    distribution(environment(tmp_path / ".venv"), "thing")
    inside = tmp_path / "src" / "deep"
    inside.mkdir(parents=True)
    assert [p.name for p in find_installed("thing", (inside,), {})] == ["thing"]
    (tmp_path / "src" / ".git").mkdir()  # another repository
    assert find_installed("thing", (inside,), {}) == []


def test_a_record_cannot_lead_out_of_site_packages(tmp_path: Path) -> None:
    site = environment(tmp_path / ".venv")
    (tmp_path / "secret.py").write_text('"""secret"""')
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "secret.md").write_text("secret")
    (site / "linked").mkdir()
    (site / "linked" / "README.md").symlink_to(tmp_path / "docs" / "secret.md")
    (site / "linked" / "code.py").symlink_to(tmp_path / "secret.py")
    up = "../../../.."
    files = [
        f"{up}/secret.py",
        f"{up}/docs/secret.md",
        str(tmp_path / "secret.py"),
        "linked/README.md",
        "linked/code.py",
    ]
    distribution(site, "evil", tuple(files))
    (found,) = find_installed("evil", (tmp_path,), {})
    assert places(found) == []


def test_links_out_of_node_modules_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "package.json").write_text('{"name": "evil", "version": "1.0.0"}')
    (outside / "README.md").write_text("secret")
    project = tmp_path / "project"
    (project / "node_modules").mkdir(parents=True)
    (project / "node_modules" / "evil").symlink_to(outside)
    assert find_installed("evil", (project,), {}) == []
    package = node(project, "half")
    (package / "README.md").symlink_to(outside / "README.md")
    (package / "docs").symlink_to(outside)
    (half,) = find_installed("half", (project,), {})
    assert places(half) == []
    (package / "package.json").unlink()
    (package / "package.json").symlink_to(outside / "package.json")
    assert find_installed("half", (project,), {}) == []


def test_links_of_pnpm_are_followed(tmp_path: Path) -> None:
    store = tmp_path / "node_modules" / ".pnpm" / "vue@3.4.21"
    node(store, "vue", "3.4.21")
    app = tmp_path / "apps" / "web" / "node_modules"
    app.mkdir(parents=True)
    (app / "vue").symlink_to(store / "node_modules" / "vue")
    assert find_installed("vue", (app.parent,), {})[0].version == "3.4.21"


HOSTILE = ["..", "/etc/passwd", "node_modules/../../x", "@scope", "@../x", "a\x00b", "x" * 300, " ", "\ud800"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_find_nothing(tmp_path: Path, name: str) -> None:
    project = tmp_path / "project"
    environment(project / ".venv")
    node(project, "real")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "package.json").write_text('{"name": "x", "version": "1"}')
    (project / "package.json").write_text('{"name": "x", "version": "1"}')
    assert find_installed(name, (project,), {}) == []


def test_owner_and_repository_must_be_those_of_the_package(tmp_path: Path) -> None:
    node(tmp_path, "next.js", repository="vercel/next.js")
    assert [p.name for p in find_installed("Vercel/Next.js", (tmp_path,), {})] == ["next.js"]
    assert find_installed("someone/next.js", (tmp_path,), {}) == []


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b'{"name": 3}', b"\xff", b'{"name": "x"}'])
def test_a_broken_manifest_is_no_package(tmp_path: Path, manifest: bytes) -> None:
    package = tmp_path / "node_modules" / "broken"
    package.mkdir(parents=True)
    (package / "package.json").write_bytes(manifest)
    assert find_installed("broken", (tmp_path,), {}) == []


@pytest.mark.parametrize("metadata", [b"", b"\xff\xfe", b"Name: broken\n", b"Version: 1\n"])
def test_broken_metadata_is_no_package(tmp_path: Path, metadata: bytes) -> None:
    info = environment(tmp_path / ".venv") / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_bytes(metadata)
    assert find_installed("broken", (tmp_path,), {}) == []
