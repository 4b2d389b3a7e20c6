"""What commands print, for their pages: a small knowledge base of a simulated sprint, at a time of its own."""

import tempfile
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from kr.app import App
from kr.cli import entries, lessons, research
from kr.cli.common import Output, shown
from kr.models import to_plain
from kr.settings import load_settings
from tests.support.sprint import fill_sprint

_WIDTH = 80
_NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

_PACKAGE = '{"dependencies": {"react": "^18.3.0", "vue": "3.5.4", "fastapi": "^0.115.0"}}'
_ASKED = {
    "framework": "fastapi",
    "framework_version": "0.115",
    "question": "How do I close a database session after each request when it comes from a dependency?",
}


def _research(app: App) -> Output:
    answer = app.research.document(_ASKED, include_report=True)
    return Output(value=to_plain(answer), view=partial(research.research_view, is_whole=False))


def _lessons(app: App) -> Output:
    with app.lessons() as service:
        return Output(value=service.lessons(phase="dev-execution", limit=2), columns=lessons.LISTED)


def _inject(app: App) -> Output:
    asked = {"story_key": "0-0", "session_id": "terminal", "lessons_inject": {"phase": "e2e-inspection"}}
    return Output(value=to_plain(app.research.inject(asked)), view=lessons.injection_view)


def _entries(app: App) -> Output:
    return Output(value=app.entries(framework="fastapi", limit=3)["entries"], columns=entries.LISTED)


def _archive(app: App) -> Output:
    return Output(value=app.catalog.archive(limit=3), columns=entries.ARCHIVED)


def _search(app: App) -> Output:
    return Output(value=app.search_all("context provider", limit=2))


_SHOWN: dict[str, dict[str, Callable[[App], Output]]] = {
    "explain": {f'kr explain fastapi "{_ASKED["question"]}"': lambda app: Output(value=app.explain(_ASKED))},
    "lessons": {
        "kr lessons list --phase dev-execution --limit 2": _lessons,
        "kr lessons inject --phase e2e-inspection": _inject,
    },
    "versions": {"kr versions": lambda app: Output(value=app.versions())},
    "warm": {"kr warm": lambda app: Output(value=app.warm())},
    "doctor": {"kr doctor": lambda app: Output(value=app.doctor())},
    "export-yaml": {
        "kr export-yaml --output moved": lambda app: Output(value=app.export_yaml(Path("moved")))
    },
    "stats": {"kr stats": lambda app: Output(value=app.stats())},
    "search": {"kr search context provider --limit 2": _search},
    "entries": {"kr entries list --framework fastapi --limit 3": _entries},
    "archive": {"kr archive list --limit 3": _archive},
    "research": {f'kr research fastapi "{_ASKED["question"]}"': _research},  # last: it counts as a request
}
"""For each command's page, command lines and what makes their output."""


@cache
def outputs() -> dict[str, dict[str, str]]:
    """Give for each command its command lines, and what each prints to a terminal of 80 columns."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environ = {
            "HOME": place,
            "KR_SOURCES": "[]",
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_AUTO_EXPORT": "false",
            "PATH": place,
        }
        (folder / "package.json").write_text(_PACKAGE)
        settings = load_settings(config=None, knowledge_base=folder / "kb", environ=environ, cwd=folder)
        with App(settings, environ=environ, cwd=folder, clock=lambda: _NOW) as app:
            fill_sprint(app.store, app.settings.lessons_file, _NOW, entries=40, requests=120)
            return {
                name: {
                    line: _folded(shown(make(app)).replace(place, "/srv/shop"))
                    for line, make in lines.items()
                }
                for name, lines in _SHOWN.items()
            }


def _folded(text: str) -> str:
    """Wrap what the terminal would wrap."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent=indent or "  ", break_on_hyphens=False) or [""]
    return "\n".join(lines)
