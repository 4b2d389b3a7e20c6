"""U5: steps 1 to 6, every return field, every row of its error table; and lessons that were handed over."""

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kr.lessons.file import LessonsFile
from kr.lessons.line import HEADER
from kr.lessons.record import confirmation, record
from kr.models import to_plain
from kr.store.engine import Store
from kr.store.files import file_lock
from tests.support.lessons import NOW, inject_from, record_to, record_words, settings_of, start

pytestmark = pytest.mark.usefixtures("database_url")

FILE = ".kr/lessons/_lessons-learned.md"
ISSUE = {"severity": "HIGH", "fix": "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段", "file": "src/List.vue", "line": "85"}  # fmt: skip
WORDS = {
    "symptom": "v-for without a key reuses the wrong row",
    "fix": "give every v-for a key",
    "ref": "src/List.vue:3",
}


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.path)) as plain:
        return plain.execute(query).fetchall()


# --- in the words of who learned ---


def test_handed_over_lessons_keep_both_halves(path: Path, project: Path, store: Store) -> None:
    envelope = record_words(path, project, store, {**WORDS, "tags": ["vue"]})
    assert to_plain(envelope) == {
        "status": "recorded",
        "session_id": "sprint-1",
        "story_key": "3-1",
        "results": {
            "events_detected": 1,
            "entries_recorded": 1,
            "entries_skipped": 0,
            "recorded_entries": [
                {
                    "date": "2026-02-07",
                    "phase": "dev-execution",
                    "event_type": "general_agent_failure",
                    "summary": "v-for without a key reuses the wrong row: give every v-for a key",
                    "ref": "src/List.vue:3",
                }
            ],
            "file_path": FILE,
            "total_entries_in_file": 1,
        },
        "errors": [],
    }
    assert lines(path) == [
        "- [2026-02-07] [dev-execution, vue] v-for without a key reuses the wrong row: give every v-for a key. Ref: src/List.vue:3"
    ]
    assert rows(store, "SELECT source, session_id FROM lessons") == [("agent", "sprint-1")]


def test_what_is_refused_costs_only_itself_and_says_why(path: Path, project: Path, store: Store) -> None:
    long = "set the row height of the table before rows are measured, " * 3
    told = to_plain(record_words(path, project, store, {**WORDS, "fix": long}, WORDS, {"symptom": "no cure"}))
    assert told["status"] == "recorded"
    assert [told["results"][name] for name in ("events_detected", "entries_recorded", "entries_skipped")] == [3, 1, 2]  # fmt: skip
    assert [(error["type"], error["field"]) for error in told["errors"]] == [
        ("validation_error", "lessons[0].fix"),
        ("validation_error", "lessons[2].fix"),
    ]
    assert "173 columns, at most 120" in told["errors"][0]["message"]
    nothing = record_words(path, project, store, {"symptom": "", "fix": "x"}, "prose")
    assert (nothing.status, len(nothing.errors)) == ("skipped", 3)


def test_who_hands_over_nothing_is_told_what_is_missing(path: Path, project: Path, store: Store) -> None:
    answer = record(
        {"session_id": "s", "story_key": "0-0"}, LessonsFile(path, store), settings_of(project), now=NOW
    )
    assert answer.status == "skipped"
    assert "or hand over a lesson: {symptom, fix}" in answer.results["message"]


# --- without words ---


def test_every_field_of_a_recording(path: Path, project: Path, store: Store) -> None:
    envelope = record_to(
        path,
        project,
        store,
        status="needs-intervention",
        errors=["MyBatis-Plus 分页查询必须使用 Page 对象"],
        results={"review_rounds": "10", "issues": [ISSUE]},
        event_type="high_severity_issues",
        phase="code-review",
        code_paths=["src/ProjectMapper.java:23"],
    )
    assert to_plain(envelope)["results"] == {
        "events_detected": 3,
        "entries_recorded": 2,
        "entries_skipped": 1,
        "recorded_entries": [
            {
                "date": "2026-02-07",
                "phase": "code-review",
                "event_type": "review_max_rounds",
                "summary": "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段",
                "ref": "src/List.vue:85",
            },
            {
                "date": "2026-02-07",
                "phase": "code-review",
                "event_type": "agent_needs_intervention",
                "summary": "MyBatis-Plus 分页查询必须使用 Page 对象",
                "ref": "src/ProjectMapper.java:23",
            },
        ],
        "file_path": FILE,
        "total_entries_in_file": 2,
    }
    assert path.read_text(encoding="utf-8") == HEADER + (
        "- [2026-02-07] [code-review] defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段. Ref: src/List.vue:85\n"
        "- [2026-02-07] [code-review] MyBatis-Plus 分页查询必须使用 Page 对象. Ref: src/ProjectMapper.java:23\n"
    )
    assert confirmation(envelope) == "[LESSONS] 2 entries appended to _lessons-learned.md (total: 2 entries)"


def test_a_clean_success_is_skipped_with_the_seeds_words(path: Path, project: Path, store: Store) -> None:
    envelope = record_to(path, project, store, status="success", errors=[])
    assert to_plain(envelope) == {
        "status": "skipped",
        "session_id": "sprint-1",
        "story_key": "3-1",
        "results": {
            "events_detected": 0,
            "entries_recorded": 0,
            "entries_skipped": 0,
            "recorded_entries": [],
            "file_path": "",
            "total_entries_in_file": 0,
            "message": "No recordable error events detected in agent return",
        },
        "errors": [],
    }
    assert confirmation(envelope) is None
    assert not path.exists()


def test_all_duplicates_are_skipped_with_the_seeds_words(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    before = path.read_bytes()
    envelope = record_to(
        path, project, store, errors=["vue-easytable: row-height must be set for virtual scrolling"]
    )
    results = to_plain(envelope)["results"]
    assert envelope.status == "skipped"
    assert results["message"] == "All entries already exist in _lessons-learned.md"
    assert (results["events_detected"], results["entries_skipped"], results["entries_recorded"]) == (1, 1, 0)
    assert (results["file_path"], results["total_entries_in_file"]) == (FILE, 1)
    assert path.read_bytes() == before


def test_the_most_relevant_path_is_the_reference(path: Path, project: Path, store: Store) -> None:
    def ref(error: object, **more: Any) -> Any:
        return record_to(path, project, store, errors=[error], **more).results["recorded_entries"][0]["ref"]

    own = {"message": "CsvReader must close FileInputStream", "file": "b/CsvReader.java", "line": 7}
    assert ref(own, code_paths=["a/Other.java"]) == "b/CsvReader.java:7"
    assert ref("Escape LIKE patterns in UserDao", code_paths=["a/Dao.java:3"]) == "a/Dao.java:3"
    assert ref("Use Page for paging", artifacts=[f"{project}/src/x.py:3"]) == "src/x.py:3"
    assert ref("Give each key a default") is None


def test_a_failed_write_is_a_failure(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    elsewhere = path.rename(project / "elsewhere.md")
    path.symlink_to(elsewhere)
    before = path.read_bytes()
    plain = to_plain(record_to(path, project, store, errors=["Use Page for MyBatis-Plus paging"]))
    assert plain["status"] == "failure"
    assert [(error["type"], error["file_path"]) for error in plain["errors"]] == [
        ("append_write_failed", FILE)
    ]
    assert plain["errors"][0]["message"].startswith("Failed to append lesson entries to file")
    assert plain["results"]["entries_recorded"] == 0
    assert path.read_bytes() == before
    assert rows(store, "SELECT count(*) FROM lessons") == [(1,)]


# --- what the database knows ---

COUNTED = "SELECT phase, lessons, injected, recurred FROM lessons_by_phase"


def test_a_failure_that_came_back_is_counted_and_apart_where_the_lesson_was_given(
    path: Path, project: Path, store: Store
) -> None:
    record_to(path, project, store)
    record_to(path, project, store, session_id="other")
    counts = "SELECT injected, recurred, recurred_after_injection FROM lessons"
    assert rows(store, counts) == [(0, 1, 0)]
    inject_from(path, store, session_id="given")
    record_to(path, project, store, session_id="given")
    record_to(path, project, store, session_id="other")
    assert rows(store, counts) == [(1, 3, 1)]


def test_lines_of_people_are_taken_in_and_gone_ones_kept(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    inject_from(path, store)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "- [2026-03-01] [code-review] by hand\n", encoding="utf-8")
    index = LessonsFile(path, store)
    index.refresh(NOW)
    assert rows(store, COUNTED) == [("code-review", 1, 0, 0), ("dev-execution", 1, 1, 0)]
    path.unlink()
    index.refresh(NOW)
    assert rows(store, COUNTED) == []
    path.write_text(text, encoding="utf-8")
    index.refresh(NOW)
    assert rows(store, COUNTED) == [("dev-execution", 1, 1, 0)]
    path.write_bytes(b"caf\xe9\n")
    record_to(path, project, store, errors=["Use Page for MyBatis-Plus paging"])
    assert rows(store, COUNTED) == [("dev-execution", 1, 0, 0)]
    record_to(path, project, store)
    assert rows(store, COUNTED) == [("dev-execution", 2, 1, 0)]


def test_a_duplicate_of_a_line_by_hand_is_none_of_its_own(path: Path, project: Path, store: Store) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(
        "- [2026-01-01] [dev-execution] KeyError: 'user': look up the key first\n", encoding="utf-8"
    )
    told = record_words(path, project, store, {"symptom": "KeyError: 'user'", "fix": "Look up the key first"})
    assert told.status == "skipped"
    assert rows(store, "SELECT recurred, source FROM lessons") == [(1, None)]


@pytest.mark.effort(20_000, 5_000)
def test_a_recording_costs_the_same_with_a_long_file(tmp_path: Path, effort: int) -> None:
    took = []
    for count in (20, effort):
        path = tmp_path / str(count) / "lessons" / "_lessons-learned.md"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"- [2026-01-01] [dev-execution] case{n} of part{n % 97} fails: set field{n} of table{n % 89}\n" for n in range(count)), encoding="utf-8")  # fmt: skip
        with Store(None, path.parents[1], timeout=20.0) as store:
            record_to(path, tmp_path, store)
            LessonsFile(path, store).refresh(NOW)
            began = time.process_time()
            for n in range(20):
                words = {"symptom": f"zebra{n} of giraffe{n} breaks", "fix": f"feed lion{n} before noon{n}"}
                assert record_words(path, tmp_path, store, words).status == "recorded"
            took.append(time.process_time() - began)
    # A tenth is measured by hand, on a quiet machine: here it must merely not grow with the file.
    assert took[1] < 2 * took[0]


def test_a_database_that_cannot_serve_hinders_nothing(
    path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = project / "kr.db"
    broken.write_bytes(b"no database at all" * 100)
    with caplog.at_level(logging.WARNING), Store(f"sqlite:///{broken}", project, timeout=1.0) as store:
        assert record_to(path, project, store).status == "recorded"
        assert record_to(path, project, store).status == "skipped"
    assert "not counted" in caplog.text
    assert len(lines(path)) == 1


def test_a_file_that_others_hold_is_a_failure_in_time(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    with file_lock(path.parent / f".{path.name}.lock", timeout=5):
        answer = record_to(path, project, store, lock_timeout=0.05, errors=["KeyError: 'user'"])
    assert (answer.status, answer.errors[0].type) == ("failure", "append_write_failed")
    assert len(lines(path)) == 1


RECORDER = """
import sys
from pathlib import Path
from kr.store.engine import Store
from tests.support.lessons import record_words
path, project, number = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with Store(None, path.parents[1], timeout=60.0) as store:
    sys.stdin.readline()
    words = {"symptom": f"unknown field colour{number} in Shop{number}", "fix": f"declare colour{number}"}
    print(record_words(path, project, store, words, session_id=f"s-{number}").status)
"""


@pytest.mark.processes
@pytest.mark.effort(64, 6)
def test_recorders_at_once_lose_no_line_and_no_origin(
    path: Path, project: Path, store: Store, effort: int
) -> None:
    record_to(path, project, store)
    started = [start(RECORDER, path, project, number) for number in range(effort)]
    answers = [process.communicate("go\n", timeout=110) for process in started]
    assert [(out.strip(), err) for out, err in answers] == [("recorded", "")] * len(started)
    found = rows(
        store, "SELECT session_id FROM lessons WHERE session_id LIKE 's-%' AND event_type IS NOT NULL"
    )
    assert {session for (session,) in found} == {f"s-{number}" for number in range(effort)}
    assert sum("colour" in line for line in lines(path)) == len(started)
