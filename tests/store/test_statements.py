"""Every statement that is written as text, against the tables of a new database."""

import pkgutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module

from kr.store.database import create_tables

import kr.store

_VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ")


def _statements() -> Iterator[tuple[str, str]]:
    for module in pkgutil.iter_modules(kr.store.__path__, "kr.store."):
        for name, value in vars(import_module(module.name)).items():
            texts = (
                value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
            )
            for text in texts:
                if isinstance(text, str) and text.startswith(_VERBS) and not _is_part(text):
                    yield f"{module.name}.{name}", text


def _is_part(text: str) -> bool:
    """Whether a text is a beginning that others complete."""
    has_no_table = text.startswith("SELECT ") and " FROM entries AS e" not in text and "e.id" in text
    return "{" in text or text.endswith(" AND ") or has_no_table


def test_every_statement_fits_the_tables() -> None:
    class Anything(dict[str, None]):
        def __missing__(self, name: str) -> None: ...

    wrong = {}
    statements = list(_statements())
    with closing(sqlite3.connect(":memory:")) as tables:
        create_tables(tables)
        for name, text in statements:
            try:
                tables.execute(f"EXPLAIN {text}", Anything())
            except sqlite3.Error as error:
                wrong[name] = str(error)
    assert wrong == {}
    assert len(statements) > 80
