"""Look up, serve or offer, on a real database (rule 3.2, 3.3)."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kr.models import to_plain
from kr.research.miss import OTHER_WORDS
from kr.store import saving
from kr.times import to_text
from tests.support.program import Project, request
from tests.support.stores import draft

pytestmark = pytest.mark.usefixtures("database_url")

OTHER = {"topic": "given twice", "tags": ["arguments"], "question": "Can one option be given twice?"}
"""A need in words that nothing serves by itself, and that share a word with ``request()``."""

NEAR = {"topic": "option made twice", "tags": ["arguments"], "question": "Can I make one option repeatable?"}
"""A need that nothing serves by itself either, near enough for the report of ``request()`` to go along."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    keep(made, "repeatable options", question="How do I make an option repeatable?")
    return made


def keep(project: Project, topic: str, text: str = "Set `multiple`.", **changes: Any) -> str:
    with project.app() as app:
        values = {"framework_version": "3.5", "tags": ("options",)} | changes
        report = f"# {topic}\n\n## Summary\n\n{text}\n\n## Details\n\nMore of it.\n"
        return saving.save(app.store, draft("vue", topic, **values), report, project.clock()).entry.id


def ask(project: Project, **changes: Any) -> dict[str, Any]:
    names = ("use", "refresh", "if_unsure", "max_calls")
    overrides = {"if_unsure": "candidates", **{name: changes.pop(name) for name in names if name in changes}}
    return project.research(request(**changes, config_overrides=overrides))


def test_candidates_cost_nothing_and_the_best_comes_with_its_report(project: Project) -> None:
    before = project.sql("SELECT last_accessed FROM entries")
    answer = ask(project, **NEAR)
    results = answer["results"]
    assert (answer["status"], answer["errors"]) == ("candidates", [])
    assert (results["cache_hit"], results["cache_entry_id"], results["report_path"]) == (False, None, None)
    assert (results["confidence"], results["match"], results["sources_consulted"]) == (None, None, [])
    assert results["budget_remaining"] == 3
    (related,) = results["related"]
    score = related.pop("score")
    assert score > 0
    assert related == {
        "id": "vue-repeatable-options",
        "framework_version": "3.5",
        "topic": "repeatable options",
        "question": "How do I make an option repeatable?",
        "summary": "Set `multiple`.",
        "origin": "excerpt",
        "confidence": "high",
        "worked": 0,
        "wrong": 0,
    }
    assert results["candidate_report"]["id"] == "vue-repeatable-options"
    assert "More of it." in results["candidate_report"]["text"]
    assert project.sql("SELECT last_accessed FROM entries") > before  # it was read
    assert project.sql("SELECT count(*) FROM source_calls") == [(0,)]
    assert project.sql("SELECT status, score FROM requests") == [("candidates", score)]


def test_an_excerpt_that_is_not_near_is_named_and_not_read(project: Project) -> None:
    before = project.sql("SELECT last_accessed FROM entries")
    results = ask(project, **OTHER)["results"]
    assert [it["id"] for it in results["related"]] == ["vue-repeatable-options"]
    assert results["candidate_report"] is None
    assert project.sql("SELECT last_accessed FROM entries") == before
    assert project.sql("SELECT answer_tokens FROM requests") == [(0,)]


def test_the_report_of_a_finding_comes_along_however_little_is_shared(project: Project) -> None:
    finding = keep(project, "option several times", origin="finding")
    assert ask(project, **OTHER)["results"]["candidate_report"]["id"] == finding


def test_the_report_of_a_candidate_is_cut_to_what_was_asked_for(project: Project) -> None:
    long = keep(project, "repeatable option twice", text="Word. " * 400)
    with project.app() as app:
        data = {**request(**NEAR), "config_overrides": {"if_unsure": "candidates"}}
        answer = to_plain(app.research.document(str(data).replace("'", '"').encode(), max_tokens=60))
    offered = answer["results"]["candidate_report"]
    assert offered["id"] == long
    assert len(offered["text"]) / 4 <= 75


def test_a_wording_ranks_at_once_and_serves_once_another_session_uses_it(project: Project) -> None:
    one = ask(project, **OTHER, use="vue-repeatable-options")
    assert (one["status"], one["results"]["match"]["tier"]) == ("cache-hit", "use")
    again = ask(project, **OTHER)
    assert (again["status"], again["results"]["related"][0]["id"]) == ("candidates", "vue-repeatable-options")
    assert ask(project, **OTHER, use="vue-repeatable-options")["status"] == "cache-hit"
    assert ask(project, **OTHER)["status"] == "candidates"  # one session twice is one session
    ask(project, **OTHER, use="vue-repeatable-options", session_id="s-2")
    served = ask(project, **{**OTHER, "question": "can ONE option be given twice"})
    assert (served["status"], served["results"]["match"]["tier"]) == ("cache-hit", "framework+wording")


def test_the_frameworks_own_name_is_no_word_in_common(project: Project) -> None:
    answer = ask(project, topic="vue transitions", tags=["vue"], question="How does vue fade?")
    assert answer["results"]["related"] == []


def test_a_finding_stands_beside_an_excerpt_of_installed_documentation_that_is_served(
    project: Project,
) -> None:
    topic, tomorrow = "option made repeatable twice", to_text(project.clock() + timedelta(hours=20))
    excerpt = keep(project, topic, fresh_until=tomorrow)
    finding = keep(project, "repeatable options twice", origin="finding", written_by="agent:s1")
    answer = ask(project, topic=topic)
    assert (answer["status"], answer["results"]["cache_entry_id"]) == ("cache-hit", excerpt)
    assert [row["id"] for row in answer["results"]["related"]] == [finding]
    keep(project, topic)
    assert ask(project, topic=topic)["results"]["related"] == []  # it was researched


def test_a_finding_that_git_brings_into_the_file_of_an_excerpt_is_served_as_one(project: Project) -> None:
    tomorrow = to_text(project.clock() + timedelta(hours=20))
    excerpt = keep(project, "slots", fresh_until=tomorrow, confidence="low")
    with project.app() as app:
        finding = {
            "framework": "vue",
            "question": "How are slots named?",
            "answer": "v-slot:name",
            "session_id": "a",
        }
        written = app.save_finding({**finding, "topic": "others", "verified_by": "a test"})
        text = app.entry(written.results.id, report=True)["report"]  # type: ignore[union-attr]
    (project.base / "frameworks/vue/slots.md").write_text(text.replace("others", "slots"))
    answer = ask(project, topic="slots")["results"]
    assert (answer["cache_entry_id"], answer["confidence"]) == (excerpt, "medium")
    assert (answer["match"]["origin"], answer["degradation_notes"]) == ("finding", [])


def test_a_stale_equal_topic_is_researched_instead_of_offered(project: Project) -> None:
    project.clock.pass_days(31)
    answer = ask(project)
    assert answer["status"] == "degraded"
    assert answer["results"]["match"]["entry_status"] == "stale"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_entry_whose_report_is_nowhere_is_not_offered(project: Project) -> None:
    lost = keep(project, "repeatable option twice")
    project.sql("UPDATE entries SET sha256 = NULL WHERE id = ?", lost)
    (project.base / "frameworks/vue/repeatable-option-twice.md").unlink()
    answer = ask(project, **NEAR)
    assert [row["id"] for row in answer["results"]["related"]] == ["vue-repeatable-options"]
    assert answer["results"]["candidate_report"]["id"] == "vue-repeatable-options"


def test_a_lesson_of_the_framework_that_shares_a_word_goes_along(project: Project) -> None:
    insert = "INSERT INTO lessons (id, date, phase, tags, summary, source) VALUES (?, '2026-11-20', 'dev-execution', ?, ?, 'agent')"
    fitting = "An option that retries fails twice: set multiple"
    for summary, tags in ((fitting, '["vue"]'), ("An option of another one", '["react"]')):
        project.sql(insert, summary[:12] + tags, tags, summary)
    lessons = ask(project, question="Which option retries a request?")["results"]["lessons"]
    assert [it["summary"] for it in lessons] == [fitting]


def test_the_text_tells_the_confidence_of_now(project: Project) -> None:
    finding = {"framework": "vue", "question": "How is a slot named?", "answer": "By v-slot."}
    with project.app() as app:
        saved = app.save_finding({**finding, "session_id": "s-1"}).results
        assert saved is not None
        written = app.read_report(saved.id, max_tokens=500)
        app.rate_report(saved.id, {"outcome": "worked", "session_id": "s-2"})
        read = app.read_report(saved.id, max_tokens=500)
        asked = app.research.document(request(), include_report=True, overrides={"use": saved.id}).results
    for confidence, text in (("low", written["text"]), ("high", read["text"]), ("high", asked.report)):
        assert f"**Confidence:** {confidence}" in text
    assert (read["confidence"], asked.confidence) == ("high", "high")


def test_junk_takes_nobodys_place(project: Project) -> None:
    project.env["KR_MAX_ENTRIES"] = "2"
    keep(project, "scoped slots")
    for framework, topic in (("vue", "pancakes with syrup"), ("vue", "aaaaaa"), ("vuee", "slots")):
        answer = ask(project, framework=framework, topic=topic, tags=[topic], question=f"What of {topic}?")
        assert answer["status"] == "degraded"
    assert project.sql("SELECT id FROM entries ORDER BY id") == [
        ("vue-repeatable-options",),
        ("vue-scoped-slots",),
    ]


def test_a_finding_in_the_archive_is_named_where_no_source_answers(project: Project) -> None:
    kept = keep(project, "scoped slots", origin="finding", written_by="agent:a")
    with project.app() as app:
        app.catalog.remove([kept])
    asked = {"topic": "Scoped slots", "tags": ["slots"], "question": "What is a scoped slot?"}
    notes = ask(project, **asked)["results"]["degradation_notes"]
    assert f"{kept} is in the archive: `kr archive restore {kept}` brings it back" in notes


def test_few_findings_are_named_where_no_source_answers_and_no_word_is_shared(project: Project) -> None:
    other = {"topic": "sigterm hang", "tags": ["sigterm"], "question": "Why does SIGTERM hang?"}
    assert ask(project, **other)["results"]["related"] == []
    for number in range(10):
        keep(project, f"graceful end number {number}", origin="finding", written_by="agent:a")
        project.clock.pass_days(0.01)
    answer = ask(project, **other, refresh=True)
    assert answer["status"] == "degraded"
    named = [row["id"] for row in answer["results"]["related"]]
    assert named == [f"vue-graceful-end-number-{number}" for number in (9, 8, 7, 6, 5)]
    assert OTHER_WORDS in answer["results"]["degradation_notes"]
    assert project.sql("SELECT candidates FROM requests WHERE candidates IS NOT NULL") == []
    keep(project, "graceful end number 10", origin="finding", written_by="agent:a")
    assert ask(project, **other, refresh=True)["results"]["related"] == []


def test_a_placeholder_hides_no_finding_of_another_major(project: Project) -> None:
    topic = {"topic": "sigterm hang", "tags": ["sigterm"], "question": "Why does SIGTERM hang?"}
    assert ask(project, **topic)["status"] == "degraded"
    keep(project, "sigterm hang", origin="finding", written_by="agent:a", framework_version="4.0")
    other = {"topic": "zebra stripes", "tags": ["zebra"], "question": "Where do zebras live?"}
    named = [row["id"] for row in ask(project, **other)["results"]["related"]]
    assert named == ["vue-sigterm-hang-v4"]
