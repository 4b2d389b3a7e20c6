from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from kr.server.access import Access, Policy
from kr.server.http import create_http_app
from kr.server.worker import Workers
from tests.support.program import Project
from tests.support.sprint import fill_sprint

NAMES = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Site:
    """A project with its page: ``client`` is a browser without scripts, ``app`` the application for a real one."""

    project: Project
    client: TestClient
    app: Access


@pytest.fixture(scope="session")
def sprint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page over a simulated sprint, a small one; tests change it, each something of its own."""
    with site(tmp_path_factory.mktemp("sprint"), entries=24, requests=300) as found:
        yield found


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Site]:
    """A page where nobody has asked anything."""
    with site(tmp_path) as found:
        yield found


def soup(of: Site, path: str, status: int = 200) -> BeautifulSoup:
    response = of.client.get(path)
    assert response.status_code == status, response.text
    return BeautifulSoup(response.text, "html.parser")


def one(within: Tag, selector: str) -> Tag:
    found = within.select_one(selector)
    assert found is not None, f"{selector} in {within.get_text(' ', strip=True)}"
    return found


def post(of: Site, form: Tag, **changes: str) -> Any:
    """Send a form as a browser does."""
    fields = {str(field["name"]): str(field.get("value", "")) for field in form.select("input[name]")}
    texts = {str(field["name"]): field.get_text() for field in form.select("textarea")}
    return send(of, str(form["action"]), {**fields, **texts, **changes})


def send(of: Site, path: str, form: dict[str, str]) -> Any:
    return of.client.post(path, data=form, headers={"Origin": "http://localhost"})


def message(of: Site, response: Any) -> str:
    assert response.status_code == 303, response.text
    return one(soup(of, response.headers["location"]), ".message").get_text()


@contextmanager
def site(
    folder: Path,
    *,
    entries: int = 0,
    requests: int = 0,
    token: str | None = None,
    review_token: str | None = None,
) -> Iterator[Site]:
    """Make a project in a folder, fill it, and serve it."""
    project = Project(folder / "project")
    project.clock.now = datetime.now(UTC)
    with project.app() as app:
        if entries:
            file, now = app.settings.lessons_file, project.clock()
            fill_sprint(app.store, file, now, entries=entries, requests=requests)
        policy = Policy(names=NAMES, token=token, review_token=review_token)
        served = create_http_app(Workers(app, workers=8), policy)
        client = TestClient(served, base_url="http://localhost", follow_redirects=False)
        yield Site(project, client, served)
