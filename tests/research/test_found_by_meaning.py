"""``kr calibrate``, and what its weights change for research and ``kr explain``: real HTTP on loopback, real processes."""

import json
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kr.cli import knowledge
from kr.matching.evidence import NAMES
from kr.matching.vectors import SIMILARITIES, calibration_key
from tests.support.mcp_servers import StandIn, context7_server
from tests.support.program import Project, request
from tests.support.web_servers import Reply, Request, WebServer, as_json, web_server
from tests.test_calibration import by_label, vector

pytestmark = pytest.mark.timeout(600)
"""A calibration takes some ten seconds of a processor, and many more where others work beside it."""

OTHER_WORDS = {
    "topic": "several values for one flag",
    "tags": ["parsing"],
    "question": "Where do I allow a switch to occur many times?",
}
"""The need of ``request()`` without a word of it."""
SAME = ("repeatable options", OTHER_WORDS["topic"])


def knowing(asked: Request) -> Reply:
    """A model that knows the labelled needs, and that the needs of ``SAME`` are one."""
    texts = json.loads(asked.body)["input"]
    about = ["one need" if text.startswith(SAME) else by_label(text) for text in texts]
    return as_json({"data": [{"index": n, "embedding": vector(it)} for n, it in enumerate(about)]})


class Switched:
    """A server whose answers a test may exchange."""

    def __init__(self) -> None:
        self.respond: Callable[[Request], Reply] = knowing

    def __call__(self, asked: Request) -> Reply:
        return self.respond(asked)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What the program said of a run with a model, and what it kept."""
    project = Project(tmp_path_factory.mktemp("calibrated") / "project")
    project.know("slots", "filters")
    with web_server(knowing) as server:
        use_embeddings(project, server.url)
        done = project.run("calibrate", "--format", "json", timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")
    assert project.sql("SELECT count(*) FROM entry_vectors WHERE model = 'tiny'") == [(2,)]
    ((text,),) = project.sql("SELECT value FROM meta WHERE key = ?", calibration_key("tiny"))
    assert str(project.database) in done.stdout.decode()
    return json.loads(done.stdout), text


@pytest.fixture
def kept(calibrated: tuple[dict[str, Any], str]) -> str:
    """The calibration as it stands in a database."""
    return calibrated[1]


@pytest.fixture
def switched() -> Switched:
    return Switched()


@pytest.fixture
def model(switched: Switched) -> Iterator[WebServer]:
    with web_server(switched) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def context7(project: Project) -> Iterator[StandIn]:
    with context7_server() as server:
        project.use_context7(server.url)
        yield server


def use_embeddings(project: Project, url: str) -> None:
    project.env["KR_EMBEDDINGS"] = json.dumps({"base_url": url, "model": "tiny"})


def calibrate(project: Project, text: str) -> None:
    with project.app() as app, app.store.write() as unit:
        unit.meta.put(calibration_key("tiny"), text)


def texts(server: WebServer) -> list[list[str]]:
    return [json.loads(asked.body)["input"] for asked in server.requests()]


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "results": {**answer["results"], "report_file": None}}


def test_it_tells_what_was_reached_with_and_without_the_model(calibrated: tuple[dict[str, Any], str]) -> None:
    value, kept = calibrated
    assert (value["model"], value["questions"]) == ("tiny", 1608)
    assert value["reached"]["recall_balanced"] > value["without"]["recall_balanced"] + 0.2
    assert value["reached"]["first"] > value["without"]["first"] > 0.85
    assert list(json.loads(kept)["weights"]) == [*NAMES, *SIMILARITIES]
    shown = knowledge.calibrated(value)
    assert f"{value['reached']['first']:.1%}" in shown
    assert max(map(len, shown.splitlines()[:-2])) <= 80
    assert value["kept_in"] in shown.replace("\n", "")


def test_a_need_in_other_words_is_found_by_its_meaning_alone(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    calibrate(project, kept)
    project.know("slots")
    entry = project.research()["results"]["cache_entry_id"]
    calls = len(context7.calls())
    with project.app() as app:
        assert app.explain(json.dumps(request(**OTHER_WORDS)).encode())["outcome"] == "miss"
    use_embeddings(project, model.url)
    answer = project.research(request(**OTHER_WORDS))
    assert (answer["status"], answer["results"]["cache_entry_id"]) == ("cache-hit", entry)
    assert answer["results"]["match"]["tier"] == "framework+need"
    assert len(context7.calls()) == calls


def test_vectors_are_asked_for_once_and_not_at_all_for_an_equal_topic(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    use_embeddings(project, model.url)
    calibrate(project, kept)
    project.know("slots")
    assert texts(model) == []  # nothing to compare with
    project.research()
    (needs, written) = texts(model)
    assert len(needs) == 3  # the request's, and the known entry's with the one passage of its report
    assert written[0] == needs[0]
    assert len(written) > 2  # the new entry's need and report
    project.research()
    project.research(request(question="Once more, please?"))
    assert len(texts(model)) == 2
    project.research(request(**OTHER_WORDS))
    assert [len(asked) for asked in texts(model)[2:]] == [1]
    assert context7.calls()


def test_a_request_without_calls_asks_no_model(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    use_embeddings(project, model.url)
    calibrate(project, kept)
    project.know("slots")
    asked = request(**OTHER_WORDS, config_overrides={"max_calls": 0})
    assert project.research(asked)["status"] == "budget-exhausted"
    with project.app() as app:
        app.explain(json.dumps(asked).encode())
    assert texts(model) == []
    assert context7.calls() == []


def test_a_renewed_entry_gets_new_vectors(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    project.research()
    use_embeddings(project, model.url)
    calibrate(project, kept)
    project.research(request(**OTHER_WORDS))
    earlier = project.sql("SELECT vector FROM entry_vectors")
    project.research(request(question="Another question?", config_overrides={"refresh": True}))
    renewed = project.sql("SELECT vector FROM entry_vectors")
    assert len(earlier) == len(renewed) == 1
    assert renewed != earlier
    assert context7.calls()


def test_what_a_person_wrote_into_a_report_is_compared_anew(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    use_embeddings(project, model.url)
    calibrate(project, kept)
    report = Path(project.research()["results"]["report_file"])
    assert project.sql("SELECT count(*) FROM entry_vectors") == [(1,)]
    report.write_text(
        report.read_text(encoding="utf-8") + "\n## Notes\n\nBeware of the last one.\n", encoding="utf-8"
    )
    project.research()
    assert project.sql("SELECT count(*) FROM entry_vectors") == [(0,)]
    assert context7.calls()


def test_a_server_that_goes_away_changes_no_answer(
    tmp_path: Path,
    switched: Switched,
    model: WebServer,
    kept: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    near = {"topic": "options that repeat", "tags": ["options"], "question": "Can an option be given twice?"}
    asked = [request(), request(**near), request(**OTHER_WORDS)]
    answers = []
    for name in ("with", "without"):
        switched.respond = knowing
        project = Project(tmp_path / name)
        with context7_server() as server:
            project.use_context7(server.url)
            if name == "with":
                use_embeddings(project, model.url)
                calibrate(project, kept)
            project.know("slots")
            project.research(asked[0])
            switched.respond = lambda _: Reply(status=500)
            answers.append([without_times(project.research(one)) for one in asked])
    assert answers[0] == answers[1]
    assert [answer["errors"] for answer in answers[0]] == [[]] * 3
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.getMessage().partition(":")[0] for record in told} == {
        "matching goes on without embeddings"
    }
    # Each run asks it once at most, though it looks the cache up several times.
    assert len(told) == 2


@pytest.mark.parametrize("stale", [None, "{}", "[1"])
def test_without_a_calibration_for_this_evidence_nobody_is_asked(
    project: Project, context7: StandIn, model: WebServer, stale: str | None
) -> None:
    use_embeddings(project, model.url)
    project.research()
    if stale is not None:
        calibrate(project, stale)
    assert project.research(request(**OTHER_WORDS))["status"] == "success"
    assert texts(model) == []
    assert context7.calls()


@pytest.mark.parametrize("setting", [("KR_CACHE_MATCH", "seed"), ("KR_CACHE_FUZZY_MATCH", "false")])
def test_where_no_likelihood_decides_nobody_is_asked(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
    setting: tuple[str, str],
) -> None:
    use_embeddings(project, model.url)
    project.env |= [setting]
    calibrate(project, kept)
    project.research()
    assert project.research(request(**OTHER_WORDS))["status"] == "success"
    assert texts(model) == []
    assert context7.calls()


def test_explain_shows_the_similarity_and_keeps_nothing(
    project: Project,
    context7: StandIn,
    model: WebServer,
    kept: str,
) -> None:
    project.research()
    use_embeddings(project, model.url)
    calibrate(project, kept)
    with project.app() as app:
        value = app.explain(json.dumps(request(**OTHER_WORDS)).encode())
    assert value["outcome"] == "hit"
    evidence = {piece["name"]: piece for piece in value["considered"][0]["evidence"]}
    assert evidence["similarity"]["value"] == 1.0
    assert evidence["similarity"]["adds"] + evidence["similarity_ahead"]["adds"] > 1
    assert "similarity +" in " ".join(knowledge.explained(value).split())
    assert project.sql("SELECT count(*) FROM entry_vectors") == [(0,)]
    answer = project.research(request(**OTHER_WORDS))
    assert answer["results"]["match"]["likelihood"] == value["considered"][0]["likelihood"]
    with project.app() as app:
        equal = app.explain(json.dumps(request()).encode())
    assert not {"similarity"} & {piece["name"] for piece in equal["considered"][0]["evidence"]}
    assert context7.calls()


@pytest.mark.parametrize("settings", [{}, {"model": "tiny"}, {"base_url": "http://127.0.0.1:1/v1"}])
def test_calibrate_without_a_model_says_what_is_missing(project: Project, settings: dict[str, str]) -> None:
    project.env["KR_EMBEDDINGS"] = json.dumps(settings)
    done = project.run("calibrate")
    assert (done.returncode, done.stdout) == (2, b"")
    told = done.stderr.decode().splitlines()[-1]
    assert "kr.yaml: knowledge_research.embeddings: " in told
    assert "base_url" in told
    assert "model are both needed" in told
    assert not project.base.exists()


def test_calibrate_with_a_server_that_is_away_keeps_nothing(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    use_embeddings(project, f"http://127.0.0.1:{port}/v1")
    done = project.run("calibrate")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Traceback" not in done.stderr
    assert b"error: the model of embeddings: " in done.stderr
    assert not project.database.exists()
