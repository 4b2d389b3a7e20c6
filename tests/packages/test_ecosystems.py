"""What each ecosystem's own files look like, and what is read of them; the project of a folder."""

from pathlib import Path

import pytest

from kr.packages.dependencies import find_dependencies, version_of

PNPM = """---
lockfileVersion: '9.0'
importers:
  .:
    configDependencies: {}
    packageManagerDependencies: {pnpm: {specifier: 12.3.4, version: 12.3.4}}
packages: {pnpm@12.3.4: {}}
---
lockfileVersion: '9.0'
importers:
  .:
    dependencies: {vue: {specifier: ^3.4.0, version: 3.4.21}}
packages: {vue@3.4.21: {}}
"""
POM = """<project><dependencies>
<dependency><groupId>g</groupId><artifactId>laravel</artifactId><version>11</version></dependency>
</dependencies></project>"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def told(folder: Path, *, direct: bool = True) -> set[tuple[str, str, str]]:
    found = find_dependencies(folder)
    assert found.warnings == ()
    return {(d.package, d.version, d.file) for d in found.dependencies if d.direct is direct}


ECOSYSTEMS: list[tuple[dict[str, str], set[tuple[str, str, str]], set[tuple[str, str, str]]]] = [
    (
        {"package.json": '{"dependencies": {"vue": "^3.4.0"}}', "pnpm-lock.yaml": PNPM},
        {("vue", "3.4.21", "pnpm-lock.yaml")},
        set(),
    ),
    (
        {
            "composer.json": '{"require": {"acme/own": "*", "monolog/monolog": "^3"}}',
            "composer.lock": '{"packages": [{"name": "acme/own", "version": "dev-main", "dist": {"type": "path"}},'
            ' {"name": "monolog/monolog", "version": "3.5.0"}]}',
        },
        {("monolog/monolog", "3.5.0", "composer.lock")},
        set(),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "direct", "rest"),
    ECOSYSTEMS,
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_is_listed(
    tmp_path: Path, files: dict[str, str], direct: set[tuple[str, str, str]], rest: set[tuple[str, str, str]]
) -> None:  # fmt: skip
    write(tmp_path, files)
    assert told(tmp_path) == direct
    assert told(tmp_path, direct=False) == rest


@pytest.mark.parametrize(
    ("manifest", "content", "inside", "up"),
    [
        ("composer.json", '{"require": {"laravel/framework": "^11"}}', "app/Http/Controllers", "../../../"),
        ("backend/requirements.txt", "laravel==^11\nlaravel==11.0\n", "backend/app/api", "../../"),
        ("pom.xml", POM, "src/main/java/org/example/shop", "../" * 6),
    ],
)  # fmt: skip
def test_the_project_is_found_from_a_folder_inside(
    tmp_path: Path, manifest: str, content: str, inside: str, up: str
) -> None:
    write(tmp_path, {manifest: content})
    (tmp_path / ".git").mkdir()
    (tmp_path / inside).mkdir(parents=True)
    (row,) = (d for d in find_dependencies(tmp_path / inside).dependencies if d.framework == "laravel")
    assert row.file == up + Path(manifest).name
    assert "11" in (version_of(tmp_path / inside, "laravel", {}) or "")


def test_the_nearest_project_first_then_those_above(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": '[project]\ndependencies = ["fastapi==0.115.0", "vue==9"]\n',
            "frontend/package.json": '{"dependencies": {"vue": "3.5.1"}}',
            "frontend/src/main.ts": "",
        },
    )
    (tmp_path / ".git").mkdir()
    source = tmp_path / "frontend/src"
    assert told(source) == {("vue", "3.5.1", "../package.json")}
    assert version_of(source, "vue", {}) == "3.5.1"
    assert version_of(source, "fastapi", {}) == "0.115.0"


def test_a_repository_of_several_projects_without_one_at_its_top(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "backend/requirements.txt": "fastapi==0.115.0\n",
            "apps/web/package.json": '{"dependencies": {"vue": "3.5.1"}}',
            "node_modules/x/package.json": '{"dependencies": {"wrong": "1"}}',
        },
    )
    (tmp_path / ".git").mkdir()
    expected = {("fastapi", "0.115.0", "backend/requirements.txt"), ("vue", "3.5.1", "apps/web/package.json")}
    assert told(tmp_path) == expected


def test_what_lies_above_the_repository_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": '{"dependencies": {"vue": "3"}}', "shop/src/main.c": ""})
    (tmp_path / "shop/.git").mkdir()
    assert told(tmp_path / "shop/src") == set()


@pytest.mark.parametrize("file", ["pubspec.yaml", "x.csproj", "mix.exs", "bun.lock", "setup.py", "Gemfile"])
def test_a_manifest_that_is_not_read_is_named(tmp_path: Path, file: str) -> None:
    write(tmp_path, {file: ""})
    (tmp_path / "src").mkdir()
    assert find_dependencies(tmp_path).warnings == (f"{file}: kr does not read this kind of dependency file",)
    assert find_dependencies(tmp_path / "src").warnings[0].startswith(f"../{file}: ")


def test_a_manifest_beside_one_that_tells_the_same_is_not_named(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": "", "requirements.txt": "flask==3.0.0\n"})
    assert find_dependencies(tmp_path).warnings == ()


def test_other_usual_names_of_a_package(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": '{"dependencies": {"next": "15.1.0", "@vue/test-utils": "2.4.0"}}'})
    assert version_of(tmp_path, "Next.js", {}) == "15.1.0"
    assert version_of(tmp_path, "vue.js", {}) is None
