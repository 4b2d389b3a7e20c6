"""Where the configuration comes from: discovery, roots, paths and placeholders (SPEC 7)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kr.errors import ConfigError, KrError
from kr.settings import Settings, load_settings

OURS = "knowledge_research: {max_entries: 7}\n"


def write(path: Path, text: str | bytes = OURS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def load(
    cwd: Path, *, config: str | None = None, kb: str | None = None, environ: dict[str, str] | None = None
) -> Settings:
    return load_settings(
        config=None if config is None else Path(config),
        knowledge_base=None if kb is None else Path(kb),
        environ=environ or {},
        cwd=cwd,
    )


def refused(cwd: Path, *, config: str | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(cwd, config=config, environ=environ)
    return str(caught.value)


def test_without_a_file_the_defaults_hold_and_the_root_is_the_working_directory(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.config_file is None
    assert settings.project_root == tmp_path
    assert settings.knowledge_base == tmp_path / "_bmad-output/knowledge-base"
    assert settings.knowledge_research.max_entries == 200
    assert settings.database_url is None
    assert settings.warnings == ()


@pytest.mark.parametrize("mark", ["_bmad-output", "_bmad", ".git"])
def test_without_a_file_the_root_is_the_nearest_folder_that_looks_like_one(tmp_path: Path, mark: str) -> None:
    deep = tmp_path / "src/main/java/com"
    deep.mkdir(parents=True)
    assert load(deep).project_root == deep
    (tmp_path / mark).mkdir()
    assert load(deep).project_root == tmp_path
    assert load(deep).knowledge_base == tmp_path / "_bmad-output/knowledge-base"
    (tmp_path / "src/.git").write_text("gitdir: elsewhere\n")
    assert load(deep).project_root == tmp_path / "src"


@pytest.mark.parametrize("name", ["kr.yaml", "_bmad/bso/config.yaml", "config.yaml"])
def test_a_file_is_found_from_within_the_project(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name)
    (tmp_path / "src/deep").mkdir(parents=True)
    settings = load(tmp_path / "src/deep")
    assert settings.config_file == file
    assert settings.project_root == tmp_path
    assert settings.knowledge_base == tmp_path / "_bmad-output/knowledge-base"
    assert settings.knowledge_research.max_entries == 7


def test_the_nearest_folder_comes_first_and_in_it_the_order_of_names(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    write(tmp_path / "kr.yaml")
    files = [write(inner / name) for name in ("kr.yaml", "_bmad/bso/config.yaml", "config.yaml")]
    for file in files:
        assert load(inner).config_file == file
        file.unlink()
    assert load(inner).config_file == tmp_path / "kr.yaml"


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_named_as_ours_and_is_no_file_is_passed_over_with_a_warning(
    tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "kr.yaml"
    if kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(tmp_path / "nothing")
    settings = load(tmp_path)
    assert settings.config_file is None
    (warning,) = settings.warnings
    reason = "not a file" if kind == "folder" else "a link to nothing"
    assert warning == f"{file} was passed over: it is {reason}"


@pytest.mark.parametrize(
    ("foreign", "reason"),
    [
        ("theirs: 1\n", "no knowledge_research section"),
        ("", "no knowledge_research section"),
        ("? [a, list]\n: as a key\n", "no knowledge_research section"),
        ("- a list\n", "not a mapping"),
        ("a: [\n", "not valid YAML: line 1"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        (b"\xff\x00", "not UTF-8"),
        ("[" * 100_000, "nested deeper"),
        ('a: "\\U00110000"', "not valid YAML"),
    ],
)
def test_somebody_elses_config_is_passed_over_with_a_warning(
    tmp_path: Path, foreign: str | bytes, reason: str
) -> None:
    passed = write(tmp_path / "project/config.yaml", foreign)
    ours = write(tmp_path / "kr.yaml")
    settings = load(tmp_path / "project")
    assert settings.config_file == ours
    (warning,) = settings.warnings
    assert str(passed) in warning
    assert reason in warning


def test_a_foreign_file_may_hold_anything_beside_our_section(tmp_path: Path) -> None:
    write(
        tmp_path / "config.yaml",
        "a: &x !theirs [1, *x]\nb: {? [k] : v}\nknowledge_research:\n  max_entries: 7\n",
    )
    assert load(tmp_path).knowledge_research.max_entries == 7


@pytest.mark.parametrize("name", ["kr.yaml", "_bmad/bso/config.yaml"])
def test_a_broken_file_of_our_own_is_an_error(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, "a: [\n")
    message = refused(tmp_path)
    assert str(file) in message
    assert "line 1, column" in message


def test_a_folder_of_the_name_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "kr.yaml").mkdir()
    assert load(tmp_path).config_file is None


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("a: 1\n b: 2\n", "not valid YAML: line 2, column 3"),
        ("- a list", "not a mapping of keys to values"),
        ("words", "not a mapping"),
        (b"a: \xff", "not UTF-8"),
        ("a: 1\n---\nb: 1", "not valid YAML: line 2"),
        ("[" * 100_000, "nested deeper than 64"),
        ("a: 1\n" * 300_000, "larger than"),
        ("knowledge_research: !mine {}", "line 1, column 21: the tag !mine"),
        ("knowledge_research: {? [a] : 1}", "line 1, column 24: a key must be text"),
        ("knowledge_research: &a {b: *a}", "aliases"),
        ("knowledge_research:\n  <<: 5", "line 2, column 3: << takes mappings only"),
    ],
)
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_named_file_that_is_no_configuration_is_an_error(
    tmp_path: Path, by: str, content: str | bytes, part: str
) -> None:
    file = write(tmp_path / "mine.yml", content)
    if by == "option":
        message = refused(tmp_path, config="mine.yml")
    else:
        message = refused(tmp_path, environ={"KR_CONFIG": "mine.yml"})
        assert message.startswith("KR_CONFIG: ")
    assert str(file) in message
    assert part in message


def test_a_named_file_that_is_not_there_or_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KrError, match=r"none\.yaml: can't be read: No such file or directory"):
        load(tmp_path, config="none.yaml")
    assert "is a folder, not a file" in refused(tmp_path, config=".")
    assert "is not the path of a file" in refused(tmp_path, config="a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_error_when_ours_and_passed_over_when_not(tmp_path: Path) -> None:
    write(tmp_path / "config.yaml").chmod(0)
    assert "not readable (Permission denied)" in load(tmp_path).warnings[0]
    assert "not readable" in refused(tmp_path, config="config.yaml")


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "~\n", "knowledge_research:\n", "\ufeffknowledge_research: {}\n"]
)
def test_a_named_file_may_be_empty(tmp_path: Path, text: str) -> None:
    write(tmp_path / "mine.yaml", text)
    settings = load(tmp_path, config="mine.yaml")
    assert settings.knowledge_research.max_entries == 200
    assert settings.warnings == ()


def test_the_option_comes_before_the_variable_before_the_search(tmp_path: Path) -> None:
    write(tmp_path / "kr.yaml")
    by_variable = write(tmp_path / "a/v.yaml", "defaults: {parallel: 2}")
    by_option = write(tmp_path / "b/o.yaml", "defaults: {parallel: 3}")
    environ = {"KR_CONFIG": str(by_variable)}
    assert load(tmp_path, environ=environ).config_file == by_variable
    settings = load(tmp_path, config="b/o.yaml", environ=environ)
    assert settings.config_file == by_option
    assert settings.project_root == tmp_path / "b"
    assert load(tmp_path, environ={"KR_CONFIG": ""}).config_file == tmp_path / "kr.yaml"


def test_the_root_of_a_named_file_below_bmad_is_the_folder_above(tmp_path: Path) -> None:
    write(tmp_path / "p/_bmad/bso/config.yaml")
    (tmp_path / "elsewhere").mkdir()
    settings = load(tmp_path / "elsewhere", config="../p/_bmad/bso/config.yaml")
    assert settings.project_root == tmp_path / "p"


def test_a_linked_bmad_folder_lies_in_the_project_that_links_it(tmp_path: Path) -> None:
    write(tmp_path / "shared/bso/config.yaml")
    (tmp_path / "p").mkdir()
    (tmp_path / "p/_bmad").symlink_to(tmp_path / "shared")
    assert load(tmp_path / "p").project_root == tmp_path / "p"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("kb", "project/kb"),
        ("./a/../kb", "project/kb"),
        ("../kb", "kb"),
        ("'{project-root}/kb'", "project/kb"),
        ("'{output_folder}/kb'", "project/_bmad-output/kb"),
        ("~/kb", "home/kb"),
        ("'~'", "home"),
        ("2.10", "project/2.10"),
        ("yes", "project/yes"),
    ],
)
def test_the_knowledge_base_in_the_file_is_relative_to_the_project(
    tmp_path: Path, written: str, folder: str
) -> None:
    write(tmp_path / "project/kr.yaml", f"knowledge_research:\n  knowledge_base_path: {written}\n")
    (tmp_path / "project/src").mkdir()
    settings = load(tmp_path / "project/src", environ={"HOME": str(tmp_path / "home")})
    assert settings.knowledge_base == tmp_path / folder


def test_an_absolute_knowledge_base_stays(tmp_path: Path) -> None:
    write(tmp_path / "kr.yaml", f"knowledge_research: {{knowledge_base_path: {tmp_path}/x}}")
    assert load(tmp_path).knowledge_base == tmp_path / "x"


def test_variable_and_option_are_relative_to_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "kr.yaml", "knowledge_research: {knowledge_base_path: from-file}")
    (tmp_path / "src").mkdir()
    environ = {"KR_KNOWLEDGE_BASE_PATH": "from-variable"}
    assert load(tmp_path / "src").knowledge_base == tmp_path / "from-file"
    assert load(tmp_path / "src", environ=environ).knowledge_base == tmp_path / "src/from-variable"
    assert (
        load(tmp_path / "src", kb="from-option", environ=environ).knowledge_base
        == tmp_path / "src/from-option"
    )
    braces = {"KR_KNOWLEDGE_BASE_PATH": "{project-root}/kb"}
    assert load(tmp_path / "src", environ=braces).knowledge_base == tmp_path / "kb"


def test_the_knowledge_base_is_resolved_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert load(tmp_path, kb="link").knowledge_base == tmp_path / "real"


@pytest.mark.parametrize(
    ("file", "bmm", "folder"),
    [
        ("output_folder: out\n", "output_folder: theirs\n", "out"),
        ("output_folder: '{project-root}/out'\n", None, "out"),
        ("", "output_folder: '{project-root}/theirs'\n", "theirs"),
        ("", "other: 1\n", "_bmad-output"),
        ("", "- list\n", "_bmad-output"),
        ("output_folder:\n", None, "_bmad-output"),
    ],
)
def test_the_output_folder(tmp_path: Path, file: str, bmm: str | None, folder: str) -> None:
    write(tmp_path / "kr.yaml", file + "knowledge_research: {knowledge_base_path: '{output_folder}/kb'}\n")
    if bmm is not None:
        write(tmp_path / "_bmad/bmm/config.yaml", bmm)
    settings = load(tmp_path)
    assert settings.knowledge_base == tmp_path / folder / "kb"
    assert len(settings.warnings) == (1 if bmm == "- list\n" else 0)


def test_other_placeholders_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "kr.yaml", "knowledge_research:\n  knowledge_base_path: '{planning}/kb'\n")
    message = refused(tmp_path)
    assert message == (
        f"{file}, line 2: knowledge_research.knowledge_base_path holds {{planning}}; "
        "only {project-root} and {output_folder} are expanded"
    )
    assert load(tmp_path, kb="other").knowledge_base == tmp_path / "other"


def test_the_persona_may_be_a_path_in_the_project(tmp_path: Path) -> None:
    write(tmp_path / "kr.yaml", "role_mapping: {knowledge_researcher_persona: '{project-root}/me.md'}")
    assert load(tmp_path).role_mapping.knowledge_researcher_persona == f"{tmp_path}/me.md"


def test_keys_given_twice_are_told(tmp_path: Path) -> None:
    file = write(tmp_path / "kr.yaml", "knowledge_research:\n  max_entries: 1\n  max_entries: 2\n")
    settings = load(tmp_path)
    assert settings.knowledge_research.max_entries == 2
    assert settings.warnings == (
        f"{file}, line 3: knowledge_research.max_entries is given more than once; the last one counts",
    )


def test_anchors_and_merge_keys_are_read(tmp_path: Path) -> None:
    write(
        tmp_path / "kr.yaml",
        "base: &base {failures: 5, pause_seconds: 5}\nknowledge_research:\n  circuit_breaker:\n    pause_seconds: 9\n    <<: *base\n",
    )
    breaker = load(tmp_path).knowledge_research.circuit_breaker
    assert (breaker.failures, breaker.pause_seconds) == (5, 9)


def test_aliases_can_not_grow_without_end(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    write(tmp_path / "kr.yaml", "\n".join([*lines, "knowledge_research: {repositories: {x: *a8}}"]))
    assert "aliases" in refused(tmp_path)


def test_a_fresh_import_loads_neither_yaml_nor_pydantic() -> None:
    program = "import sys, kr.settings; sys.exit('yaml' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
