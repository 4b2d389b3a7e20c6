"""What each ecosystem's own files look like, and what is read of them."""

import shutil
from pathlib import Path

import pytest

from kr.packages import find_dependencies, version_of
from tests.packages.helpers import (
    DATA,
    distribution,
    environment,
    language,
    node,
    rows,
    versions,
    write,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Give a copy of the sample projects that no environment lies above."""
    shutil.copytree(DATA, tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("project", "direct", "indirect"),
    [
        (
            "npm-workspace",
            "vue 3.4.21 vue 2.7.16 vue-router 4.3.0 react 16.14.0 left 1.2.3 @angular/core 17.1.3 typescript 5.3.3 zod 3.22.4",
            "@vue/devtools-api 6.6.1",
        ),
        ("yarn-classic", "lodash 4.17.21 @babel/core 7.24.0", "lodash 3.10.1"),
        ("yarn-berry", "lodash 4.17.21 @babel/core 7.24.0", "lodash 3.10.1"),
        ("pnpm", "next 14.1.4 react 18.2.0 vitest 1.4.0", "@next/env 14.1.4"),
        (
            "uv",
            "FastAPI 0.110.1 pydantic 2.6.4 pytest 8.1.1 SQLAlchemy 2.0.29 psycopg 3.1.18 ruff unknown",
            "starlette 0.37.2",
        ),
        ("poetry", "Django 5.0.4 celery ^5.3 black *", "asgiref 3.8.1"),
        (
            "go",
            "github.com/gin-gonic/gin v1.9.1 github.com/jackc/pgx/v5 v5.5.5 gopkg.in/yaml.v3 v3.0.1",
            "github.com/bytedance/sonic v1.11.3 golang.org/x/net v0.23.0",
        ),
        (
            "cargo",
            "serde 1.0.197 tokio 1.36.0 rand 0.7.3 pretty_assertions 1.4.0 nix 0.28",
            "rand 0.8.5",
        ),
        ("composer", "laravel/framework v11.2.0 guzzlehttp/guzzle ^7.8 phpunit/phpunit 11.0.9", "symfony/console v7.0.4"),
        ("ruby", "rails 7.1.3.2 nokogiri 1.16.3", "actionpack 7.1.3.2 rack 3.0.10"),
    ],
)  # fmt: skip
def test_sample_projects(data: Path, project: str, direct: str, indirect: str) -> None:
    def pairs(words: str) -> set[tuple[str, str]]:
        named = words.split()
        return set(zip(named[::2], named[1::2], strict=True))

    found = find_dependencies(data / project, {})
    assert found.warnings == ()
    of_packages = [d for d in found.dependencies if d.ecosystem != "language"]
    assert {(d.package, d.version) for d in of_packages if d.direct} >= pairs(direct)
    assert {(d.package, d.version) for d in of_packages if not d.direct} == pairs(indirect)
    assert [d.direct for d in found.dependencies] == sorted(
        (d.direct for d in found.dependencies), reverse=True
    )


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


@pytest.mark.parametrize(
    ("file", "script", "expected"),
    [
        ("build.gradle", "api 'a:x:1', 'a:y:2'", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "api 'a:x:1',\n  // why\n  'a:y:2'\nb 'a:z:3'", {"a:x": "1", "a:y": "2", "a:z": "3"}),
        ("build.gradle", "api(['a:x:1', 'a:y:2'])", {"a:x": "1", "a:y": "2"}),
        ("build.gradle", "api(\n[group: 'a', name: 'x', version: '1'],\n[group: 'a.b', name: 'y'])", {"a:x": "1", "a.b:y": "unknown"}),
        ("build.gradle", "u = 'https://x'; /* 'a:x:2' */ api 'a:x:1' // 'a:y:1'", {"a:x": "1"}),
        ("build.gradle", "}\ntest { dependsOn 'lib:jar' }\nexec { commandLine 'run', 'nginx:1' }\nx {", {}),
    ],
)  # fmt: skip
def test_gradle_calls(tmp_path: Path, file: str, script: str, expected: dict[str, str]) -> None:
    (tmp_path / file).write_text(f"dependencies {{\n  {script}\n}}\n")
    found = {d.package: d.version for d in find_dependencies(tmp_path, {}).dependencies}
    assert found == expected


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


def test_maven_module_with_its_parents_above(tmp_path: Path) -> None:
    def pom(name: str, parent: str, rest: str) -> str:
        above = f"<parent><groupId>g</groupId><artifactId>{parent}</artifactId><version>1</version></parent>"
        group = "<groupId>g</groupId><version>1</version>" if not parent else above
        return f"<project>{group}<artifactId>{name}</artifactId>{rest}</project>"

    dependency = "<dependency><groupId>x</groupId><artifactId>{}</artifactId>{}</dependency>"
    managed = dependency.format("y", "<version>2</version>")
    uses = dependency.format("y", "") + dependency.format("z", "<version>${z.version}</version>")
    top = f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
    top += "<properties><z.version>3</z.version></properties><modules><module>mid</module></modules>"
    write(
        tmp_path,
        {
            "pom.xml": pom("top", "", top),
            "mid/pom.xml": pom("mid", "top", "<modules><module>leaf</module></modules>"),
            "mid/leaf/pom.xml": pom("leaf", "mid", f"<dependencies>{uses}</dependencies>"),
        },
    )
    leaf = tmp_path / "mid/leaf"
    assert rows(leaf) == {("x:y", "2", "pom.xml"), ("x:z", "3", "pom.xml")}
    (leaf / ".git").mkdir()
    assert {row[:2] for row in rows(leaf)} == {("x:y", "unknown"), ("x:z", "unknown"), ("g:mid", "1")}


def test_requirements_in_a_folder_of_their_own_and_what_they_include(tmp_path: Path) -> None:
    included = "-r base.txt\n-c ../limits/all.txt\nruff==0.4.1\n"
    write(tmp_path, {"requirements/dev.txt": included, "requirements/base.txt": "flask\n"})
    write(tmp_path, {"requirements/constraints.txt": "unused==1\n"})
    assert versions(tmp_path) == {"ruff": "0.4.1", "flask": "unknown"}
    (warning,) = find_dependencies(tmp_path, {}).warnings
    assert warning == "requirements/dev.txt: kr does not read ../limits/all.txt, which it names"


@pytest.mark.parametrize(
    ("project", "framework", "version"),
    [
        ("npm-workspace", "angular", "17.1.3"),
        ("npm-workspace", "router", None),
        ("maven", "Spring Boot", "3.2.4"),
        ("maven", "mybatis-plus", "3.5.5"),
        ("maven", "mybatis", None),
        ("gradle", "spring-boot", "3.2.4"),
        ("requirements", "jinja2", "3.1.3"),
        ("go", "gin", "v1.9.1"),
        ("cargo", "pretty-assertions", "1.4.0"),
    ],
)
def test_version_of(data: Path, project: str, framework: str, version: str | None) -> None:
    assert version_of(data / project, framework, {}) == version


UV_FORK = {
    "pyproject.toml": '[project]\nname = "app"\ndependencies = ["numpy>=1.24"]\n',
    "uv.lock": """
[[package]]
name = "app"
source = { editable = "." }
[[package]]
name = "numpy"
version = "1.26.4"
resolution-markers = ["python_full_version < '3.10'"]
[[package]]
name = "numpy"
version = "2.1.2"
resolution-markers = ["python_full_version >= '3.10'"]
""",
}


@pytest.mark.parametrize(("python", "version"), [("3.11", "2.1.2"), ("3.9", "1.26.4")])
def test_a_fork_of_uv_is_chosen_for_the_python_in_use(tmp_path: Path, python: str, version: str) -> None:
    write(tmp_path, UV_FORK)
    environment(tmp_path / ".venv", python)
    assert versions(tmp_path) == {"numpy": version}


def test_markers_of_poetry_are_evaluated(tmp_path: Path) -> None:
    manifest = """
[tool.poetry.dependencies]
numpy = [{version = "<=1.24", python = "<3.9"}, {version = "^2.0", python = ">=3.9"}]
winreg = {version = "^1", markers = "sys_platform == 'win32'"}
[tool.poetry.group.dev.dependencies]
pytest = "^8.0"
"""
    write(tmp_path, {"pyproject.toml": manifest})
    assert versions(tmp_path) == {"numpy": "^2.0", "pytest": "^8.0"}


REQUIREMENTS = """\
pytest>=4.6.10,<5 ; python_version < '3'
pytest>=5.4.2,<6 ; python_version >= '3'
winreg==2019.4.13; sys_platform == 'win32'
foo==1.0 ; platform_version == "a;b"
requests==2.23.0 \\
    --hash=sha256:43999036bfa82904b6af1d99e4882b560e5e2c68e5c4b0aa03b655f3d7d73fee \\
    --hash=sha256:b3f43d496c6da4ac0b6d1a1b6c6b0b7d5c7a
django==4.2  # pyup: <5
flask @ git+https://example.org/pallets/flask@3.0.0
./local/pkg
-e .
uvicorn[standard]~=0.23.0
--index-url https://example.org/simple
PyYAML===6.0
starlette
"""
REQUIRED = {
    "pytest": ">=5.4.2,<6",
    "requests": "2.23.0",
    "django": "4.2",
    "flask": "unknown",
    "uvicorn": "~=0.23.0",
    "PyYAML": "6.0",
    "starlette": "unknown",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_requirements_with_markers_and_urls_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    write(tmp_path, {"requirements.txt": REQUIREMENTS.encode(encoding)})
    assert versions(tmp_path) == REQUIRED
    assert find_dependencies(tmp_path, {}).warnings == ()


CATALOG = """
[versions]
ktor = "2.3.4"
okhttp3 = { strictly = "[4.9, 5.0[", prefer = "4.11.0" }
agp = "8.2.0"
[libraries]
groovy-core = "org.codehaus.groovy:groovy:3.0.5"
ktor-client = { module = "io.ktor:ktor-client-android", version.ref = "ktor" }
okhttp = { group = "com.squareup.okhttp3", name = "okhttp", version.ref = "okhttp3" }
boot-bom = { module = "org.springframework.boot:spring-boot-dependencies", version = "3.2.0" }
unused = { module = "com.google.code.gson:gson", version = "2.10.1" }
no_version = { module = "androidx.compose.ui:ui" }
ktor-auth = "io.ktor:ktor-server-auth:2.3.5"
[bundles]
ktor-server = ["ktor-auth", "okhttp"]
[plugins]
android = { id = "com.android.application", version.ref = "agp" }
"""


def test_a_version_catalog_of_gradle(tmp_path: Path) -> None:
    catalog = "gradle/libs.versions.toml"
    script = """dependencies {
        implementation(libs.ktor.client)
        implementation(platform(libs.boot.bom))
        runtimeOnly libs.groovy.core.get()
        implementation(libs.bundles.ktor.server)
        implementation(libs.no.version)
    }"""
    write(tmp_path, {"build.gradle.kts": script, catalog: CATALOG})
    assert rows(tmp_path) == {
        ("io.ktor:ktor-client-android", "2.3.4", catalog),
        ("org.springframework.boot:spring-boot-dependencies", "3.2.0", catalog),
        ("org.codehaus.groovy:groovy", "3.0.5", catalog),
        ("io.ktor:ktor-server-auth", "2.3.5", catalog),
        ("com.squareup.okhttp3:okhttp", "4.11.0", catalog),
        ("androidx.compose.ui:ui", "unknown", catalog),
    }
    assert versions(tmp_path, direct=False)["com.google.code.gson:gson"] == "2.10.1"
    write(
        tmp_path,
        {"settings.gradle": "include ':app'", "app/build.gradle": "dependencies { api libs.okhttp }"},
    )
    assert ("com.squareup.okhttp3:okhttp", "4.11.0", f"../{catalog}") in rows(tmp_path / "app")


def test_plugins_of_a_catalog(tmp_path: Path) -> None:
    catalog = """[versions]
boot = "3.2.4"
[plugins]
boot = { id = "org.springframework.boot", version.ref = "boot" }
kotlin = "org.jetbrains.kotlin.jvm:1.9.22"
"""
    script = """plugins { alias(libs.plugins.boot); alias(libs.plugins.kotlin) }
dependencies { implementation 'org.springframework.boot:spring-boot-starter-web' }"""
    write(tmp_path, {"gradle/libs.versions.toml": catalog, "build.gradle": script})
    assert versions(tmp_path) == {
        "org.springframework.boot:spring-boot-gradle-plugin": "3.2.4",
        "org.springframework.boot:spring-boot-starter-web": "3.2.4",
    }
    assert version_of(tmp_path, "Spring Boot", {}) == "3.2.4"
    assert version_of(tmp_path, "kotlin", {}) == "1.9.22"


@pytest.mark.parametrize(
    "version", ["$v", "${v}", "${rootProject.ext.v}", '${extra["v"]}', "${libs.versions.v.get()}"]
)
def test_a_gradle_version_in_a_variable_is_named_as_not_read(tmp_path: Path, version: str) -> None:
    write(tmp_path, {"build.gradle": f'dependencies {{ api "io.ktor:ktor:{version}" }}'})
    assert versions(tmp_path) == {"io.ktor:ktor": "unknown"}
    told = ("build.gradle: kr does not read versions that stand in variables",)
    assert find_dependencies(tmp_path, {}).warnings == told


SETUP_CFG = """
[metadata]
name = x
[options]
python_requires = >=3.9
install_requires =
  django>=4.2
  # a remark
  winreg; sys_platform == 'win32'
[options.extras_require]
test =
  pytest
  coverage>=7
"""


def test_setup_cfg(tmp_path: Path) -> None:
    dynamic = '[project]\nname = "x"\ndynamic = ["version", "dependencies"]\n[project.optional-dependencies]\ndoc = ["sphinx"]\n'
    write(tmp_path, {"setup.cfg": SETUP_CFG, "pyproject.toml": dynamic})
    assert rows(tmp_path) == {
        ("django", ">=4.2", "setup.cfg"),
        ("pytest", "unknown", "setup.cfg"),
        ("coverage", ">=7", "setup.cfg"),
        ("sphinx", "unknown", "pyproject.toml"),
    }
    assert language(tmp_path, "python") == ">=3.9"


@pytest.mark.parametrize(
    ("file", "content", "name", "version"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9"', "python", ">=3.9"),
        ("package.json", '{"engines": {"node": ">=20"}}', "node", ">=20"),
        ("composer.json", '{"require": {"php": "^8.2"}}', "php", "^8.2"),
        ("go.mod", "module x\n\ngo 1.22\n\nrequire github.com/json-iterator/go v1.1.12\n", "go", "1.22"),
        ("Cargo.toml", '[package]\nname = "a"\nrust-version = "1.75"', "rust", "1.75"),
        ("Gemfile.lock", "RUBY VERSION\n   ruby 3.3.0p0\n", "ruby", "3.3.0"),
        ("pom.xml", "<project><properties><java.version>17</java.version></properties></project>", "java", "17"),
        ("build.gradle.kts", "java { toolchain { languageVersion = JavaLanguageVersion.of(21) } }", "java", "21"),
        ("build.gradle.kts", 'plugins { kotlin("jvm") version "1.9.22" }', "kotlin", "1.9.22"),
    ],
)  # fmt: skip
def test_languages(tmp_path: Path, file: str, content: str, name: str, version: str) -> None:
    write(tmp_path, {file: content})
    assert version_of(tmp_path, name, {}) == language(tmp_path, name) == version


POSTGRESQL_POM = (
    "<project><dependencies><dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId>"
    "<version>42.7.1</version></dependency></dependencies></project>"
)


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        ("pom.xml", POSTGRESQL_POM, "postgresql"),
        ("build.gradle", "dependencies { testImplementation 'org.testcontainers:kafka:1.19.0' }", "kafka"),
        ("go.mod", "module x\nrequire github.com/go-sql-driver/mysql v1.8.1\n", "mysql"),
    ],
)  # fmt: skip
def test_no_driver_is_taken_for_its_product(tmp_path: Path, file: str, content: str, name: str) -> None:
    write(tmp_path, {file: content})
    assert version_of(tmp_path, name, {}) is None
    assert len(versions(tmp_path)) == 1


NPM_LOCK = '{"lockfileVersion": 3, "packages": {"node_modules/vue": {"version": "3.3.0"}}}'
PNPM_LOCK = "lockfileVersion: '9.0'\npackages: {pnpm@12.3.4: {}}\n---\npackages: {vue@3.4.21: {}}\n"  # pnpm's own comes first


YARN_LOCK = 'vue@^2.0.0:\n  version "2.7.16"\n'


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ('"packageManager": "pnpm@9.1.0"', "3.4.21"),
        ('"packageManager": "yarn@1.22.22"', "2.7.16"),
        ('"devEngines": {"packageManager": {"name": "yarn"}}', "2.7.16"),
        ('"private": true', "3.4.21"),
    ],
)
def test_of_several_lock_files_the_named_managers_or_the_one_that_fits(
    tmp_path: Path, more: str, version: str
) -> None:
    manifest = f'{{"dependencies": {{"vue": "^3.4.0"}}, {more}}}'
    locks = {"package-lock.json": NPM_LOCK, "pnpm-lock.yaml": PNPM_LOCK, "yarn.lock": YARN_LOCK}
    write(tmp_path, {"package.json": manifest, **locks})
    assert versions(tmp_path) == {"vue": version}


@pytest.mark.parametrize(
    ("more", "version"), [("[tool.poetry]\n", "1.0"), ("[tool.uv]\n", "2.0"), ("", "2.0")]
)
def test_of_two_python_locks_the_tools_or_the_one_that_fits(tmp_path: Path, more: str, version: str) -> None:
    lock = '[[package]]\nname = "thing"\nversion = "{}"\n'
    manifest = '[project]\ndependencies = ["thing>=2"]\n'
    locks = {"poetry.lock": lock.format("1.0"), "uv.lock": lock.format("2.0")}
    write(tmp_path, {"pyproject.toml": manifest + more, **locks})
    assert versions(tmp_path) == {"thing": version}


def test_what_is_installed_wins_over_a_lock_and_a_lock_over_a_range(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "sqlalchemy"\nversion = "2.0.1"\n'
    write(tmp_path, {"pyproject.toml": '[project]\ndependencies = ["SQLAlchemy>=1.4"]\n'})
    assert versions(tmp_path) == {"SQLAlchemy": ">=1.4"}
    write(tmp_path, {"uv.lock": lock})
    assert versions(tmp_path) == {"SQLAlchemy": "2.0.1"}
    distribution(environment(tmp_path / ".venv"), "sqlalchemy", version="2.1.9")
    assert rows(tmp_path) == {("SQLAlchemy", "2.1.9", ".venv")}
    assert version_of(tmp_path, "sqlalchemy", {}) == "2.1.9"
    write(tmp_path, {"package.json": '{"dependencies": {"vue": "^3.4.0"}}', "package-lock.json": NPM_LOCK})
    assert version_of(tmp_path, "vue", {}) == "3.3.0"
    node(tmp_path, "vue", "3.5.0")
    assert version_of(tmp_path, "vue", {}) == "3.5.0"
    assert ("vue", "3.5.0", "node_modules/vue") in rows(tmp_path)


def test_members_that_use_each_other_are_no_dependencies(tmp_path: Path) -> None:
    member = '{"name": "b", "version": "1.0.0"}'
    berry = '"b@npm:^1.0.0, b@workspace:packages/b":\n  version: 0.0.0-use.local\n'
    write(tmp_path, {"package.json": '{"workspaces": ["packages/*"]}', "packages/b/package.json": member})
    write(tmp_path, {"packages/a/package.json": '{"name": "a", "dependencies": {"b": "^1.0.0"}}'})
    assert versions(tmp_path) == {}
    write(tmp_path, {"yarn.lock": berry})
    assert versions(tmp_path) == {}


@pytest.mark.parametrize(
    "file", ["Pipfile", "environment.yml", "bun.lock", "mix.exs", "x.csproj", "Gemfile", "pubspec.yaml"]
)
def test_a_manifest_that_is_not_read_is_named_always(tmp_path: Path, file: str) -> None:
    write(tmp_path, {file: "", "requirements.txt": "flask==3.0.0\n", "src/app.py": ""})
    assert find_dependencies(tmp_path, {}).warnings == (
        f"{file}: kr does not read this kind of dependency file",
    )
    assert find_dependencies(tmp_path / "src", {}).warnings[0].startswith(f"../{file}: ")


def test_a_setup_py_is_named_when_it_states_requirements(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": "from setuptools import setup\nsetup()\n", "requirements.txt": "flask\n"})
    assert find_dependencies(tmp_path, {}).warnings == ()
    write(tmp_path, {"setup.py": "from setuptools import setup\nsetup(install_requires=['flask'])\n"})
    assert find_dependencies(tmp_path, {}).warnings[0].startswith("setup.py: ")
