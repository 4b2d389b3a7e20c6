"""The project of a folder, the version of one framework in it, and other names of its packages."""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kr.frameworks import same_framework
from kr.packages import find_dependencies, package_aliases, version_of
from kr.packages.model import Dependency, satisfies
from tests.packages.helpers import distribution, environment, node, rows, write

POM = """<project><dependencies>
<dependency><groupId>g</groupId><artifactId>laravel</artifactId><version>11</version></dependency>
</dependencies></project>"""


@pytest.mark.parametrize(
    ("manifest", "content", "inside", "up"),
    [
        ("composer.json", '{"require": {"laravel/framework": "^11"}}', "app/Http/Controllers", "../../../"),
        ("backend/requirements.txt", "laravel==11.0\n", "backend/app/api", "../../"),
        ("pom.xml", POM, "src/main/java/org/example/shop", "../" * 6),
    ],
)  # fmt: skip
def test_the_project_is_found_from_a_folder_inside(
    tmp_path: Path, manifest: str, content: str, inside: str, up: str
) -> None:
    write(tmp_path, {manifest: content, ".git/HEAD": ""})
    (tmp_path / inside).mkdir(parents=True)
    (row,) = (d for d in find_dependencies(tmp_path / inside, {}).dependencies if d.framework == "laravel")
    assert row.file == up + Path(manifest).name
    assert "11" in (version_of(tmp_path / inside, "laravel", {}) or "")


def test_the_nearest_project_first_then_those_above(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "pyproject.toml": '[project]\ndependencies = ["fastapi==0.115.0", "vue==9"]\n',
            "frontend/package.json": '{"dependencies": {"vue": "3.5.1"}}',
            "frontend/src/main.ts": "",
        },
    )
    source = tmp_path / "frontend/src"
    assert rows(source) == {("vue", "3.5.1", "../package.json")}
    assert version_of(source, "vue", {}) == "3.5.1"
    assert version_of(source, "fastapi", {}) == "0.115.0"


def test_a_repository_of_several_projects_without_one_at_its_top(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "backend/requirements.txt": "fastapi==0.115.0\n",
            "apps/web/package.json": '{"dependencies": {"vue": "3.5.1"}}',
            "node_modules/x/package.json": '{"dependencies": {"wrong": "1"}}',
        },
    )
    expected = {("fastapi", "0.115.0", "backend/requirements.txt"), ("vue", "3.5.1", "apps/web/package.json")}
    assert rows(tmp_path) == expected
    distribution(environment(tmp_path / "backend/.venv"), "fastapi", version="0.116.1")
    assert ("fastapi", "0.116.1", "backend/.venv") in rows(tmp_path)


def test_what_lies_above_the_repository_is_not_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"package.json": '{"dependencies": {"vue": "3"}}', "shop/src/main.c": "", "shop/.git/HEAD": ""},
    )
    assert rows(tmp_path / "shop/src") == set()


def test_an_active_environment_counts_but_never_krs_own(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "click>=8\n"})
    distribution(environment(tmp_path / "elsewhere"), "click", version="8.2.1")
    assert version_of(tmp_path, "click", {"VIRTUAL_ENV": str(tmp_path / "elsewhere")}) == "8.2.1"
    assert version_of(tmp_path, "click", {"VIRTUAL_ENV": sys.prefix}) == ">=8"
    (tmp_path / ".venv").symlink_to(sys.prefix)
    assert version_of(tmp_path, "click", {}) == ">=8"


def test_of_two_packages_of_one_name_that_of_the_nearest_manifest_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            "package.json": '{"dependencies": {"redis": "^4"}}',
            "backend/pyproject.toml": '[project]\ndependencies = ["redis>=5"]\n',
        },
    )
    node(tmp_path, "redis", "4.7.0")
    distribution(environment(tmp_path / "backend/.venv"), "redis", version="5.2.1")
    assert version_of(tmp_path / "backend", "redis", {}) == "5.2.1"
    assert version_of(tmp_path, "redis", {}) == "4.7.0"
    write(tmp_path, {"requirements.txt": "redis==5.0\n"})
    assert {(package, version) for package, version, _ in rows(tmp_path)} == {
        ("redis", "4.7.0"),
        ("redis", "5.0"),
    }


def test_a_member_has_what_is_installed_for_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "package.json": '{"workspaces": ["packages/*"], "dependencies": {"vue": "^3"}}',
            "packages/old/package.json": '{"name": "old", "dependencies": {"vue": "^2", "left": "^1"}}',
        },
    )
    node(tmp_path, "vue", "3.5.0")
    node(tmp_path, "left", "1.9.9")
    node(tmp_path / "packages/old", "vue", "2.7.16")
    found = {(package, version) for package, version, _ in rows(tmp_path)}
    assert found == {("vue", "3.5.0"), ("vue", "2.7.16"), ("left", "1.9.9")}
    assert version_of(tmp_path / "packages/old", "vue", {}) == "2.7.16"


LOCK = '[[package]]\nname = "click"\nversion = "8.3.1"\nsource = { registry = "x" }\n'


def _renew(project: Path) -> None:
    site = project / ".venv/lib/python3.11/site-packages"
    shutil.rmtree(site / "flask-2.0.dist-info")
    distribution(site, "flask", version="2.1")


@pytest.mark.parametrize(
    ("framework", "before", "change", "after"),
    [
        ("click", "8.0", {"requirements.txt": "click\n", "requirements/dev.txt": "click==8.2.2\n"}, "8.2.2"),
        ("click", "8.0", {"uv.lock": LOCK}, "8.3.1"),
        ("flask", "2.0", _renew, "2.1"),
        ("flask", "2.0", lambda p: node(p, "flask", "9.9.9"), "9.9.9"),
        ("vue", "^3.4.0", {"package.json": '{"dependencies": {"vue": "^3.5.0"}}'}, "^3.5.0"),
        ("vue", "^3.4.0", lambda p: (p / "other.json").replace(p / "package.json"), "^2.7.0"),
        ("vue", "^3.4.0", lambda p: node(p, "vue", "3.6.0"), "3.6.0"),
        ("left-pad", "1.3.0", {"node_modules/left-pad/package.json": json.dumps({"name": "left-pad", "version": "1.3.1"})}, "1.3.1"),
        ("tokio", None, {"../Cargo.toml": '[dependencies]\ntokio = "1.41"\n'}, "1.41"),
    ],
)  # fmt: skip
def test_what_changes_is_seen_at_once(
    tmp_path: Path,
    framework: str,
    before: str | None,
    change: dict[str, str | bytes] | Callable[[Path], object],
    after: str | None,
) -> None:
    project = tmp_path / "repository" / "project"
    write(
        project,
        {
            "../.git/HEAD": "",
            "requirements.txt": "click==8.0\n",
            "package.json": '{"dependencies": {"vue": "^3.4.0"}}',
            "other.json": '{"dependencies": {"vue": "^2.7.0"}}',
        },
    )
    node(project, "left-pad", "1.3.0")
    distribution(environment(project / ".venv"), "flask", version="2.0")
    for _ in range(2):
        time.sleep(0.12)  # what was written just now is not kept
        assert version_of(project, framework, {}) == before
        find_dependencies(project, {})
    if isinstance(change, dict):
        write(project, change)
    else:
        change(project)
    assert version_of(project, framework, {}) == after


def test_a_version_costs_little_in_a_resident_process(tmp_path: Path) -> None:
    dependencies = {f"package-{number}": "^1.0.0" for number in range(300)}
    locked = {f"node_modules/{name}": {"version": "1.2.3"} for name in dependencies}
    write(tmp_path, {"package.json": json.dumps({"dependencies": dependencies})})
    write(tmp_path, {"package-lock.json": json.dumps({"packages": locked})})
    time.sleep(0.12)
    assert version_of(tmp_path, "package-7", {}) == "1.2.3"
    began = time.process_time()
    for _ in range(20):
        assert version_of(tmp_path, "package-7", {}) == "1.2.3"
    assert (time.process_time() - began) / 20 < 0.02


@pytest.mark.parametrize(
    ("version", "spec", "expected"),
    [
        ("3.4.21", "^3.4.0", True),
        ("0.3.1", "^0.2", False),
        ("1.3.0", "~1.2.3", False),
        ("1.3.0", "~=1.2", True),
        ("3.11.4", ">=3.6,<3.9", False),
        ("16.14.0", "^15.0.0 || ^16.0.0", True),
        ("2.1.0", "1.2.0 - 2.0.0", False),
        ("2.5", "2.x", True),
        ("2.5", "!=2.5", False),
        ("1.26.4", "==1.26.*", True),
        ("3.4", "latest", False),
    ],
)
def test_ranges(version: str, spec: str, expected: bool) -> None:
    assert satisfies(version, spec) is expected


def test_aliases_are_the_last_parts_of_packages(tmp_path: Path) -> None:
    go = "module m\nrequire (\n\tgithub.com/acme/router/v3 v3.1.0\n\tgithub.com/go-sql-driver/mysql v1.8.0\n)\n"
    packages = '{"dependencies": {"@nestjs/core": "10", "@acme/form-kit": "1", "lodash": "4"}}'
    write(tmp_path, {"package.json": packages, "go.mod": go})
    aliases = package_aliases(find_dependencies(tmp_path, {}).dependencies)
    assert aliases == {"formkit": "@acme/form-kit", "router": "github.com/acme/router/v3"}
    assert same_framework("Form Kit", "@acme/form-kit", aliases)
    assert same_framework("nest", "@nestjs/core", aliases)
    assert not same_framework("mysql", "github.com/go-sql-driver/mysql", aliases)


@pytest.mark.parametrize(
    ("packages", "direct"),
    [(("@one/api", "@two/api"), True), (("@one/api", "api"), True), (("@one/api",), False)],
)
def test_a_part_that_several_packages_end_with_means_none(packages: tuple[str, ...], direct: bool) -> None:
    needed = [Dependency("npm", one, "1", "f", direct=direct) for one in packages]
    assert package_aliases(needed) == {}
