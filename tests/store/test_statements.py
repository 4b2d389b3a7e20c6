"""Every statement that is written as text, against the tables of a new database."""

import pkgutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module

import pytest

import kr.store
from kr.store.database import create_tables

_VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ")


def _statements() -> Iterator[tuple[str, str]]:
    for module in pkgutil.iter_modules(kr.store.__path__, "kr.store."):
        for name, value in vars(import_module(module.name)).items():
            texts = (
                value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
            )
            for text in texts:
                if isinstance(text, str) and text.startswith(_VERBS) and "{" not in text:
                    yield f"{module.name}.{name}", text


@pytest.fixture(scope="module")
def tables() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_tables(connection)
        yield connection


def test_there_are_statements() -> None:
    assert len(list(_statements())) > 80


@pytest.mark.parametrize(
    "statement", [pytest.param(text, id=name) for name, text in dict(_statements()).items()]
)
def test_a_statement_fits_the_tables(tables: sqlite3.Connection, statement: str) -> None:
    class Anything(dict[str, None]):
        def __missing__(self, name: str) -> None: ...

    tables.execute(f"EXPLAIN {statement}", Anything())
