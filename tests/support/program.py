"""kr as its users meet it: the app in this process with a clock of ours, or the program as a process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kr.app import App
from kr.models import Entry, to_plain
from kr.settings import load_settings
from kr.store import saving
from kr.store.engine import Store
from tests.support.forked import shared
from tests.support.stores import sql as run_sql

VUE = {
    "framework": "vue",
    "framework_version": "3.5",
    "topic": "repeatable options",
    "tags": ["options", "configuration"],
    "question": "How do I make an option repeatable?",
}


class Clock:
    """A clock that moves when it is told to, and a little with every look, as clocks do."""

    def __init__(self, now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


def request(**changes: Any) -> dict[str, Any]:
    """Make a research request about vue; ``research_query`` keys and top-level keys may be changed by name."""
    query = {**VUE, **{key: value for key, value in changes.items() if key in VUE}}
    top = {key: value for key, value in changes.items() if key not in VUE}
    return {"story_key": "3-1", "mode": "research", "session_id": "s-1", "research_query": query, **top}


def command(more: Mapping[str, str]) -> list[str]:
    """Return what starts the program: a fork that has its imports, unless ``more`` is for a new interpreter."""
    is_read_at_start = any(name.startswith(("LC_", "LANG", "PYTHON")) for name in more)
    return [sys.executable, "-m", "kr"] if is_read_at_start else [shared()]


@dataclass
class Project:
    """A folder with a knowledge base and an environment of its own; no source is configured unless asked for.

    ``env`` holds ``KR_*`` variables for both ways of running.
    """

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        # An environment without packages, or kr would ask the machine's Python for what it has.
        (self.root / ".venv" / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)
        self.env = {
            "KR_SOURCES": "[context7]",
            "KR_SERVERS": '{"context7": null, "deepwiki": null}',
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_LOCAL_DOCS": "false",
            **self.env,
        }
        config = self.root / "kr.yaml"
        if not config.exists():
            config.write_text("role_mapping: {knowledge_researcher_persona: lean}\nknowledge_research: {}\n")

    @property
    def base(self) -> Path:
        return self.root / ".kr"

    @property
    def database(self) -> Path:
        return self.base / "kr.db"

    def use_context7(self, url: str) -> None:
        self.env["KR_SERVERS"] = json.dumps({"context7": {"url": url}, "deepwiki": None})

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a process: what it needs of ours, nothing of kr's but what is said here."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KR_")}
        for name in ("VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            kept.pop(name, None)
        url = os.environ.get("KR_DATABASE_URL")
        database = {} if url is None else {"KR_DATABASE_URL": url}
        paths = os.pathsep.join(sys.path)
        return {**kept, **database, "HOME": str(self.root), "PYTHONPATH": paths, **self.env, **more}

    def app(self) -> App:
        environ = self.environ()
        settings = load_settings(config=None, knowledge_base=None, environ=environ, cwd=self.root)
        return App(settings, environ=environ, cwd=self.root, clock=self.clock)

    def research(self, document: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Answer a request in this process."""
        with self.app() as app:
            data = json.dumps(document if document is not None else request()).encode()
            return to_plain(app.research.document(data, **options))

    def know(self, *topics: str) -> None:
        """Have an entry about each of these topics of vue, written now, that no source was asked for."""
        with self.app() as app:
            for topic in topics:
                told = Entry(
                    framework="vue",
                    framework_version="3.5",
                    topic=topic,
                    tags=(topic,),
                    confidence="high",
                    question=f"What are {topic}?",
                )
                saving.save(app.store, told, f"# vue - {topic}\n\nAbout {topic} alone.\n", self.clock())

    def run(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        timeout: float = 60,
        more: Mapping[str, str] | None = None,
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run the program as a process of its own."""
        return subprocess.run(
            [*command(more or {}), *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.root,
            env=self.environ(**more or {}),
            timeout=timeout,
            check=False,
        )

    def ask(self, document: Mapping[str, Any] | str, *arguments: str, **more: str) -> dict[str, Any]:
        """Run ``kr research --request - --format json`` and read its answer."""
        text = document if isinstance(document, str) else json.dumps(document)
        done = self.run("research", "--request", "-", "--format", "json", *arguments, stdin=text, more=more)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (1 if answer["status"] == "failure" else 0)
        return answer

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement in the database, as people do."""
        return run_sql(self.store(), statement, *parameters)

    def store(self) -> Store:
        """Return the store that kr uses, which opens nothing before it is used."""
        return Store(self.environ().get("KR_DATABASE_URL"), self.base)

    def report(self, answer: Mapping[str, Any]) -> str:
        path: str = answer["results"]["report_path"]
        return (self.base / path).read_text(encoding="utf-8")
