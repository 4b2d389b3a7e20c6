"""docs/sql.md against a live database: every table, view and column, and every recipe in two programs."""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from kr.stats import spared
from kr.store import backup, ledger, saving
from kr.store.engine import Store
from kr.times import to_text
from tests.support.postgresql import Databases
from tests.support.samples import fill
from tests.support.stores import ROOT, draft, on_server, sql

PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^### ([^\n]+)\n(?:(?!^#)[^\n]*\n)*?```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
PUBLIC = {
    "entries": "id, framework, framework_version, topic, tags, path, created, last_accessed, status, confidence, sha256, question, "
    "origin, written_by, revision",
    "archived_entries": "id, framework, framework_version, topic, tags, path, created, last_accessed, status, "
    "confidence, sha256, archived_at, reason",
    "lessons": "id, date, phase, tags, summary, ref, event_type, story_key, session_id, recorded_at, injected, recurred",
    "requests": "id, at, mode, story_key, session_id, framework, framework_version, topic, status, tier, entry_id, "
    "persona, project, duration_ms, budget_remaining, question, answer_tokens",
    "ratings": "entry_id, revision, session_id, story_key, outcome, note, at",
    "source_calls": "id, request_id, at, source, outcome, charged, duration_ms, url, reason",
}
VIEWS = {
    "hit_rate_by_day",
    "hit_rate_by_framework",
    "spending_by_story",
    "source_reliability",
    "next_evictions",
    "lessons_by_phase",
    "reports",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with Store(None, tmp_path_factory.mktemp("recipes"), archive_after_days=1000) as store:
        now = datetime.now(UTC)
        fill(store, now)
        told = draft(
            "zod", "unknown keys", origin="finding", question="Are they refused?", written_by="agent:s-1"
        )
        finding = saving.save(store, told, "# zod - unknown keys\n", now).entry
        rated = (finding.id, finding.revision, "s-2", "wrong", "gone in 5", to_text(now))
        columns = "entry_id, revision, session_id, outcome, note, at"
        sql(store.path, f"INSERT INTO ratings ({columns}) VALUES (?,?,?,?,?,?)", *rated)
        sql(
            store.path,
            "UPDATE requests SET entry_id = 'vue-slots', answer_tokens = 300 WHERE topic = 'slots'",
        )
        sql(store.path, "UPDATE source_calls SET answer_tokens = 5000 WHERE charged")
        yield store.path


def documented() -> dict[str, list[str]]:
    """The columns under each heading that has a table of them."""
    found = {}
    for name, body in re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", body, re.MULTILINE)
        columns = [name.strip("`") for row in rows for name in row.split(", ")]
        if columns:
            found[name] = columns
    return found


def columns_of(database: Path, name: str) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]


def names_of(database: Path, kind: str) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%'"
        return {row[0] for row in connection.execute(query, (kind,))}


def test_every_public_table_and_view_is_documented_with_columns_that_are_there(database: Path) -> None:
    page = documented()
    assert page.keys() == PUBLIC.keys() | VIEWS
    assert names_of(database, "view") == VIEWS
    for name, columns in page.items():
        assert set(columns) <= set(columns_of(database, name)), name
        assert name in VIEWS or set(PUBLIC[name].split(", ")) <= set(columns), name
        assert name in PUBLIC or sorted(columns) == sorted(columns_of(database, name)), name


def test_datasette_is_told_of_every_table_and_hides_kr_s_own(database: Path) -> None:
    told = yaml.safe_load((ROOT / "deploy" / "datasette.yaml").read_text())["databases"]["kr"]["tables"]
    tables = {name for name in names_of(database, "table") if not name.startswith("entry_search_")}
    assert told.keys() == tables | {"sqlite_sequence"}
    assert {name for name, known in told.items() if not known.get("hidden")} >= PUBLIC.keys()
    for name, known in told.items():
        columns = {
            known.get("label_column"),
            known.get("sort"),
            known.get("sort_desc"),
            *known.get("facets", ()),
        }
        assert columns - {None} <= set(columns_of(database, name)), name


def test_there_are_enough_recipes_and_all_have_a_name() -> None:
    assert len(RECIPES) >= 6
    assert len(RECIPES) == PAGE.count("```sql")
    assert len({title for title, _ in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("recipe", [recipe for _, recipe in RECIPES], ids=[title for title, _ in RECIPES])
def test_a_recipe_runs_in_python_and_finds_something(database: Path, recipe: str) -> None:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        assert connection.execute(recipe).fetchall()


@pytest.fixture(scope="module")
def server(database: Path, postgresql: Databases) -> str:
    """The same rows on PostgreSQL."""
    url = postgresql.clean()
    with Store(None, database.parent) as old, Store(url, database.parent) as new:
        backup.copy(old, new)
    return url


@pytest.mark.parametrize(
    "query", [*(recipe for _, recipe in RECIPES), *(f"SELECT * FROM {name}" for name in sorted(VIEWS))]
)
def test_recipes_and_views_say_the_same_on_postgresql(database: Path, server: str, query: str) -> None:
    here, there = sql(database, query), on_server(server, query)
    assert sorted(map(_plain, here)) == sorted(map(_plain, there))


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(f"{float(it):.4f}" if isinstance(it, int | float | Decimal) else str(it) for it in row)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 program is not installed")
@pytest.mark.parametrize("recipe", [recipe for _, recipe in RECIPES], ids=[title for title, _ in RECIPES])
def test_a_recipe_runs_in_the_plain_program(database: Path, recipe: str) -> None:
    done = subprocess.run(
        ["sqlite3", "-readonly", "-bail", str(database)],
        input=recipe,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_recipe_for_tokens_spared_says_what_stats_says(database: Path) -> None:
    (recipe,) = [recipe for title, recipe in RECIPES if title.startswith("How many tokens")]
    with closing(sqlite3.connect(database)) as connection:
        counted = connection.execute(recipe).fetchall()
    with Store(None, database.parent) as store, store.read() as tx:
        told = spared(ledger.spared_by_day(tx))
    assert counted == [(told["answers"], told["tokens"])] == [(5, 5 * (2 * 5000 - 300))]
