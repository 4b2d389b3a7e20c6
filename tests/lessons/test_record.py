"""U5 of seed 003: steps 1 to 6, every return field, every row of its error table."""

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kr.contracts.lessons import parse_record, skip
from kr.errors import InvalidRequest
from kr.lessons.book import LessonBook
from kr.lessons.counts import LessonCounts
from kr.lessons.file import Candidate, LessonsFile
from kr.lessons.line import HEADER
from kr.lessons.record import confirmation
from kr.lessons.returned import Limits
from kr.store.lock import exclusive
from kr.store.store import Store
from tests.support.lessons import NOW, inject_from, record_data, record_to, start

FILE = "_bmad-output/knowledge-base/lessons/_lessons-learned.md"
ISSUE = {
    "severity": "HIGH",
    "fix": "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段",
    "file": "src/List.vue",
    "line": "85",
}


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.path)) as plain:
        return plain.execute(query).fetchall()


def test_every_field_of_a_recording(path: Path, project: Path) -> None:
    envelope = record_to(
        path,
        project,
        status="needs-intervention",
        errors=["MyBatis-Plus 分页查询必须使用 Page 对象"],
        results={"review_rounds": "10", "issues": [ISSUE]},
        event_type="high_severity_issues",
        phase="code-review",
        code_paths=["src/ProjectMapper.java:23"],
    )
    assert envelope.plain() == {
        "status": "recorded",
        "session_id": "sprint-1",
        "story_key": "3-1",
        "results": {
            "events_detected": 3,
            "entries_recorded": 2,
            "entries_skipped": 1,
            "recorded_entries": [
                {
                    "date": "2026-02-07",
                    "phase": "code-review",
                    "event_type": "review_max_rounds",
                    "summary": "MyBatis-Plus 分页查询必须使用 Page 对象",
                    "ref": "src/ProjectMapper.java:23",
                },
                {
                    "date": "2026-02-07",
                    "phase": "code-review",
                    "event_type": "high_severity_issues",
                    "summary": "defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段",
                    "ref": "src/List.vue:85",
                },
            ],
            "file_path": FILE,
            "total_entries_in_file": 2,
        },
        "errors": [],
    }
    assert path.read_text(encoding="utf-8") == HEADER + (
        "- [2026-02-07] [code-review] MyBatis-Plus 分页查询必须使用 Page 对象. Ref: src/ProjectMapper.java:23\n"
        "- [2026-02-07] [code-review] defHttp 已自动拆包 ApiResponse，不要重复访问 .result 字段. Ref: src/List.vue:85\n"
    )
    assert confirmation(envelope) == "[LESSONS] 2 entries appended to _lessons-learned.md (total: 2 entries)"


def test_a_clean_success_is_skipped_with_the_seeds_words(path: Path, project: Path) -> None:
    envelope = record_to(path, project, status="success", errors=[])
    assert envelope.plain() == {
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


def test_all_duplicates_are_skipped_with_the_seeds_words(path: Path, project: Path) -> None:
    record_to(path, project)
    before = path.read_bytes()
    envelope = record_to(
        path, project, errors=["vue-easytable: row-height must be set for virtual scrolling"]
    )
    results = envelope.plain()["results"]
    assert envelope.status == "skipped"
    assert results["message"] == "All entries already exist in _lessons-learned.md"
    assert (results["events_detected"], results["entries_skipped"], results["entries_recorded"]) == (1, 1, 0)
    assert (results["file_path"], results["total_entries_in_file"]) == (FILE, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("field", ["session_id", "story_key", "phase", "event_type", "agent_return"])
@pytest.mark.parametrize("wrong", [None, "", [], "nonsense-\n", {}])
def test_wrong_input_is_refused_by_field(field: str, wrong: object) -> None:
    if field == "session_id" and wrong == "nonsense-\n":
        return
    with pytest.raises(InvalidRequest) as refused:
        parse_record({**record_data(), field: wrong})
    assert [error.field for error in refused.value.fields] == [field]


def test_all_bad_fields_are_told_at_once() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_record({})
    assert {error.field for error in refused.value.fields} == {
        "session_id", "story_key", "phase", "event_type", "agent_return",
    }  # fmt: skip
    answer = skip({"story_key": ["odd"]}).plain()
    assert (answer["status"], answer["story_key"], answer["session_id"]) == ("skipped", ["odd"], None)
    assert answer["errors"] == []


@pytest.mark.parametrize("status", [None, "", "  ", [], {}])
def test_a_return_without_a_status_is_refused(status: object) -> None:
    with pytest.raises(InvalidRequest, match="status"):
        parse_record({**record_data(), "agent_return": {"status": status, "summary": "s"}})


def test_odd_optional_fields_stop_nothing(path: Path, project: Path) -> None:
    parsed = parse_record(
        {
            **record_data(),
            "code_paths": "src/a.py",
            "framework_context": ["vue", 3],
            "additional_context": {"a": 1},
            "more": 1,
        }
    )
    assert parsed.request.code_paths == ("src/a.py",)
    assert parsed.request.framework_context == "vue, 3"
    assert parsed.request.additional_context == ""
    assert parsed.warnings == ('unknown key ignored: "more"',)
    assert record_to(path, project, code_paths=[None, {"a": 1}, ""]).results.recorded_entries[0].ref is None


def test_more_than_three_events_are_cut(path: Path, project: Path, caplog: pytest.LogCaptureFixture) -> None:
    envelope = record_to(
        path,
        project,
        status="needs-intervention",
        errors=["Use Page for MyBatis-Plus", "Close FileInputStream in CsvReader"],
        results={"review_rounds": 99, "issues": [ISSUE]},
    )
    assert (
        envelope.results.events_detected,
        envelope.results.entries_recorded,
        envelope.results.entries_skipped,
    ) == (4, 3, 1)
    assert "4 events detected" in caplog.text
    assert [entry.event_type for entry in envelope.results.recorded_entries] == [
        "review_max_rounds",
        "high_severity_issues",
        "agent_needs_intervention",
    ]


REVIEWED: dict[str, Any] = {
    "status": "needs-intervention",
    "errors": ["AC-3 必须写明 P95 响应时间"],
    "results": {"review_rounds": 10},
}


def test_one_finding_is_one_lesson_in_a_phase(path: Path, project: Path) -> None:
    envelope = record_to(path, project, **REVIEWED, phase="code-review", event_type="review_max_rounds")
    assert (envelope.results.events_detected, envelope.results.entries_skipped) == (2, 1)
    assert [entry.event_type for entry in envelope.results.recorded_entries] == ["review_max_rounds"]


def test_one_finding_is_a_lesson_in_each_phase_that_it_happened_in(path: Path, project: Path) -> None:
    envelope = record_to(path, project, **REVIEWED, phase="story-review", event_type="review_max_rounds")
    results = envelope.results
    assert (results.events_detected, results.entries_recorded, results.entries_skipped) == (2, 2, 0)
    assert [(entry.phase, entry.event_type) for entry in results.recorded_entries] == [
        ("code-review", "review_max_rounds"),
        ("story-review", "agent_needs_intervention"),
    ]
    assert {entry.summary for entry in results.recorded_entries} == {"AC-3 必须写明 P95 响应时间"}
    for phase in ("code-review", "story-review"):
        assert "P95" in (inject_from(path, phase).results or {})["injection_block"]
    again = record_to(path, project, **REVIEWED, phase="story-review", event_type="review_max_rounds")
    assert (again.status, again.results.entries_skipped) == ("skipped", 2)


def test_another_phase_gets_the_best_text_too(path: Path, project: Path) -> None:
    told = record_to(
        path,
        project,
        errors=[],
        summary="failed",
        results={"issues": [{"severity": "high", "fix": "Set readinessProbe.httpGet.path to /health"}]},
        phase="e2e-inspection",
        event_type="e2e_verification_failure",
    )
    assert [(entry.phase, entry.summary) for entry in told.results.recorded_entries] == [
        ("code-review", "Set readinessProbe.httpGet.path to /health"),
        ("e2e-inspection", "Set readinessProbe.httpGet.path to /health"),
    ]
    own = record_to(
        path,
        project,
        errors=["Use Page for MyBatis-Plus paging"],
        results={"issues": [{"severity": "high", "fix": "Bind :id in UserDao.find"}]},
    )
    assert [(entry.phase, entry.summary) for entry in own.results.recorded_entries] == [
        ("code-review", "Bind :id in UserDao.find"),
        ("dev-execution", "Use Page for MyBatis-Plus paging"),
    ]


def test_what_tells_nothing_is_skipped(path: Path, project: Path, caplog: pytest.LogCaptureFixture) -> None:
    envelope = record_to(path, project, errors=["failed"], summary="Agent failed")
    results = envelope.results
    assert envelope.status == "skipped"
    assert (results.events_detected, results.entries_recorded, results.entries_skipped) == (1, 0, 1)
    assert "No lesson could be distilled" in (results.message or "")
    assert "general_agent_failure" in caplog.text
    slips = (
        ["tar: You must specify one of the '-Acdtrux' options\nTry 'tar --help' for more information."],
        "error: pathspec 'featur/cart' did not match any file(s) known to git",
    )
    for errors in (["curl: (6) Could not resolve host: status.example.com"], [], *slips):
        record_to(path, project, errors=errors, summary="Story 3-4 is not finished: a check fails.")
    record_to(
        path, project, errors=["status.example.com: read ECONNRESET"], summary="The rates of 2031 are missing"
    )
    assert not path.exists()


@pytest.mark.parametrize("count", [20, 2000, 20_000])
def test_an_error_at_either_end_of_a_long_output_is_seen(path: Path, project: Path, count: int) -> None:
    """Tools tell last what stopped them, and compilers first what went wrong first."""
    noise = "".join(f"line {number} compiling module{number}.c ok\n" for number in range(count))
    error = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    for output in (f"{noise}{error}", f"{error}\n{noise}"):
        path.unlink(missing_ok=True)
        assert record_to(path, project, errors=[{"message": output}]).status == "recorded"
        assert "unsupported operand" in lines(path)[0]


def test_missing_context_gets_defaults(path: Path, project: Path) -> None:
    envelope = record_to(path, project, errors=None, summary="The page needs an explicit row-height prop")
    assert envelope.results.recorded_entries[0].ref is None
    assert "Ref:" not in lines(path)[0]


def test_a_research_timeout_without_words_is_a_lesson(path: Path, project: Path) -> None:
    envelope = record_to(
        path, project, status="timeout", errors=[], agent="knowledge-researcher", event_type="knowledge_researcher_timeout",
        framework_context="vue-easytable",
    )  # fmt: skip
    assert envelope.results.recorded_entries[0].summary.startswith(
        "The research of knowledge-researcher timed out; narrow"
    )
    assert "[dev-execution, vue-easytable]" in lines(path)[0]


def test_the_most_relevant_path_is_the_reference(path: Path, project: Path) -> None:
    one = record_to(
        path,
        project,
        errors=["CsvReader.java must close FileInputStream"],
        code_paths=["a/Other.java", "b/CsvReader.java:7"],
    )
    assert one.results.recorded_entries[0].ref == "b/CsvReader.java:7"
    two = record_to(
        path, project, errors=["Use Page for paging"], results={"artifacts": [f"{project}/src/x.py:3"]}
    )
    assert two.results.recorded_entries[0].ref == "src/x.py:3"
    three = record_to(
        path,
        project,
        errors=["Escape LIKE patterns in UserDao"],
        code_paths=["/home/ci/agent/9/src/UserDao.java"],
    )
    assert three.results.recorded_entries[0].ref == "src/UserDao.java"
    four = record_to(path, project, errors=["Give each key a default"], code_paths=["a/Other.java", "b.sql"])
    assert four.results.recorded_entries[0].ref is None


def test_the_date_is_that_of_utc(path: Path, project: Path) -> None:
    shanghai = datetime(2026, 2, 8, 7, 59, tzinfo=timezone(timedelta(hours=8)))
    assert record_to(path, project, now=shanghai).results.recorded_entries[0].date == "2026-02-07"


def test_a_file_outside_the_project_is_named_whole(tmp_path: Path) -> None:
    path = tmp_path / "kb" / "_lessons-learned.md"
    envelope = record_to(path, tmp_path / "project")
    assert envelope.results.file_path == path.as_posix()


def test_a_failed_write_is_a_failure(path: Path, project: Path) -> None:
    record_to(path, project)
    path.chmod(0o444)
    before = path.read_bytes()
    envelope = record_to(path, project, errors=["Use Page for MyBatis-Plus paging"])
    plain = envelope.plain()
    assert plain["status"] == "failure"
    assert plain["results"] == {
        "events_detected": 1,
        "entries_recorded": 0,
        "entries_skipped": 0,
        "recorded_entries": [],
        "file_path": FILE,
        "total_entries_in_file": 0,
    }
    assert [(error["type"], error["file_path"]) for error in plain["errors"]] == [
        ("append_write_failed", FILE)
    ]
    assert plain["errors"][0]["message"].startswith("Failed to append lesson entries to file")
    assert path.read_bytes() == before


def test_the_database_knows_where_a_lesson_came_from(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    assert rows(store, "SELECT date, phase, tags, ref, event_type, story_key, session_id, recorded_at, injected, recurred FROM lessons") == [
        ("2026-02-07", "dev-execution", '["dev-execution"]', None, "general_agent_failure", "3-1", "sprint-1",
         "2026-02-07T12:00:00.000000Z", 0, 0)
    ]  # fmt: skip


def test_a_failure_that_came_back_is_counted_and_apart_where_the_lesson_was_given(
    path: Path, project: Path, store: Store
) -> None:
    record_to(path, project, store)
    record_to(path, project, store)
    counts = "SELECT injected, recurred, recurred_after_injection FROM lessons ORDER BY summary"
    assert rows(store, counts) == [(0, 1, 0)]
    inject_from(path, "code-review", store=store)
    record_to(path, project, store)
    assert rows(store, counts) == [(0, 2, 0)]
    inject_from(path, store=store)
    record_to(path, project, store, errors=["Use Page for MyBatis-Plus"])
    assert rows(store, counts) == [(0, 0, 0), (1, 2, 0)]
    record_to(path, project, store, session_id="another")
    assert rows(store, counts) == [(0, 0, 0), (1, 3, 0)]
    record_to(path, project, store)
    assert rows(store, counts) == [(0, 0, 0), (1, 4, 1)]
    assert len(lines(path)) == 2


def test_lines_of_people_are_picked_up(path: Path, project: Path, store: Store) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("- [2026-01-01] [vue, code-review] by hand. Ref: a.vue\n" * 2, encoding="utf-8")
    record_to(path, project, store)
    seen = "SELECT summary, phase, event_type FROM lessons ORDER BY date"
    assert rows(store, seen)[0] == ("by hand", "code-review", None)
    assert len(rows(store, seen)) == 2
    with path.open("a", encoding="utf-8") as stream:
        stream.write("- [2026-03-01] [vue] added later\n")
    record_to(path, project, store)
    assert rows(store, seen)[-1] == ("added later", "vue", None)
    path.write_text("- [2026-04-01] [vue] rewritten\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    record_to(path, project, store)
    assert rows(store, seen)[-1] == ("rewritten", "vue", None)
    assert len(rows(store, seen)) == 4


COUNTED = "SELECT phase, lessons, injected, recurred FROM lessons_by_phase"


def test_lessons_that_the_file_lacks_are_not_counted_and_not_forgotten(
    path: Path, project: Path, store: Store
) -> None:
    record_to(path, project, store)
    inject_from(path, store=store)
    record_to(path, project, store)
    catalog = LessonCounts(store, LessonsFile(path))
    text = path.read_text(encoding="utf-8")
    assert rows(store, COUNTED) == [("dev-execution", 1, 1, 1)]
    path.unlink()
    catalog.reconcile(NOW)
    assert rows(store, COUNTED) == []
    assert rows(store, "SELECT injected, recurred, gone_at FROM lessons") == [
        (1, 1, "2026-02-07T12:00:00.000000Z")
    ]
    path.write_text(text + "- [2026-03-01] [code-review] by hand\n", encoding="utf-8")
    for _ in range(2):
        catalog.reconcile(NOW)
        assert rows(store, COUNTED) == [("code-review", 1, 0, 0), ("dev-execution", 1, 1, 1)]
    path.write_text(text.replace("must be set", "has to be set"), encoding="utf-8")
    catalog.reconcile(NOW)
    assert rows(store, COUNTED) == [("dev-execution", 1, 0, 0)]
    path.write_bytes(b"caf\xe9\n")
    catalog.reconcile(NOW)
    assert rows(store, COUNTED) == []


def test_a_recording_sees_that_the_file_was_edited(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    path.unlink()
    record_to(path, project, store, errors=["Use Page for MyBatis-Plus paging"])
    assert rows(store, COUNTED) == [("dev-execution", 1, 0, 0)]
    record_to(path, project, store)
    assert rows(store, COUNTED) == [("dev-execution", 2, 0, 0)]
    assert rows(store, "SELECT count(*) FROM lessons WHERE gone_at IS NOT NULL") == [(0,)]


def test_an_injected_lesson_that_is_back_is_counted(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    text = path.read_text(encoding="utf-8")
    path.unlink()
    LessonCounts(store, LessonsFile(path)).reconcile(NOW)
    path.write_text(text, encoding="utf-8")
    inject_from(path, store=store)
    assert rows(store, COUNTED) == [("dev-execution", 1, 1, 0)]


def test_the_table_is_left_alone_while_others_hold_it(path: Path, project: Path) -> None:
    with Store(None, path.parents[1], timeout=0.2) as brief:
        record_to(path, project, brief)
        path.unlink()
        with exclusive(path.parents[1] / "kr.db.lock", timeout=5):
            LessonCounts(brief, LessonsFile(path)).reconcile(NOW)
        assert rows(brief, COUNTED) == [("dev-execution", 1, 0, 0)]


def test_an_origin_is_told_although_another_process_picked_the_line_up(
    path: Path, project: Path, store: Store
) -> None:
    record_to(path, project)
    with store.write() as unit:
        unit.lessons.add([])
    LessonCounts(store, LessonsFile(path)).reconcile(NOW)
    assert rows(store, "SELECT event_type, session_id FROM lessons") == [(None, None)]
    lesson = LessonsFile(path).read().lessons[0]
    for session in ("s-7", "s-8"):
        told = [Candidate("review_max_rounds", lesson, "agent")]
        counts = LessonCounts(store, LessonsFile(path))
        counts.note_recording(told, [], story_key="1-2", session_id=session, now=NOW)
    origin = "SELECT event_type, story_key, session_id, recorded_at FROM lessons"
    assert rows(store, origin) == [("review_max_rounds", "1-2", "s-7", "2026-02-07T12:00:00.000000Z")]


@pytest.mark.parametrize(
    "path_given", ["a.py\n- [2026-01-01] [code-review] evil", "a.py - [2026-01-01] [code-review] evil"]
)
def test_a_path_is_no_second_lesson(path: Path, project: Path, path_given: str) -> None:
    entry = record_to(path, project, code_paths=[path_given]).results.recorded_entries[0]
    assert entry.ref in {None, "a.py"}
    assert "evil" not in path.read_text(encoding="utf-8")


def test_brackets_in_a_path_stay(path: Path, project: Path) -> None:
    entry = record_to(path, project, code_paths=["app/[id]/My Page.tsx:3"]).results.recorded_entries[0]
    assert entry.ref == "app/[id]/My Page.tsx:3"


def test_a_long_file_is_picked_up_in_portions(path: Path, project: Path, store: Store) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"- [2026-01-01] [vue] number {n}\n\n" for n in range(4500)), encoding="utf-8")
    found = []
    for _ in range(4):
        record_to(path, project, store)
        found.append(rows(store, "SELECT count(*) FROM lessons")[0][0])
    assert found == [2001, 4001, 4501, 4501]


def test_a_database_that_cannot_serve_hinders_nothing(
    path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = project / "kr.db"
    broken.write_bytes(b"no database at all" * 100)
    with caplog.at_level(logging.WARNING), Store(f"sqlite:///{broken}", project, timeout=1.0) as store:
        assert record_to(path, project, store).status == "recorded"
    assert "not counted" in caplog.text
    assert len(lines(path)) == 1


def test_a_naive_reader_sees_times_in_utc(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store, now=datetime(2026, 2, 7, 23, 59, 59, 5, tzinfo=UTC))
    assert rows(store, "SELECT recorded_at FROM lessons") == [("2026-02-07T23:59:59.000005Z",)]


def test_an_origin_waits_for_a_database_that_is_busy(
    path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Store(None, path.parents[1]) as holder, Store(None, path.parents[1], timeout=0.2) as store:
        with holder.write():
            assert record_to(path, project, store, session_id="busy").status == "recorded"
        assert "not counted" in caplog.text
        assert len(list(path.parent.glob(".origin-*"))) == 1
        record_to(path, project, store, errors=["Use Page for MyBatis-Plus paging"], session_id="later")
        origins = "SELECT session_id, event_type, source FROM lessons ORDER BY session_id"
        assert rows(store, origins) == [
            ("busy", "general_agent_failure", "tool"),
            ("later", "general_agent_failure", "tool"),
        ]
    assert list(path.parent.glob(".origin-*")) == []


@pytest.mark.processes
def test_a_lesson_waits_for_a_file_that_others_hold(path: Path, project: Path, store: Store) -> None:
    record_to(path, project, store)
    with exclusive(LessonsFile(path).lock_path, timeout=5):
        for number in (1, 2):
            answer = record_to(
                path,
                project,
                store,
                lock_timeout=0.05,
                errors=[f"KeyError: 'field{number}'"],
                session_id=f"late-{number}",
            )
            assert answer.status == "failure"
            assert "the next recording appends it" in answer.errors[0].message
    assert len(lines(path)) == 1
    record_to(path, project, store, errors=["IndexError: list index out of range"], phase="code-review")
    assert len(lines(path)) == 4
    assert rows(store, "SELECT session_id FROM lessons WHERE session_id LIKE 'late-%' ORDER BY 1") == [
        ("late-1",),
        ("late-2",),
    ]
    assert not list(path.parent.glob(".lesson-*"))


def test_what_waits_is_appended_by_who_lists(path: Path, project: Path, store: Store) -> None:
    path.parent.mkdir(parents=True)
    with exclusive(LessonsFile(path).lock_path, timeout=5):
        record_to(path, project, store, lock_timeout=0.05)
    (path.parent / ".lesson-odd").write_text("{", encoding="utf-8")
    # Who injects reads it as if it stood in the file, and leaves it where it is.
    assert inject_from(path).results["injected_count"] == 1
    assert not path.exists()
    book = LessonBook(path, project_root=project, limits=Limits, store=store, clock=lambda: NOW)
    assert [lesson["session_id"] for lesson in book.lessons()] == ["sprint-1"]
    assert [file.name for file in path.parent.glob(".lesson-*")] == [".lesson-odd"]


@pytest.mark.effort(8, 3)
def test_recorders_at_once_lose_no_line_and_no_origin(
    path: Path, project: Path, store: Store, effort: int
) -> None:
    record_to(path, project, store)
    code = """
import sys
from pathlib import Path
from kr.store.store import Store
from tests.support.lessons import record_to
path, project, number = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with Store(None, path.parents[1], timeout=60.0) as store:
    sys.stdin.readline()
    error = f"error: unknown field colour{number} in Shop{number}"
    print(record_to(path, project, store, errors=[error], session_id=f"s-{number}").status)
"""
    started = [start(code, path, project, number) for number in range(effort)]
    answers = [process.communicate("go\n", timeout=110) for process in started]
    assert [(out.strip(), err) for out, err in answers] == [("recorded", "")] * len(started)
    found = rows(
        store, "SELECT session_id FROM lessons WHERE session_id LIKE 's-%' AND event_type IS NOT NULL"
    )
    assert {session for (session,) in found} == {f"s-{number}" for number in range(effort)}
    assert sum("colour" in line for line in lines(path)) == len(started)
