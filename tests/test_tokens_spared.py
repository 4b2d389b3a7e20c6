"""Tokens spared are one number everywhere: what finding out had cost before, less the answer (rule 8). From real requests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kr.stats import last_days
from kr.store import ledger, lookup
from kr.text import tokens_of
from tests.support.mcp_servers import DOCS, Scenario, StandIn, context7_server
from tests.support.program import Project, request
from tests.support.servers import serving_here

LONG = DOCS + "\n".join(
    f"\nOption {number} is read before option {number + 1} is.\n" for number in range(800)
)
QUESTION = "How do I make an option repeatable?"
OTHER = "Is there a repeatable kind of option to make?"
FINDING = {
    "framework": "vue",
    "framework_version": "3.5",
    "question": QUESTION,
    "answer": "Declare the option with `multiple: true`; its value is a list then.",
    "verified_by": "npm test",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server(Scenario(docs=[LONG])) as server:
        project.use_context7(server.url)
        yield server


def ask(project: Project, session: str, question: str = QUESTION, **overrides: Any) -> dict[str, Any]:
    asked = request(session_id=session, question=question, topic=question, config_overrides=overrides)
    return project.research(asked, include_report=True)


def given(answer: dict[str, Any]) -> int:
    results = answer["results"]
    return tokens_of(results["report"] or results["candidate_report"]["text"])


def stats(project: Project) -> dict[str, Any]:
    with project.app() as app:
        found: dict[str, Any] = app.stats()
    return found


def save(project: Project, session: str, **more: Any) -> str:
    with project.app() as app:
        envelope = app.save_finding({**FINDING, "session_id": session, **more})
    assert envelope.results is not None, envelope.errors
    return envelope.results.id


@pytest.mark.usefixtures("context7")
def test_a_hit_spares_what_the_research_read_less_what_the_hit_gives(project: Project) -> None:
    assert ask(project, "one")["status"] == "success"
    assert stats(project)["spared"] == {"tokens": 0, "seconds": 0, "answers": 0}
    ((read, waited),) = project.sql(
        "SELECT c.answer_tokens, r.duration_ms FROM source_calls c JOIN requests r ON r.id = c.request_id"
    )
    hits = [ask(project, session) for session in ("two", "three")]
    assert [hit["status"] for hit in hits] == ["cache-hit"] * 2
    took = [row[0] for row in project.sql("SELECT duration_ms FROM requests WHERE status = 'cache-hit'")]
    spared = stats(project)["spared"]
    assert spared["tokens"] == sum(read - given(hit) for hit in hits)
    assert spared["answers"] == 2
    assert spared["seconds"] == pytest.approx(sum(max(waited - ms, 0) for ms in took) / 1000)


@pytest.mark.usefixtures("context7")
def test_a_hit_on_a_finding_spares_what_its_session_was_given_before_it_saved(project: Project) -> None:
    found_out = ask(project, "one")
    # Its own entry, so that nothing but the saving tells what it cost.
    entry = save(
        project, "one", question="Is there a switch that takes an option twice?", topic="given twice"
    )
    hit = ask(project, "two", "Is there a switch that takes an option twice?")
    assert (hit["status"], hit["results"]["cache_entry_id"]) == ("cache-hit", entry)
    assert stats(project)["spared"]["tokens"] == given(found_out) - given(hit)


@pytest.mark.usefixtures("context7")
def test_what_was_offered_and_then_used_is_one_answer(project: Project) -> None:
    ask(project, "one")
    ((read,),) = project.sql("SELECT answer_tokens FROM source_calls")
    offered = ask(project, "two", OTHER, if_unsure="candidates")
    assert offered["status"] == "candidates"
    assert stats(project)["spared"]["answers"] == 0  # nobody has said yet that it answers
    used = ask(project, "two", OTHER, use=offered["results"]["candidate_report"]["id"])
    assert used["status"] == "cache-hit"
    spared = stats(project)["spared"]
    assert (spared["answers"], spared["tokens"]) == (1, read - given(used))


@pytest.mark.usefixtures("context7")
def test_what_was_offered_and_worked_is_an_answer(project: Project) -> None:
    ask(project, "one")
    ((read,),) = project.sql("SELECT answer_tokens FROM source_calls")
    offered = ask(project, "two", OTHER, if_unsure="candidates")
    entry = offered["results"]["candidate_report"]["id"]
    with project.app() as app:
        app.rate_report(entry, {"outcome": "worked", "session_id": "somebody else"})
        assert app.stats()["spared"]["answers"] == 0
        app.rate_report(entry, {"outcome": "worked", "session_id": "two"})
        spared = app.stats()["spared"]
    assert (spared["answers"], spared["tokens"]) == (1, read - given(offered))


def test_an_answer_that_is_longer_than_what_finding_out_had_cost_spares_nothing(project: Project) -> None:
    with context7_server() as server:
        project.use_context7(server.url)
        ask(project, "one")
        ask(project, "two")
    spared = stats(project)["spared"]
    assert (spared["answers"], spared["tokens"]) == (1, 0)


def test_what_was_not_measured_counts_nothing(project: Project) -> None:
    save(project, "one")
    assert ask(project, "two")["status"] == "cache-hit"
    found = stats(project)
    assert (found["requests"]["hits"], found["spared"]) == (1, {"tokens": 0, "seconds": 0, "answers": 0})


@pytest.mark.usefixtures("context7")
def test_the_command_the_page_the_interface_and_the_metrics_tell_the_same_number(project: Project) -> None:
    ask(project, "one")
    ask(project, "two")
    tokens = stats(project)["spared"]["tokens"]
    assert tokens > 3000
    told = project.run("stats", "--format", "text").stdout.decode()
    assert re.search(rf"^spared +tokens {tokens};", told, re.MULTILINE)
    with serving_here(project, token=None) as served:
        assert served.get("/v1/stats").json["spared"]["tokens"] == tokens
        exposed = served.get("/metrics").body.decode()
        assert re.search(rf"^kr_tokens_spared_total {tokens}(\.0)?$", exposed, re.MULTILINE)
        page = served.get("/").body.decode()
        assert f"{tokens:,}" in page  # in the table of days
    with project.app() as app:
        days = last_days(app.store, app.clock())
    assert (days["spared_tokens"], days["measured"]) == (tokens, 1)


def test_twenty_thousand_answers_are_summed_up_by_day(project: Project) -> None:
    def row(name: str, entry: str, tokens: int, **told: Any) -> dict[str, Any]:
        return {"id": name, "session_id": name, "entry_id": entry, "answer_tokens": tokens, **told}

    saved = {"mode": "save", "status": "saved", "at": "2026-11-20T23:00:00.000000Z"}
    hit = {"mode": "research", "status": "cache-hit"}
    with project.app() as app:
        with app.store.write() as tx:
            for number in range(500):
                lookup.log_request(tx, row(f"s{number}", f"e{number}", 1000, **saved))
            for number in range(20_000):
                at = f"2026-11-{21 + number % 2}T02:00:00.000000Z"
                lookup.log_request(tx, row(f"h{number}", f"e{number % 500}", 300, at=at, **hit))
        with app.store.read() as tx:
            days = ledger.spared_by_day(tx)
    assert [(day["day"], day["answers"], day["tokens"]) for day in days] == [
        ("2026-11-21", 10_000, 7_000_000),
        ("2026-11-22", 10_000, 7_000_000),
    ]
