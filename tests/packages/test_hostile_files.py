"""Whatever stands in a dependency file, reading it never raises and always says what was wrong."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kr.packages import Dependencies, find_dependencies
from kr.text import one_line
from tests.packages.helpers import DATA
from tests.packages.helpers import write as write_files
from tests.support.dependency_files import DEPENDENCY_FILES

SAMPLES = {file: [p.read_bytes() for p in DATA.rglob(Path(file).name)] or [b""] for file in DEPENDENCY_FILES}


def write(root: Path, file: str, content: bytes) -> None:
    write_files(root, {file: content})


@pytest.mark.parametrize("file", DEPENDENCY_FILES)
def test_a_file_of_50_megabytes(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sparse:
        sparse.truncate(50 * 1024 * 1024)
    assert find_dependencies(tmp_path, {}) == Dependencies((), (f"{file}: it is larger than 16 MiB",))


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("package.json", "[]", "its top level is no mapping"),
        ("pyproject.toml", "[project]\ndependencies = ['a b c']", "'a b c' is no requirement"),
        ("pnpm-lock.yaml", "- a", "its top level is no mapping"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, file: str, content: str, reason: str) -> None:
    write(tmp_path, file, content.encode())
    assert f"{file}: {reason}" in find_dependencies(tmp_path, {}).warnings


def test_a_broken_lock_leaves_the_manifest_usable(tmp_path: Path) -> None:
    write(tmp_path, "package.json", b'{"dependencies": {"vue": "^3.4.0"}}')
    write(tmp_path, "package-lock.json", b'{"lockfileVersion": 3, "packages": {')
    found = find_dependencies(tmp_path, {})
    assert [(d.package, d.version) for d in found.dependencies] == [("vue", "^3.4.0")]
    assert found.warnings[0].startswith("package-lock.json: it is not valid JSON")


def test_entity_bombs_are_refused(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a0 "x">{entities}]><project>&a11;</project>'
    write(tmp_path, "pom.xml", bomb.encode())
    assert "DTDForbidden" in find_dependencies(tmp_path, {}).warnings[0]


@pytest.mark.parametrize("file", ["requirements.txt", "pom.xml", "package.json"])
def test_a_link_that_leads_out_of_the_project_is_not_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret").write_text("the secret word")
    write(tmp_path / "project", ".git/HEAD", b"")
    (tmp_path / "project" / file).symlink_to(tmp_path / "secret")
    (warning,) = find_dependencies(tmp_path / "project", {}).warnings
    assert "outside of the project" in warning
    assert "secret word" not in warning
    (tmp_path / "project" / file).unlink()
    (tmp_path / "project" / file).symlink_to(tmp_path / "project/shared")
    write(tmp_path / "project", "shared", b"{}" if file.endswith("json") else b"<project/>")
    assert not [w for w in find_dependencies(tmp_path / "project", {}).warnings if "outside of" in w]


def test_a_folder_that_leads_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "outside", "secret.txt", b"the secret word")
    write(tmp_path / "project", ".git/HEAD", b"")
    (tmp_path / "project/requirements").symlink_to(tmp_path / "outside")
    (warning,) = find_dependencies(tmp_path / "project", {}).warnings
    assert "outside of the project" in warning


def test_yaml_aliases_do_not_multiply(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    write(tmp_path, "pnpm-lock.yaml", "\n".join([*lines, "packages: *a11"]).encode())
    assert find_dependencies(tmp_path, {}) == Dependencies((), ())


def test_names_that_no_registry_takes_are_left_out(tmp_path: Path) -> None:
    odd = {"": "1", "a b": "1", "x\n": "1", "\ud800": "1", "n" * 301: "1", "good": "\u202e1", "fine": "1"}
    write(tmp_path, "package.json", json.dumps({"dependencies": odd}).encode())
    assert {(d.package, d.version) for d in find_dependencies(tmp_path, {}).dependencies} == {
        ("good", "unknown"),
        ("fine", "1"),
    }


def test_members_outside_and_in_node_modules_are_not_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    patterns = ["../other", "/etc", "node_modules/*", ".git/*", "linked", "a/*"]
    write(project, "package.json", json.dumps({"workspaces": patterns}).encode())
    for place in ("../other", "node_modules/x", ".git/x", "a/node_modules/y"):
        write(project, f"{place}/package.json", b'{"dependencies": {"wrong": "1"}}')
    write(project, "a/b/package.json", b'{"dependencies": {"right": "1"}}')
    (project / "linked").symlink_to(tmp_path / "other")
    assert [d.package for d in find_dependencies(project, {}).dependencies] == ["right"]


@pytest.mark.parametrize(
    "piece",
    ["/* ", '"', "'", "/", '"\\', "{", "a:", "${", "[", '"""', "api 'a:b:1', ", "name: ", "id ", "'${a "],
)
@pytest.mark.parametrize("file", ["build.gradle", "settings.gradle"])
def test_gradle_scripts_are_read_in_linear_time(tmp_path: Path, file: str, piece: str) -> None:
    write(tmp_path, file, ("dependencies {" + piece * 50_000).encode())
    began = time.process_time()
    find_dependencies(tmp_path, {})
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("package.json", '{"dependencies": {"x": "%s1.0"}}' % ("#" * 300_000)),
        ("package.json", '{"dependencies": {"x": "npm:%s"}}' % ("a@" * 150_000)),
        ("requirements.txt", "git+https://x/" + "#" * 300_000),
        ("requirements.txt", "a.-" * 100_000),
        ("yarn.lock", "x@%s:\n  version 1\n" % ("#" * 300_000)),
        ("go.mod", "require x/" + "v1/" * 100_000 + " v1"),
        ("setup.cfg", "[options]\ninstall_requires =" + "; " * 150_000),
    ],
)
def test_long_texts_are_read_in_linear_time(tmp_path: Path, file: str, content: str) -> None:
    write(tmp_path, file, content.encode())
    began = time.process_time()
    find_dependencies(tmp_path, {})
    assert time.process_time() - began < 5


def test_warnings_are_bounded_and_name_no_place_of_the_machine(tmp_path: Path) -> None:
    write(tmp_path, "requirements.txt", b"one two\n" + b"\n".join(b"bad line %d" % i for i in range(500)))
    warnings = find_dependencies(tmp_path, {}).warnings
    assert len(warnings) == 50
    assert not [w for w in warnings if str(tmp_path) in w]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    file=st.sampled_from(DEPENDENCY_FILES),
    content=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(lambda t: t.encode("utf-8", "surrogatepass")),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from("dependencies packages package require project workspaces name".split()),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=15,
        ).map(lambda v: json.dumps(v).encode()),
    ),
)
def test_arbitrary_content_never_raises(file: str, content: bytes) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), file, content)
        found = find_dependencies(Path(folder), {})
        for dependency in found.dependencies:
            assert dependency.package.isprintable()
            assert dependency.version.isprintable()
            assert dependency.version
        assert all(w == one_line(w, 600) for w in found.warnings)
