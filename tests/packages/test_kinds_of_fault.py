"""Kinds of fault that users of comparable tools report: each with small inputs, and what they must give."""

from pathlib import Path

import pytest

from kr.packages.versions import find_dependencies, version_of
from tests.packages.helpers import distribution, environment, language, node, rows, versions, write

UV_FORK = {
    "pyproject.toml": '[project]\nname = "app"\ndependencies = ["numpy>=1.24", "django>=4.2"]\n',
    "uv.lock": """
[[package]]
name = "app"
source = { editable = "." }
[[package]]
name = "django"
version = "4.2.16"
resolution-markers = ["python_full_version < '3.10'"]
[[package]]
name = "django"
version = "5.1.2"
resolution-markers = ["python_full_version >= '3.10'"]
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
UV_CHOICE = """
[[package]]
name = "app"
source = { virtual = "." }
dependencies = [
    { name = "numpy", version = "1.26.4", marker = "python_full_version < '3.10'" },
    { name = "numpy", version = "2.1.2", marker = "python_full_version >= '3.10'" },
]
[[package]]
name = "numpy"
version = "1.26.4"
[[package]]
name = "numpy"
version = "2.1.2"
"""


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("3.11", {"numpy": "2.1.2", "django": "5.1.2"}),
        ("3.9", {"numpy": "1.26.4", "django": "4.2.16"}),
    ],
)
def test_a_fork_of_uv_is_chosen_for_the_python_in_use(
    tmp_path: Path, python: str, expected: dict[str, str]
) -> None:
    write(tmp_path, UV_FORK)
    environment(tmp_path / ".venv", python)
    assert versions(tmp_path) == expected
    (tmp_path / "uv.lock").write_text(UV_CHOICE)
    assert versions(tmp_path)["numpy"] == expected["numpy"]


def test_poetrys_multiple_constraints(tmp_path: Path) -> None:
    manifest = """
[tool.poetry]
name = "app"
[tool.poetry.dependencies]
python = ">=3.8"
numpy = [
    {version = "<=1.24", python = ">=3.6,<3.9"},
    {version = "^2.0", python = ">=3.9"},
]
django = [
    {version = "^3.2", markers = "python_version < '3.9'"},
    {version = "^5.0", markers = "python_version >= '3.9'"},
]
winreg = {version = "^1", platform = "win32"}
uvloop = {version = "^0.19", markers = "sys_platform != 'win32'"}
greenlet = {version = ">=2.0.0", optional = true}
httpx = {git = "https://example.org/encode/httpx.git", tag = "0.27.0"}
[tool.poetry.group.dev.dependencies]
pytest = "^8.0"
"""
    lock = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\n{markers}\n'
        for name, version, markers in (
            ("numpy", "1.24.0", "markers = \"python_version < '3.9'\""),
            ("numpy", "2.1.0", "markers = \"python_version >= '3.9'\""),
            ("django", "3.2.25", ""),
            ("django", "5.0.6", ""),
            ("pytest", "8.2.0", ""),
        )
    )
    write(tmp_path, {"pyproject.toml": manifest, "poetry.lock": lock})
    assert versions(tmp_path) == {
        "numpy": "2.1.0",
        "django": "5.0.6",
        "uvloop": "^0.19",
        "greenlet": ">=2.0.0",
        "httpx": "0.27.0",
        "pytest": "8.2.0",
    }


REQUIREMENTS = """\
pytest>=4.6.10,<5 ; python_version < '3'
pytest>=5.4.2,<6 ; python_version >= '3'
winreg==2019.4.13; sys_platform == 'win32'
foo==1.0 ; platform_version == "a;b"
requests==2.23.0 \\
    --hash=sha256:43999036bfa82904b6af1d99e4882b560e5e2c68e5c4b0aa03b655f3d7d73fee \\
    --hash=sha256:b3f43d496c6da4ac0b6d1a1b6c6b0b7d5c7a
django==4.2  # pyup: <5
-e git+https://example.org/encode/httpx.git@0.27.0#egg=httpx
flask @ git+https://example.org/pallets/flask@3.0.0
git+https://example.org/psf/black@23.1.0#egg=black
git+ssh://git@example.org/acme/tool.git@v1.4.2
git+https://example.org/acme/main-only@main
https://example.org/packages/ab/numpy-1.26.4.tar.gz
https://example.org/w/scikit_learn-1.5.0-cp311-cp311-manylinux_2_17_x86_64.whl
pip @ https://example.org/pypa/pip/archive/22.0.2.zip
./local/pkg
-e .
uvicorn[standard]~=0.23.0
--index-url https://example.org/simple
-c constraints.txt
PyYAML===6.0
starlette
"""
REQUIRED = {
    "pytest": ">=5.4.2,<6",
    "requests": "2.23.0",
    "django": "4.2",
    "httpx": "0.27.0",
    "flask": "3.0.0",
    "black": "23.1.0",
    "tool": "1.4.2",
    "main-only": "unknown",
    "numpy": "1.26.4",
    "scikit_learn": "1.5.0",
    "pip": "22.0.2",
    "uvicorn": "~=0.23.0",
    "PyYAML": "6.0",
    "starlette": "0.37.2",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_requirements_with_markers_and_urls_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    files = {"requirements.txt": REQUIREMENTS.encode(encoding), "constraints.txt": b"starlette==0.37.2\n"}
    write(tmp_path, {**files})
    assert versions(tmp_path) == REQUIRED
    assert find_dependencies(tmp_path, {}).warnings == ()


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        ("httpx @ git+https://example.org/encode/httpx@0.27.0", "0.27.0"),
        ("httpx @ git+https://example.org/encode/httpx@releases/v0.27", "0.27"),
        ("httpx @ git+https://example.org/encode/httpx@a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6a1b2", "unknown"),
        ("httpx @ https://example.org/httpx-0.27.0-py3-none-any.whl", "0.27.0"),
        ("httpx[http2]>=0.26; python_version > '3'", ">=0.26"),
        ("httpx>=0.26; python_version < '3'", None),
    ],
)
def test_requirements_in_a_pyproject(tmp_path: Path, specifier: str, version: str | None) -> None:
    write(tmp_path, {"pyproject.toml": f'[project]\nname = "app"\ndependencies = ["{specifier}"]\n'})
    assert versions(tmp_path).get("httpx") == version


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("github:acme/thing#v1.2.3", "v1.2.3"),
        ("git+ssh://git@example.org/acme/thing.git#semver:^1.2", "^1.2"),
        ("acme/thing", "unknown"),
        ("https://example.org/thing/-/thing-1.2.3.tgz", "1.2.3"),
        ("npm:other@^2.0.0", None),
    ],
)
def test_npm_packages_by_url(tmp_path: Path, spec: str, version: str | None) -> None:
    write(tmp_path, {"package.json": f'{{"dependencies": {{"thing": "{spec}"}}}}'})
    assert versions(tmp_path).get("thing") == version


def test_a_crate_by_git_tag(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"Cargo.toml": '[dependencies]\nnix = { git = "https://example.org/nix", tag = "v0.28.0" }\n'},
    )
    assert versions(tmp_path) == {"nix": "0.28.0"}


def test_uv_takes_a_package_from_a_git_tag(tmp_path: Path) -> None:
    manifest = '[project]\ndependencies = ["httpx"]\n[tool.uv.sources]\nhttpx = { git = "https://x/httpx", tag = "0.27.0" }\n'
    write(tmp_path, {"pyproject.toml": manifest})
    assert versions(tmp_path) == {"httpx": "0.27.0"}


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
[plugins]
android = { id = "com.android.application", version.ref = "agp" }
[bundles]
net = ["ktor-client", "okhttp"]
"""


def test_a_version_catalog_of_gradle(tmp_path: Path) -> None:
    catalog = "gradle/libs.versions.toml"
    script = """dependencies {
        implementation(libs.ktor.client)
        implementation(platform(libs.boot.bom))
        runtimeOnly libs.groovy.core.get()
        implementation("io.ktor:ktor-server:${libs.versions.ktor.get()}")
        implementation(libs.no.version)
    }"""
    write(tmp_path, {"build.gradle.kts": script, catalog: CATALOG})
    assert rows(tmp_path) == {
        ("io.ktor:ktor-client-android", "2.3.4", catalog),
        ("org.springframework.boot:spring-boot-dependencies", "3.2.0", catalog),
        ("org.codehaus.groovy:groovy", "3.0.5", catalog),
        ("io.ktor:ktor-server", "2.3.4", "build.gradle.kts"),
        ("androidx.compose.ui:ui", "unknown", catalog),
    }
    assert versions(tmp_path, direct=False)["com.google.code.gson:gson"] == "2.10.1"
    write(tmp_path, {"build.gradle.kts": "dependencies { implementation(libs.bundles.net) }"})
    assert versions(tmp_path) == {
        "io.ktor:ktor-client-android": "2.3.4",
        "com.squareup.okhttp3:okhttp": "4.11.0",
    }
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
ext.okioVersion = '3.9.0'
dependencies { implementation 'org.springframework.boot:spring-boot-starter-web'; api "com.squareup.okio:okio:$okioVersion" }"""
    write(tmp_path, {"gradle/libs.versions.toml": catalog, "build.gradle": script})
    assert versions(tmp_path) == {
        "org.springframework.boot:spring-boot-gradle-plugin": "3.2.4",
        "org.springframework.boot:spring-boot-starter-web": "3.2.4",
        "com.squareup.okio:okio": "3.9.0",
    }
    assert version_of(tmp_path, "Spring Boot", {}) == "3.2.4"
    assert version_of(tmp_path, "kotlin", {}) == "1.9.22"


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
test = pytest; coverage>=7
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


@pytest.mark.parametrize("files", ['"deps/base.in"', '["deps/base.in"]'])
def test_dynamic_dependencies_of_setuptools(tmp_path: Path, files: str) -> None:
    manifest = f"""[project]
name = "x"
dynamic = ["dependencies", "optional-dependencies"]
[tool.setuptools.dynamic]
dependencies = {{ file = {files} }}
optional-dependencies.test = {{ file = ["deps/test.in"] }}
"""
    write(tmp_path, {"pyproject.toml": manifest, "deps/base.in": "flask==3.0\n", "deps/test.in": "pytest\n"})
    assert rows(tmp_path) == {("flask", "3.0", "deps/base.in"), ("pytest", "unknown", "deps/test.in")}


def test_dynamic_dependencies_that_nothing_gives_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": '[project]\nname = "x"\ndynamic = ["dependencies"]\n'})
    (warning,) = find_dependencies(tmp_path, {}).warnings
    assert warning.startswith("pyproject.toml: its dependencies are dynamic")


def test_a_language_has_the_version_of_its_manifest(tmp_path: Path) -> None:
    go = "module x\n\ngo 1.22\n\nrequire github.com/json-iterator/go v1.1.12\n"
    write(tmp_path, {"go.mod": go})
    assert version_of(tmp_path, "go", {}) == version_of(tmp_path, "Golang", {}) == "1.22"
    assert version_of(tmp_path, "github.com/json-iterator/go", {}) == "v1.1.12"
    (row,) = (d for d in find_dependencies(tmp_path, {}).dependencies if d.ecosystem == "go")
    assert row.framework == "github.com/json-iterator/go"
    write(tmp_path, {"go.mod": "module x\n\nrequire github.com/json-iterator/go v1.1.12\n"})
    assert version_of(tmp_path, "go", {}) is None


@pytest.mark.parametrize(
    ("file", "content", "name", "version"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9"', "python", ">=3.9"),
        ("package.json", '{"engines": {"node": ">=20"}}', "node", ">=20"),
        ("composer.json", '{"require": {"php": "^8.2"}}', "php", "^8.2"),
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
        ("go.mod", "module x\nrequire gopkg.in/redis.v5 v5.2.9\n", "redis"),
        ("go.mod", "module x\nrequire github.com/go-sql-driver/mysql v1.8.1\n", "mysql"),
        ("go.mod", "module x\nrequire github.com/docker/docker v26.0.0\n", "Docker"),
        ("package.json", '{"dependencies": {"postgres": "3.4.4"}}', "postgresql"),
        ("composer.json", '{"require": {"acme/sqlite": "1.0"}}', "sqlite"),
    ],
)  # fmt: skip
def test_no_driver_is_taken_for_its_product(tmp_path: Path, file: str, content: str, name: str) -> None:
    write(tmp_path, {file: content})
    assert version_of(tmp_path, name, {}) is None
    assert len(versions(tmp_path)) == 1


NPM_LOCK = '{"lockfileVersion": 3, "packages": {"node_modules/vue": {"version": "3.3.0"}}}'
PNPM_LOCK = (
    "lockfileVersion: '9.0'\nimporters: {.: {dependencies: {vue: {specifier: ^3.4.0, version: 3.4.21}}}}\n"
)
YARN_LOCK = 'vue@^2.0.0:\n  version "2.7.16"\n'


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ('"packageManager": "pnpm@9.1.0"', "3.4.21"),
        ('"packageManager": "npm@10"', "3.3.0"),
        ('"packageManager": "yarn@1.22.22"', "2.7.16"),
        ('"devEngines": {"packageManager": {"name": "yarn"}}', "2.7.16"),
        ('"private": true', "3.4.21"),
        ('"packageManager": "bun@1.1"', "3.4.21"),
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


def test_a_crate_twice_in_the_lock(tmp_path: Path) -> None:
    crate = '[[package]]\nname = "{}"\nversion = "{}"\nsource = "registry"\n'
    lock = "".join(crate.format("rand", v) for v in ("0.7.3", "0.8.5"))
    lock += "".join(crate.format("syn", v) for v in ("1.0.109", "2.0.60"))
    own = '[[package]]\nname = "app"\nversion = "0.1.0"\ndependencies = ["rand 0.7.3", "syn 1.0.109"]\n'
    manifest = '[package]\nname = "app"\n[dependencies]\nrand = ">=0.7"\nsyn = "1.0"\n'
    write(tmp_path, {"Cargo.toml": manifest, "Cargo.lock": lock})
    assert versions(tmp_path) == {"rand": "0.8.5", "syn": "1.0.109"}  # by the range alone
    write(tmp_path, {"Cargo.lock": lock + own})
    assert versions(tmp_path) == {"rand": "0.7.3", "syn": "1.0.109"}
    assert version_of(tmp_path, "rand", {}) == "0.7.3"


def test_a_package_twice_in_an_npm_lock(tmp_path: Path) -> None:
    lock = """{"lockfileVersion": 1, "dependencies": {
        "lodash": {"version": "3.10.1"},
        "other": {"version": "1.0.0", "dependencies": {"lodash": {"version": "4.17.21"}}}}}"""
    write(tmp_path, {"package.json": '{"dependencies": {"lodash": "^3.0.0"}}', "package-lock.json": lock})
    assert versions(tmp_path) == {"lodash": "3.10.1"}
    assert find_dependencies(tmp_path, {}).dependencies[1].version == "4.17.21"


def test_a_childs_property_overrides_its_parents(tmp_path: Path) -> None:
    managed = "<dependency><groupId>x</groupId><artifactId>y</artifactId><version>${y.version}</version></dependency>"
    parent = (
        "<project><groupId>g</groupId><artifactId>top</artifactId><version>1</version>"
        "<properties><y.version>1.0</y.version></properties><modules><module>a</module><module>b</module></modules>"
        f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement></project>"
    )
    child = (
        "<project><parent><groupId>g</groupId><artifactId>top</artifactId><version>1</version></parent>"
        "<artifactId>{}</artifactId>{}<dependencies><dependency><groupId>x</groupId><artifactId>y</artifactId>"
        "</dependency></dependencies></project>"
    )
    own = "<properties><y.version>2.0</y.version></properties>"
    write(
        tmp_path, {"pom.xml": parent, "a/pom.xml": child.format("a", ""), "b/pom.xml": child.format("b", own)}
    )
    assert rows(tmp_path) == {("x:y", "1.0", "a/pom.xml"), ("x:y", "2.0", "b/pom.xml")}
    assert rows(tmp_path / "b") == {("x:y", "2.0", "pom.xml")}


def test_a_package_that_depends_on_its_own_published_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"package.json": '{"name": "thing", "version": "2.0.0", "devDependencies": {"thing": "^1.0.0"}}'},
    )
    assert versions(tmp_path) == {"thing": "^1.0.0"}
    lock = '{"lockfileVersion": 3, "packages": {"node_modules/thing": {"version": "1.4.0"}}}'
    write(tmp_path, {"package-lock.json": lock})
    assert versions(tmp_path) == {"thing": "1.4.0"}
    python = (
        '[project]\nname = "thing"\ndependencies = ["other"]\noptional-dependencies.all = ["thing[a,b]"]\n'
    )
    write(tmp_path / "p", {"pyproject.toml": f'{python}[dependency-groups]\ndev = ["thing<2"]\n'})
    assert versions(tmp_path / "p") == {"other": "unknown", "thing": "<2"}


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
    "name", ["dev-requirements.txt", "requirements_test.txt", "requirements-dev.lock", "requirements.in"]
)
def test_requirements_files_of_other_names(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "flask==3.0.2\n"})
    assert rows(tmp_path) == {("flask", "3.0.2", name)}


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
