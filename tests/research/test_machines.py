"""Several machines before one database on PostgreSQL: each has a folder of its own, which is a copy."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_servers import StandIn, context7_server
from tests.support.postgresql import Databases
from tests.support.program import VUE, Project, request


@pytest.fixture
def machines(tmp_path: Path, postgresql: Databases) -> tuple[Project, Project]:
    env = {"KR_DATABASE_URL": postgresql.clean()}
    return Project(tmp_path / "one", env=dict(env)), Project(tmp_path / "two", env=dict(env))


@pytest.fixture
def context7(machines: tuple[Project, Project]) -> Iterator[StandIn]:
    with context7_server() as server:
        for machine in machines:
            machine.use_context7(server.url)
        yield server


def test_what_one_machine_found_out_every_machine_has(
    machines: tuple[Project, Project], context7: StandIn
) -> None:
    one, two = machines
    first = one.research()
    assert first["status"] == "success"
    assert not two.base.exists()
    again = two.research()
    assert again["status"] == "cache-hit"
    assert two.report(again) == one.report(first)
    assert len(context7.calls()) == 2  # resolved and asked once


@pytest.mark.usefixtures("context7")
def test_a_copy_that_is_older_or_torn_is_written_again(machines: tuple[Project, Project]) -> None:
    one, two = machines
    first, earlier = one.research(), two.research()
    stale = two.report(earlier)
    saved = ("save", "vue", VUE["question"], "--answer", "By `multiple=True`.", "--entry")
    done = one.run(*map(str, saved), first["results"]["cache_entry_id"])
    assert done.returncode == 0, done.stderr
    assert one.report(first) != stale
    assert two.report(two.research()) == one.report(first)
    path = two.base / earlier["results"]["report_path"]
    path.write_text(path.read_text()[:40])
    assert two.report(two.research()) == one.report(first)


@pytest.mark.usefixtures("context7")
def test_a_persons_edit_is_a_revision_for_all(machines: tuple[Project, Project]) -> None:
    one, two = machines
    first = one.research()
    two.research()
    path = two.base / first["results"]["report_path"]
    path.write_text(path.read_text() + "\nA person knows better.\n")
    two.research()
    assert "A person knows better." in one.report(one.research())
    assert one.sql("SELECT revision, written_by FROM entries") == [(2, "file")]


def test_lessons_go_from_file_to_file(machines: tuple[Project, Project]) -> None:
    one, two = machines
    for machine, text in ((one, "compiler runs out of memory"), (two, "linker finds no symbol")):
        done = machine.run("lessons", "add", text, "--fix", "clean it first", "--phase", "code-review")
        assert done.returncode == 0, done.stderr
    for machine in machines:
        done = machine.run("lessons", "inject", "--phase", "code-review", "--format", "json")
        given = json.dumps(json.loads(done.stdout))
        assert "compiler runs" in given
        assert "linker finds" in given
        lines = (machine.base / "lessons/_lessons-learned.md").read_text().splitlines()
        assert sum("clean it first" in line for line in lines) == 2
    assert one.sql("SELECT count(*) FROM lessons WHERE gone_at IS NULL") == [(2,)]


@pytest.mark.usefixtures("context7")
def test_the_index_of_one_machine_brings_nothing_back(machines: tuple[Project, Project]) -> None:
    one, two = machines
    one.research()
    for number in range(10):  # more states than are remembered for one folder
        two.research(
            request(topic=f"topic {number}", question=f"What is topic {number}?", tags=[f"t{number}"])
        )
    [[entry_id]] = two.sql("SELECT id FROM entries WHERE topic = 'repeatable options'")
    assert two.run("entries", "remove", entry_id).returncode == 0
    one.research(request(topic="another", question="What is another?", tags=["another"]))
    assert one.sql("SELECT count(*) FROM entries WHERE topic = 'repeatable options'") == [(0,)]
    assert list(one.base.glob("index.yaml.bak*")) == []


@pytest.mark.parametrize("url", ["postgresql+psycopg://kr:sesame@127.0.0.1:1/kr"])
def test_research_goes_on_without_a_server(tmp_path: Path, url: str) -> None:
    project = Project(tmp_path / "project", env={"KR_DATABASE_URL": url})
    with context7_server() as server:
        project.use_context7(server.url)
        done = project.run("research", "--request", "-", "--format", "json", stdin=json.dumps(request()))
    answer = json.loads(done.stdout)
    assert answer["status"] in {"success", "partial"}
    assert any("127.0.0.1" in error["message"] for error in answer["errors"])
    assert b"sesame" not in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr
