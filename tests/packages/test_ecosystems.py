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
PYLOCK = """lock-version = "1.0"
[[packages]]
name = "attrs"
version = "25.1.0"
[[packages]]
name = "cattrs"
version = "24.1.2"
dependencies = [{name = "attrs"}]
[[packages]]
name = "ours"
[packages.directory]
path = "."
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
    return {
        (d.package, d.version, d.file)
        for d in found.dependencies
        if d.direct is direct and d.ecosystem != "language"
    }


ECOSYSTEMS = [
    (
        {"package.json": '{"dependencies": {"vue": "^3.4.0"}}', "pnpm-lock.yaml": PNPM},
        {("vue", "3.4.21", "pnpm-lock.yaml")},
        set(),
    ),
    (
        {"pylock.toml": PYLOCK},
        {("cattrs", "24.1.2", "pylock.toml")},
        {("attrs", "25.1.0", "pylock.toml")},
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
    (
        {
            "go.work": "go 1.22\nuse (\n\t./api\n\t./lib\n)\n",
            "api/go.mod": "module example.org/api\nrequire example.org/lib v0.1.0\nrequire github.com/go-chi/chi/v5 v5.0.12\n",
            "lib/go.mod": "module example.org/lib\n",
        },
        {("github.com/go-chi/chi/v5", "v5.0.12", "api/go.mod")},
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
    ("files", "language", "version"),
    [
        ({".python-version": "# ours\n3.12.4\n", "pyproject.toml": '[project]\nrequires-python = ">=3.11"'}, "python", "3.12.4"),
        ({"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.11"'}, "python", ">=3.11"),
        ({".nvmrc": "v20.11.1\n", "package.json": '{"engines": {"node": ">=18"}}'}, "node", "20.11.1"),
        ({"package.json": '{"engines": {"node": ">=18"}}'}, "node", ">=18"),
        ({"package.json": '{"engines": ["node >= 0.4"], "volta": {"node": "20.9.0"}}'}, "node", "20.9.0"),
        ({".tool-versions": "nodejs 22.13.1\nother 1\n"}, "node", "22.13.1"),
        ({"go.mod": "module x\n\ngo 1.22\n"}, "go", "1.22"),
        ({"pom.xml": "<project><properties><java.version>17</java.version></properties></project>"}, "java", "17"),
        ({"build.gradle.kts": "java { toolchain { languageVersion = JavaLanguageVersion.of(21) } }"}, "java", "21"),
        ({"build.gradle": "sourceCompatibility = JavaVersion.VERSION_17"}, "java", "17"),
        ({"composer.json": '{"require": {"php": "^8.2"}}'}, "php", "^8.2"),
        ({"composer.json": '{"require": {"php": "^8.2"}, "config": {"platform": {"php": "8.3.1"}}}'}, "php", "8.3.1"),
        ({"Gemfile.lock": "RUBY VERSION\n   ruby 3.3.0p0\n\nBUNDLED WITH\n   2.5.4\n"}, "ruby", "3.3.0"),
        ({".ruby-version": "ruby-3.2.2\n"}, "ruby", "3.2.2"),
        ({"rust-toolchain.toml": '[toolchain]\nchannel = "1.80"'}, "rust", "1.80"),
        ({"Cargo.toml": '[workspace.package]\nrust-version = "1.75"'}, "rust", "1.75"),
    ],
)  # fmt: skip
def test_the_language_and_its_version(
    tmp_path: Path, files: dict[str, str], language: str, version: str
) -> None:
    write(tmp_path, files)
    found = [d for d in find_dependencies(tmp_path).dependencies if d.ecosystem == "language"]
    assert [(d.package, d.version) for d in found] == [(language, version)]
    assert version_of(tmp_path, language, {}) == version


def test_a_language_that_is_pinned_above(tmp_path: Path) -> None:
    write(tmp_path, {".python-version": "3.13\n", "backend/pyproject.toml": '[project]\nname = "api"\n'})
    (tmp_path / ".git").mkdir()
    (row,) = find_dependencies(tmp_path / "backend").dependencies
    assert (row.package, row.version, row.file) == ("python", "3.13", "../.python-version")


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
