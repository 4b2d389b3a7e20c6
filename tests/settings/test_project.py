"""Where a project, its configuration file and its knowledge base are; nothing is made by looking."""

import subprocess
from pathlib import Path

import pytest

from kr.errors import KrError
from kr.settings import Settings, load_settings

OURS = "knowledge_research: {max_entries: 7}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def write(path: Path, text: str | bytes = OURS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def load(cwd: Path, *, config: str | None = None, kb: str | None = None, **environ: str) -> Settings:
    before = sorted(cwd.rglob("*"))
    environ = {"HOME": "/nonexistent/home", **environ}
    settings = load_settings(config=config, knowledge_base=kb, environ=environ, cwd=cwd)
    assert sorted(cwd.rglob("*")) == before
    return settings


def refused(cwd: Path, *, config: str | None = None, **environ: str) -> str:
    with pytest.raises(KrError) as caught:
        load(cwd, config=config, **environ)
    return str(caught.value)


class TestWithoutAProject:
    def test_the_knowledge_base_is_the_users_own(self, folder: Path, tmp_path: Path) -> None:
        settings = load(folder, HOME=str(tmp_path / "home"))
        assert (settings.config_file, settings.project_root) == (None, folder)
        assert settings.knowledge_base == tmp_path / "home/.local/share/kr"
        assert load(folder, XDG_DATA_HOME="/data").knowledge_base == Path("/data/kr")
        assert not (tmp_path / "home").exists()

    def test_without_a_home_the_knowledge_base_must_be_named(self, folder: Path) -> None:
        assert "name the knowledge base with --kb" in refused(folder, HOME="")
        assert load(folder, HOME="", kb="mine").knowledge_base == folder / "mine"


class TestRoot:
    @pytest.mark.parametrize(
        "mark", [".git", "package.json", "pyproject.toml", "go.mod", "pom.xml", "Gemfile"]
    )
    def test_a_checkout_or_a_dependency_file_makes_a_project(self, folder: Path, mark: str) -> None:
        write(folder / mark, "")
        (folder / "src/deep").mkdir(parents=True)
        settings = load(folder / "src/deep")
        assert (settings.project_root, settings.knowledge_base) == (folder, folder / ".kr")

    @pytest.mark.parametrize("mark", ["_bmad", "_bmad-output"])
    def test_a_bmad_project_keeps_it_with_bmads_output(self, folder: Path, mark: str) -> None:
        (folder / mark).mkdir()
        (folder / "src").mkdir()
        assert load(folder / "src").knowledge_base == folder / "_bmad-output/knowledge-base"


class TestWorktrees:
    @pytest.fixture
    def main(self, folder: Path) -> Path:
        git(folder, "init", "-q", "main")
        write(folder / "main/apps/shop/kr.yaml", "knowledge_research: {knowledge_base_path: kb}")
        git(folder / "main", "add", ".")
        git(folder / "main", "commit", "-qm", "first")
        return folder / "main"

    @pytest.mark.parametrize("options", [[], ["-c", "worktree.useRelativePaths=true"]])
    def test_all_share_the_main_checkouts(self, main: Path, options: list[str]) -> None:
        git(main, *options, "worktree", "add", "-q", "../other")
        other = main.parent / "other"
        assert load(other).knowledge_base == load(main).knowledge_base == main / ".kr"
        assert load(other).project_root == other
        assert load(other / "apps/shop").knowledge_base == main / "apps/shop/kb"
        write(other / "new/kr.yaml")
        assert load(other / "new").knowledge_base == main / ".kr"
        write(
            other / "_bmad/bso/config.yaml", "knowledge_research: {knowledge_base_path: '{output_folder}/kb'}"
        )
        assert load(other).knowledge_base == main / "_bmad-output/kb"

    def test_a_file_of_the_main_checkout_that_is_not_committed_counts(self, main: Path) -> None:
        git(main, "worktree", "add", "-q", "../other")
        file = write(main / "kr.yaml", "knowledge_research: {knowledge_base_path: kb}")
        settings = load(main.parent / "other")
        assert (settings.config_file, settings.project_root) == (file, main.parent / "other")
        assert settings.knowledge_base == main / "kb"

    def test_a_bare_repository_with_its_worktrees_beside_it(self, main: Path) -> None:
        beside = main.parent / "beside"
        git(main.parent, "clone", "-q", "--bare", "main", "beside/.bare")
        write(beside / ".git", "gitdir: ./.bare\n")
        git(beside, "worktree", "add", "-q", "one")
        assert load(beside / "one").knowledge_base == beside / ".kr"
        git(main.parent, "clone", "-q", "--bare", "main", "alone.git")
        git(main.parent / "alone.git", "worktree", "add", "-q", "../far")
        assert load(main.parent / "far").knowledge_base == main.parent / "far/.kr"

    @pytest.mark.parametrize(
        "text", ["gitdir: ../gone\n", "gitdir: ../main/.git\n", "", "junk\n", b"gitdir: \0\n", b"\xff\xfe"]
    )
    def test_a_git_file_that_leads_to_no_worktree_is_no_worktree(self, main: Path, text: str | bytes) -> None:
        write(main.parent / "other/.git", text)
        assert load(main.parent / "other").knowledge_base == main.parent / "other/.kr"

    def test_a_git_file_cannot_send_the_knowledge_base_elsewhere(self, main: Path) -> None:
        write(main.parent / "other/.git", "gitdir: evil\n")
        write(main.parent / "other/evil/commondir", str(main / ".git"))
        assert load(main.parent / "other").knowledge_base == main.parent / "other/.kr"


def git(cwd: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)


class TestFiles:
    def test_the_nearest_folder_comes_first_and_in_it_the_order_of_names(self, folder: Path) -> None:
        write(folder / "kr.yaml")
        inner = folder / "inner"
        files = [write(inner / name) for name in ("kr.yaml", "_bmad/bso/config.yaml", "config.yaml")]
        for file in files:
            assert load(inner).config_file == file
            file.unlink()
        assert load(inner).config_file == folder / "kr.yaml"

    @pytest.mark.parametrize(
        "foreign", ["theirs: 1\n", "# knowledge_research\na: 1\n", "a: [\n", b"\xff\x00", "[" * 100_000]
    )
    def test_another_programs_config_is_passed_over(self, folder: Path, foreign: str | bytes) -> None:
        write(folder / "inner/config.yaml", foreign)
        ours = write(folder / "kr.yaml")
        settings = load(folder / "inner")
        assert (settings.config_file, settings.warnings) == (ours, ())

    @pytest.mark.parametrize(
        ("content", "part"),
        [
            ("a: 1\n b: 2\n", "not valid YAML: line 2"),
            (b"a: \xff", "not UTF-8 text (byte 3)"),
            ("knowledge_research:\n  max_entries: 1\n  max_entries: 2\n", "line 3, column 3: this key is given twice"),
        ],
    )  # fmt: skip
    def test_a_file_of_ours_that_is_no_configuration_is_an_error(
        self, folder: Path, content: str | bytes, part: str
    ) -> None:
        file = write(folder / "kr.yaml", content)
        message = refused(folder)
        assert message.startswith(f"{file}: ")
        assert part in message

    def test_a_named_file_that_is_not_there_or_a_folder_is_an_error(self, folder: Path) -> None:
        assert "none.yaml: can't be read: No such file" in refused(folder, config="none.yaml")
        assert "can't be read: Is a directory" in refused(folder, config=".")
        assert "can't be read" in refused(folder, config="a\0b")
        (folder / "kr.yaml").mkdir()
        assert load(folder).config_file is None

    def test_the_option_comes_before_the_variable_before_the_search(self, folder: Path) -> None:
        write(folder / "kr.yaml")
        by_variable, by_option = write(folder / "a/v.yaml"), write(folder / "b/o.yaml")
        assert load(folder, KR_CONFIG=str(by_variable)).config_file == by_variable
        settings = load(folder, config="b/o.yaml", KR_CONFIG=str(by_variable))
        assert (settings.config_file, settings.project_root) == (by_option, folder / "b")
        assert load(folder, KR_CONFIG="").config_file == folder / "kr.yaml"


class TestKnowledgeBasePath:
    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("kb", "project/kb"),
            ("../kb", "kb"),
            ("'{project-root}/kb'", "project/kb"),
            ("'{output_folder}/kb'", "project/_bmad-output/kb"),
            ("~/kb", "home/kb"),
            ("/abs/kb", "/abs/kb"),
        ],
    )
    def test_in_the_file_it_is_relative_to_the_project(
        self, folder: Path, written: str, expected: str
    ) -> None:
        write(folder / "project/kr.yaml", f"knowledge_research:\n  knowledge_base_path: {written}\n")
        (folder / "project/src").mkdir()
        settings = load(folder / "project/src", config="../kr.yaml", HOME=str(folder / "home"))
        assert settings.knowledge_base == folder / expected

    def test_variable_and_option_are_relative_to_the_working_directory(self, folder: Path) -> None:
        write(folder / "kr.yaml", "knowledge_research: {knowledge_base_path: from-file}")
        src = folder / "src"
        src.mkdir()
        assert load(src, KR_KNOWLEDGE_BASE_PATH="mine").knowledge_base == src / "mine"
        assert load(src, KR_KNOWLEDGE_BASE_PATH="{project-root}/kb").knowledge_base == folder / "kb"
        named = load(src, kb="named", KR_KNOWLEDGE_BASE_PATH="mine", KR_DATABASE_URL="sqlite:///elsewhere.db")
        assert (named.knowledge_base, named.database_url) == (src / "named", None)

    def test_other_placeholders_are_refused(self, folder: Path) -> None:
        file = write(folder / "kr.yaml", "knowledge_research:\n  knowledge_base_path: '{planning}/kb'\n")
        assert refused(folder) == (
            f"{file}: knowledge_research.knowledge_base_path holds {{planning}}; "
            "only {project-root} and {output_folder} are expanded"
        )


OUTPUT = "knowledge_research: {knowledge_base_path: '{output_folder}/kb'}\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("output_folder: out\n", {"bmm/config.yaml": "output_folder: theirs\n"}, "out"),
        ("", {"bmm/config.yaml": "output_folder: '{project-root}/theirs'\n"}, "theirs"),
        ("", {"config.toml": '[core]\noutput_folder = "{project-root}//abs"\n'}, "/abs"),
        (
            "",
            {"core/config.yaml": "output_folder: old\n", "config.toml": 'output_folder = "theirs"\n'},
            "theirs",
        ),
        (
            "output_folder: '{output_folder}/kr'\n",
            {"config.toml": '[core]\noutput_folder = "/abs"\n'},
            "/abs/kr",
        ),
    ],
)
def test_bmads_output_folder(folder: Path, ours: str, theirs: dict[str, str], expected: str) -> None:
    write(folder / "_bmad/bso/config.yaml", ours + OUTPUT)
    for name, text in theirs.items():
        write(folder / "_bmad" / name, text)
    settings = load(folder, config="_bmad/bso/config.yaml")
    assert (settings.knowledge_base, settings.warnings) == (folder / expected / "kb", ())
