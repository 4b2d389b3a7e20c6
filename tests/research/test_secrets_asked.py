"""A secret in a question is taken out before it is sent or kept (rule 8): agents paste what a tool printed."""

import json
from pathlib import Path

import pytest

from kr.guard import SECRET, mask_secrets
from kr.models import to_plain
from tests.support.mcp_servers import context7_server
from tests.support.program import Project, request
from tests.support.secret_shapes import SHAPES


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def everything(project: Project) -> str:
    files = (path for path in project.base.rglob("*") if path.is_file())
    return "\n".join(f"{path}\n{path.read_bytes().decode(errors='replace')}" for path in files)


# A line of an output says more than a sentence that quotes it: what the guard itself would not find there is no concern here.
KNOWN = [
    (question, secret)
    for line, secret in SHAPES.values()
    if secret not in mask_secrets(question := f"Why does {line.format(secret)} fail?")
]


@pytest.mark.effort(400, 40)
def test_no_secret_of_a_known_shape_is_kept_or_answered(project: Project, effort: int) -> None:
    assert len(KNOWN) > 0.95 * len(SHAPES)
    some = KNOWN[:: max(1, len(KNOWN) // effort)]
    with project.app() as app:
        for question, secret in some:
            answers = [
                app.research.document({"framework": "vue", "question": question, "max_calls": 0}),
                app.research.document(request(topic=question, tags=[question], question=question)),
            ]
            assert secret not in json.dumps([to_plain(answer) for answer in answers]), question
    kept = everything(project)
    assert SECRET in kept
    assert [question for question, secret in some if secret in kept] == []


def test_no_source_hears_a_secret(project: Project) -> None:
    secret = "ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789"
    with context7_server() as context7:
        project.use_context7(context7.url)
        done = project.run("research", "vue", f"Why does Authorization: Bearer {secret} give 401?")
        assert done.returncode == 0
        calls = repr(context7.calls())
    assert SECRET in calls
    assert secret not in calls
    assert secret not in everything(project) + done.stdout.decode() + done.stderr.decode()
