"""What each ecosystem's own files look like, and what is read of them."""

import shutil
from pathlib import Path

import pytest

from kr.packages.versions import find_dependencies, version_of
from tests.packages.helpers import DATA, rows, versions, write


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Give a copy of the sample projects that no environment lies above."""
    shutil.copytree(DATA, tmp_path / "data")
    return tmp_path / "data"


def test_npm_workspace_takes_the_version_that_each_member_gets(data: Path) -> None:
    lock = "package-lock.json"
    assert rows(data / "npm-workspace") == {
        ("vue", "3.4.21", lock),
        ("vue", "2.7.16", lock),
        ("vue-router", "4.3.0", lock),
        ("react", "16.14.0", lock),
        ("left", "1.2.3", lock),
        ("@angular/core", "17.1.3", lock),
        ("typescript", "5.3.3", lock),
        ("zod", "3.22.4", lock),
    }
    assert rows(data / "npm-workspace", direct=False) == {("@vue/devtools-api", "6.6.1", lock)}


@pytest.mark.parametrize("project", ["yarn-classic", "yarn-berry"])
def test_yarn_lock_in_both_formats(data: Path, project: str) -> None:
    assert rows(data / project) == {
        ("lodash", "4.17.21", "yarn.lock"),
        ("@babel/core", "7.24.0", "yarn.lock"),
    }
    assert ("lodash", "3.10.1", "yarn.lock") in rows(data / project, direct=False)


def test_pnpm_workspace_and_catalog(data: Path) -> None:
    lock = "pnpm-lock.yaml"
    assert rows(data / "pnpm") == {
        ("next", "14.1.4", lock),
        ("react", "18.2.0", lock),
        ("vitest", "1.4.0", lock),
    }
    assert rows(data / "pnpm", direct=False) == {("@next/env", "14.1.4", lock)}


def test_uv_workspace_without_its_own_members(data: Path) -> None:
    assert rows(data / "uv") == {
        ("FastAPI", "0.110.1", "uv.lock"),
        ("pydantic", "2.6.4", "uv.lock"),
        ("pytest", "8.1.1", "uv.lock"),
        ("SQLAlchemy", "2.0.29", "uv.lock"),
        ("psycopg", "3.1.18", "pyproject.toml"),
        ("ruff", "unknown", "pyproject.toml"),
    }
    assert rows(data / "uv", direct=False) == {("starlette", "0.37.2", "uv.lock")}


def test_poetry(data: Path) -> None:
    assert rows(data / "poetry") == {
        ("Django", "5.0.4", "poetry.lock"),
        ("celery", "^5.3", "pyproject.toml"),
        ("black", "*", "pyproject.toml"),
    }
    assert rows(data / "poetry", direct=False) == {("asgiref", "3.8.1", "poetry.lock")}


def test_requirements_with_includes_constraints_and_options(data: Path) -> None:
    found = find_dependencies(data / "requirements", {})
    assert {(d.package, d.version) for d in found.dependencies} == {
        ("Flask", "3.0.2"),
        ("requests", ">=2.31,<3"),
        ("rich", "13.7.1"),
        ("certifi", "2024.2.2"),
        ("httpx", "0.27.0"),
        ("tool", "unknown"),
        ("Jinja2", "3.1.3"),
        ("mypy", "~=1.9"),
    }
    assert len(found.warnings) == 2
    assert all(
        any(why in one for one in found.warnings) for why in ("../outside.txt", "this is no requirement")
    )


def test_an_included_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r other.txt\nrich==13.7.1\n")
    found = find_dependencies(tmp_path, {})
    assert [d.package for d in found.dependencies] == ["rich"]
    assert found.warnings == ("requirements.txt: other.txt, which it names, is not there",)


BOOT_POM = """<project>
<parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId><version>3.4.1</version></parent>
<dependencies>
<dependency><groupId>org.mapstruct</groupId><artifactId>mapstruct</artifactId><version>1.6.3</version></dependency>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-web</artifactId></dependency>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-data-jpa</artifactId></dependency>
<dependency><groupId>org.testcontainers</groupId><artifactId>postgresql</artifactId><version>1.20.4</version></dependency>
</dependencies></project>"""
BOOT_GRADLE = """plugins { id("org.springframework.boot") version "3.4.1" }
dependencies {
  implementation("org.springframework.boot:spring-boot-starter-data-jpa")
  testImplementation("org.testcontainers:postgresql:1.20.4")
}"""
BOOT_CATALOG = '[plugins]\nboot = { id = "org.springframework.boot", version = "3.4.1" }\n'


@pytest.mark.parametrize(
    "files",
    [
        {"pom.xml": BOOT_POM},
        {"build.gradle.kts": BOOT_GRADLE},
        {
            "build.gradle.kts": f"plugins {{ alias(libs.plugins.boot) }}{BOOT_GRADLE[BOOT_GRADLE.index('}') + 1 :]}",
            "gradle/libs.versions.toml": BOOT_CATALOG,
        },
    ],
    ids=["maven", "gradle", "catalog"],
)
def test_the_framework_of_a_java_group_has_its_own_name(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    found = {(d.framework, d.version) for d in find_dependencies(tmp_path, {}).dependencies}
    assert {("spring-boot", "3.4.1"), ("testcontainers", "1.20.4")} <= found
    assert not {name for name, _ in found} & {"spring-boot-starter-parent", "spring-boot-starter-web"}
    for asked, version in {
        "spring-boot": "3.4.1",
        "testcontainers": "1.20.4",
        "org.testcontainers:postgresql": "1.20.4",
        "postgresql": None,
    }.items():
        assert version_of(tmp_path, asked, {}) == version


def test_maven_properties_management_parent_and_modules(data: Path) -> None:
    found = find_dependencies(data / "maven", {})
    assert {(d.framework, d.version) for d in found.dependencies} == {
        ("spring-boot", "3.2.4"),
        ("mybatis-plus", "3.5.5"),
        ("loops", "unknown"),
        ("guava", "33.1.0-jre"),
        ("h2", "unknown"),
    }
    guava = next(d for d in found.dependencies if d.framework == "guava")
    assert (guava.package, guava.file, guava.direct) == ("com.google.guava:guava", "core/pom.xml", True)
    assert found.warnings == ()


def test_gradle_notations_variables_and_plugin(data: Path) -> None:
    found = {
        (d.framework, d.version) for d in find_dependencies(data / "gradle", {}).dependencies if d.direct
    }
    assert found == {
        ("spring-boot", "3.2.4"),
        ("jackson", "2.17.0"),
        ("lombok", "1.18.32"),
        ("kafka-clients", "3.7.0"),
        ("junit", "4.13.2"),
        ("libraries-bom", "26.36.0"),
        ("h2", "2.2.224"),
        ("mystery", "unknown"),
    }


@pytest.mark.parametrize(
    ("file", "script", "version"),
    [
        ("build.gradle", "dependencies { implementation 'a:b:1.0' }", "1.0"),
        ("build.gradle.kts", 'dependencies { implementation("a:b:1.0") }', "1.0"),
        ("build.gradle", "ext { ver = '1.2.3' }\ndependencies { api \"a:b:$ver\" }", "1.2.3"),
        ("build.gradle", "ext { ver = '1.2.3' }\ndependencies { api \"a:b:${ver}\"; }", "1.2.3"),
        ("build.gradle", "dependencies { api group: 'a', name: 'b', version: '1' }", "1"),
        ("build.gradle", "dependencies { api('a:b:1') { transitive = false } }", "1"),
        ("build.gradle", "dependencies { /* none */ test 'x:y:2'; api 'a:b:1' } // end", "1"),
        ("build.gradle", "jar { exclude '**/*.class' }\ndependencies { api 'a:b:1' } /* 'it */", "1"),
        ("build.gradle", "u = 'https://x'; dependencies { api 'a:b:1' }", "1"),
        ("build.gradle", "dependencies { // api 'a:b:2'\n  api 'a:b:1' }", "1"),
    ],
)
def test_gradle_blocks_in_one_line(tmp_path: Path, file: str, script: str, version: str) -> None:
    (tmp_path / file).write_text(script)
    found = find_dependencies(tmp_path, {})
    assert [d.version for d in found.dependencies if d.package == "a:b"] == [version]


@pytest.mark.parametrize(
    ("file", "script", "expected"),
    [
        ("build.gradle", "api 'a:x:1', 'a:y:2'", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "api 'a:x:1',\n  // why\n  'a:y:2'\nb 'a:z:3'", {"a:x": "1", "a:y": "2", "a:z": "3"}),
        ("build.gradle", "api('a:x:1',\n 'a:y:2')", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "api(['a:x:1', 'a:y:2'])", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "api(\n[group: 'a', name: 'x', version: '1'],\n[group: 'a', name: 'y'])", {"a:x": "1", "a:y": "unknown"}),
        ("build.gradle", "['a:x:1', 'a:y:2'].each { api it }", {"a:x": "1", "a:y": "2"}),
        ("build.gradle.kts", '"cfg"("a:x:1")', {"a:x": "1"}),
        ("build.gradle.kts", 'add("api", "a:x:1")', {"a:x": "1"}),
        ("build.gradle.kts", 'api("""a:x:1""")', {"a:x": "1"}),
        ("build.gradle.kts", '} \nextra["jv"] = "2"\ndependencies { api("a:x:${extra["jv"]}")', {"a:x": "2"}),
        ("build.gradle", "}\next.v = [x: '1', y: '2']\ndependencies { api \"a:x:${v.x}\", \"a:y:$v.y\"", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "}\ntest { dependsOn 'lib:jar' }\nexec { commandLine 'run', 'nginx:1' }\nx {", {}),
    ],
)  # fmt: skip
def test_gradle_calls(tmp_path: Path, file: str, script: str, expected: dict[str, str]) -> None:
    (tmp_path / file).write_text(f"dependencies {{\n  {script}\n}}\n")
    found = {d.package: d.version for d in find_dependencies(tmp_path, {}).dependencies}
    assert found == expected


def test_gradle_subproject_with_its_build_above(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "top/settings.gradle.kts": 'include(":lib")',
            "top/gradle.properties": "one=1.1\n",
            "top/build.gradle.kts": 'extra["two"] = "2.2"\ndependencies { api("a:root:1") }',
            "top/lib/build.gradle.kts": 'dependencies { api("a:b:$one", "a:c:$two") }',
        },
    )
    assert rows(tmp_path / "top/lib") == {
        ("a:b", "1.1", "build.gradle.kts"),
        ("a:c", "2.2", "build.gradle.kts"),
    }
    (tmp_path / "top/lib/settings.gradle").touch()  # a build of its own
    assert {version for _, version, _ in rows(tmp_path / "top/lib")} == {"unknown"}


def test_go_short_names_indirect_and_replace(data: Path) -> None:
    found = find_dependencies(data / "go", {}).dependencies
    assert {(d.framework, d.package, d.version, d.direct) for d in found} == {
        ("gin", "github.com/gin-gonic/gin", "v1.9.1", True),
        ("pgx", "github.com/jackc/pgx/v5", "v5.5.5", True),
        ("yaml", "gopkg.in/yaml.v3", "v3.0.1", True),
        ("sonic", "github.com/bytedance/sonic", "v1.11.3", False),
        ("net", "golang.org/x/net", "v0.23.0", False),
        ("go", "go", "1.22", True),
    }


def test_cargo_workspace(data: Path) -> None:
    assert {row[:2] for row in rows(data / "cargo")} == {
        ("serde", "1.0.197"),
        ("tokio", "1.36.0"),
        ("rand", "0.7.3"),
        ("pretty_assertions", "1.4.0"),
        ("nix", "0.28"),
    }
    assert rows(data / "cargo", direct=False) == {("rand", "0.8.5", "Cargo.lock")}


def test_cargo_lock_without_sources(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "app_one"\n[dependencies]\nserde = "1"\nutil = {path = "../util", version = "1"}\n'
    )
    (tmp_path / "Cargo.lock").write_text(
        "".join(
            f'[[package]]\nname = "{name}"\nversion = "1.0.7"\n'
            for name in ("app-one", "util", "serde", "itoa")
        )
    )
    found = [(d.package, d.version, d.direct) for d in find_dependencies(tmp_path, {}).dependencies]
    assert found == [("serde", "1.0.7", True), ("itoa", "1.0.7", False)]


CARGO_MEMBER = """[package]
name = "app"
[dependencies]
tokio.workspace = true
serde = { workspace = true, features = ["derive"] }
nix = { workspace = true }
ours = { workspace = true }
"""
CARGO_TOP = """[workspace]
members = ["crates/*"]
exclude = ["crates/apart"]
[workspace.dependencies]
tokio = "1.30"
serde = { version = "1" }
ours = { path = "crates/ours", version = "0.1" }
"""


def test_cargo_member_of_a_workspace_above(tmp_path: Path) -> None:
    write(tmp_path, {"top/Cargo.toml": CARGO_TOP, "top/crates/app/Cargo.toml": CARGO_MEMBER})
    member = tmp_path / "top/crates/app"
    ranges = {("tokio", "1.30"), ("serde", "1"), ("nix", "unknown")}
    assert {row[:2] for row in rows(member)} == ranges
    lock = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\n{source}'
        for name, version, source in [
            ("tokio", "1.36.0", 'source = "x"\n'),
            ("app", "0.1.0", ""),
            ("sibling", "0.1.0", ""),
        ]
    )
    write(tmp_path, {"top/Cargo.lock": lock, "top/crates/app/Cargo.lock": ""})
    assert ("tokio", "1.36.0", "../../Cargo.lock") in rows(member)
    assert all(d.direct for d in find_dependencies(member, {}).dependencies)
    assert version_of(member, "tokio", {}) == "1.36.0"
    (member / ".git").mkdir()  # a repository of its own
    assert ("tokio", "unknown", "Cargo.toml") in rows(member)


def test_cargo_crate_that_the_workspace_above_excludes(tmp_path: Path) -> None:
    manifest = '[package]\nname = "apart"\n[dependencies]\ntokio = "1.2"\n'
    lock = '[[package]]\nname = "tokio"\nversion = "1.36.0"\nsource = "x"\n'
    write(
        tmp_path,
        {"Cargo.toml": CARGO_TOP, "Cargo.lock": lock, "crates/apart/deep/Cargo.toml": manifest},
    )
    assert rows(tmp_path / "crates/apart/deep") == {("tokio", "1.2", "Cargo.toml")}


def test_pnpm_member_of_a_workspace_above(tmp_path: Path) -> None:
    dependencies = '"vue": "catalog:", "react": "catalog:old", "ours": "workspace:*"'
    top = "packages: ['packages/*']\ncatalog: {vue: ^3.4.0}\ncatalogs: {old: {react: ^17.0.0}}\n"
    write(
        tmp_path,
        {
            "pnpm-workspace.yaml": top,
            "package.json": "{}",
            "packages/app/package.json": f'{{"dependencies": {{{dependencies}}}}}',
        },
    )
    member = tmp_path / "packages/app"
    assert rows(member) == {("vue", "^3.4.0", "package.json"), ("react", "^17.0.0", "package.json")}
    importer = "importers: {packages/app: {dependencies: {vue: {specifier: 'catalog:', version: 3.4.21}}}}\n"
    write(tmp_path, {"pnpm-lock.yaml": importer})
    assert ("vue", "3.4.21", "../../pnpm-lock.yaml") in rows(member)
    write(tmp_path, {"pnpm-workspace.yaml": "packages: ['apps/*']"})
    assert ("vue", "unknown", "package.json") in rows(member)


def test_npm_and_yarn_members_of_a_workspace_above(tmp_path: Path) -> None:
    packages = (
        '"node_modules/vue": {"version": "3.4.1"}, "packages/app/node_modules/vue": {"version": "2.7.16"}'
    )
    write(
        tmp_path,
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "package-lock.json": f'{{"packages": {{{packages}}}}}',
            "packages/app/package.json": '{"dependencies": {"vue": "^2.0.0"}}',
            "packages/other/package.json": '{"dependencies": {"vue": "^3.0.0"}}',
        },
    )
    assert rows(tmp_path / "packages/app") == {("vue", "2.7.16", "../../package-lock.json")}
    assert rows(tmp_path / "packages/other") == {("vue", "3.4.1", "../../package-lock.json")}
    (tmp_path / "package-lock.json").unlink()
    yarn = 'vue@^2.0.0:\n  version "2.6.0"\n\nvue@~2.7.0, vue@^3.0.0:\n  version "2.7.16"\n'
    write(tmp_path, {"yarn.lock": yarn})
    assert rows(tmp_path / "packages/app") == {("vue", "2.6.0", "../../yarn.lock")}


def test_uv_member_of_a_workspace_above(tmp_path: Path) -> None:
    member = """[project]
name = "app"
dependencies = ["httpx>=0.27", "ours"]
[tool.uv.sources]
ours = { workspace = true }
"""
    write(
        tmp_path,
        {
            "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
            "uv.lock": '[[package]]\nname = "httpx"\nversion = "0.27.2"\n',
            "packages/app/pyproject.toml": member,
        },
    )
    assert rows(tmp_path / "packages/app") == {("httpx", "0.27.2", "../../uv.lock")}


def test_maven_module_with_its_parents_above(tmp_path: Path) -> None:
    def pom(name: str, parent: str, rest: str) -> str:
        above = f"<parent><groupId>g</groupId><artifactId>{parent}</artifactId><version>1</version></parent>"
        group = "<groupId>g</groupId><version>1</version>" if not parent else above
        return f"<project>{group}<artifactId>{name}</artifactId>{rest}</project>"

    dependency = "<dependency><groupId>x</groupId><artifactId>{}</artifactId>{}</dependency>"
    managed = dependency.format("y", "<version>2</version>")
    uses = dependency.format("y", "") + dependency.format("z", "<version>${z.version}</version>")
    top = f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
    write(
        tmp_path,
        {
            "pom.xml": pom("top", "", f"{top}<properties><z.version>3</z.version></properties>"),
            "mid/pom.xml": pom("mid", "top", ""),
            "mid/leaf/pom.xml": pom("leaf", "mid", f"<dependencies>{uses}</dependencies>"),
        },
    )
    leaf = tmp_path / "mid/leaf"
    assert rows(leaf) == {("x:y", "2", "pom.xml"), ("x:z", "3", "pom.xml")}
    (leaf / ".git").mkdir()
    assert {row[:2] for row in rows(leaf)} == {("x:y", "unknown"), ("x:z", "unknown"), ("g:mid", "1")}
    (leaf / ".git").rmdir()
    write(tmp_path, {"mid/pom.xml": pom("other", "top", "")})
    assert ("x:y", "unknown", "pom.xml") in rows(leaf)


def test_requirements_in_a_folder_of_their_own(tmp_path: Path) -> None:
    write(
        tmp_path, {"requirements/dev.txt": "-r base.txt\nruff==0.4.1\n", "requirements/base.txt": "flask\n"}
    )
    write(tmp_path, {"requirements/constraints.txt": "flask==3.0.2\nunused==1\n"})
    assert {row[:2] for row in rows(tmp_path)} == {("ruff", "0.4.1"), ("flask", "3.0.2")}


def test_poetry_exact_version(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": '[tool.poetry.dependencies]\npandas = "==2.2.1"\nx = "==2.*"\n'})
    assert {row[:2] for row in rows(tmp_path)} == {("pandas", "2.2.1"), ("x", "==2.*")}


def test_composer(data: Path) -> None:
    found = find_dependencies(data / "composer", {}).dependencies
    assert {(d.framework, d.package, d.version, d.direct) for d in found} == {
        ("laravel", "laravel/framework", "v11.2.0", True),
        ("guzzle", "guzzlehttp/guzzle", "^7.8", True),
        ("php", "php", "^8.2", True),
        ("phpunit", "phpunit/phpunit", "11.0.9", True),
        ("console", "symfony/console", "v7.0.4", False),
    }


def test_bundler(data: Path) -> None:
    assert {row[:2] for row in rows(data / "ruby")} == {("rails", "7.1.3.2"), ("nokogiri", "1.16.3")}
    assert {row[:2] for row in rows(data / "ruby", direct=False)} == {
        ("actionpack", "7.1.3.2"),
        ("rack", "3.0.10"),
    }


def test_direct_dependencies_come_first(data: Path) -> None:
    flags = [d.direct for d in find_dependencies(data / "npm-workspace", {}).dependencies]
    assert flags == sorted(flags, reverse=True)


@pytest.mark.parametrize(
    ("project", "framework", "version"),
    [
        ("npm-workspace", "vue", "3.4.21"),
        ("npm-workspace", "Vue", "3.4.21"),
        ("npm-workspace", "vue-router", "4.3.0"),
        ("npm-workspace", "angular", "17.1.3"),
        ("npm-workspace", "@angular/core", "17.1.3"),
        ("npm-workspace", "router", None),
        ("maven", "spring-boot", "3.2.4"),
        ("maven", "Spring Boot", "3.2.4"),
        ("maven", "mybatis-plus", "3.5.5"),
        ("maven", "mybatis", None),
        ("maven", "com.google.guava:guava", "33.1.0-jre"),
        ("maven", "h2", None),
        ("gradle", "spring-boot", "3.2.4"),
        ("uv", "fastapi", "0.110.1"),
        ("uv", "sqlalchemy", "2.0.29"),
        ("requirements", "jinja2", "3.1.3"),
        ("requirements", "requests", ">=2.31,<3"),
        ("go", "gin", "v1.9.1"),
        ("go", "github.com/jackc/pgx/v5", "v5.5.5"),
        ("cargo", "pretty-assertions", "1.4.0"),
        ("composer", "laravel", "v11.2.0"),
        ("composer", "laravel/framework", "v11.2.0"),
        ("ruby", "rails", "7.1.3.2"),
    ],
)
def test_version_of(data: Path, project: str, framework: str, version: str | None) -> None:
    assert version_of(data / project, framework, {}) == version


PNPM_OF_TWO_DOCUMENTS = """---
lockfileVersion: '9.0'
importers:
  .:
    packageManagerDependencies: {pnpm: {specifier: 12.3.4, version: 12.3.4}}
packages: {pnpm@12.3.4: {}}
---
lockfileVersion: '9.0'
importers:
  .:
    dependencies: {vue: {specifier: ^3.4.0, version: 3.4.21}}
packages: {vue@3.4.21: {}}
"""


def test_pnpms_own_document_is_passed_over(tmp_path: Path) -> None:
    manifest = '{"dependencies": {"vue": "^3.4.0"}}'
    write(tmp_path, {"package.json": manifest, "pnpm-lock.yaml": PNPM_OF_TWO_DOCUMENTS})
    assert rows(tmp_path) == {("vue", "3.4.21", "pnpm-lock.yaml")}
    assert rows(tmp_path, direct=False) == set()


def test_composers_path_repositories_are_the_projects_own(tmp_path: Path) -> None:
    lock = """{"packages": [{"name": "acme/own", "version": "dev-main", "dist": {"type": "path"}},
        {"name": "monolog/monolog", "version": "3.5.0"}]}"""
    manifest = '{"require": {"acme/own": "*", "monolog/monolog": "^3", "ext-json": "*"}}'
    write(tmp_path, {"composer.json": manifest, "composer.lock": lock})
    assert rows(tmp_path) == {("monolog/monolog", "3.5.0", "composer.lock")}


def test_members_of_a_go_work(tmp_path: Path) -> None:
    module = "module example.org/{}\ngo 1.22\nrequire github.com/a/{} v1.0.0\n"
    work = "go 1.22\nuse (\n\t./one\n\t./two\n\t../outside\n)\n"
    write(tmp_path, {"go.work": work, "one/go.mod": module.format("one", "x")})
    write(tmp_path, {"two/go.mod": module.format("two", "y") + "require example.org/one v0.0.0\n"})
    assert versions(tmp_path) == {"github.com/a/x": "v1.0.0", "github.com/a/y": "v1.0.0"}


def test_pylock(tmp_path: Path) -> None:
    lock = '[[packages]]\nname = "flask"\nversion = "3.0.2"\n[[packages]]\nname = "flask"\nversion = "2.0"\nmarker = "python_version < \'3.9\'"\n'
    write(tmp_path, {"pyproject.toml": '[project]\ndependencies = ["flask"]\n', "pylock.toml": lock})
    assert rows(tmp_path) == {("flask", "3.0.2", "pylock.toml")}


def test_a_pom_in_latin_1(tmp_path: Path) -> None:
    dependency = "<dependency><groupId>g</groupId><artifactId>a</artifactId><version>1</version></dependency>"
    text = f"<project><!-- Müller --><dependencies>{dependency}</dependencies></project>"
    write(tmp_path, {"pom.xml": b'<?xml version="1.0" encoding="ISO-8859-1"?>' + text.encode("latin-1")})
    assert rows(tmp_path) == {("g:a", "1", "pom.xml")}
