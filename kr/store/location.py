"""Where the database is: from ``KR_DATABASE_URL`` or beside the reports. Imports nothing heavy."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from kr.errors import StoreError


def database_path(database_url: str | None, knowledge_base: Path) -> Path:
    """Return the SQLite file that a URL names (``sqlite:///relative``, ``sqlite:////absolute``).

    Without a URL it is ``kr.db`` in the knowledge base. Another scheme, a host, or a database in memory
    raises ``StoreError`` (a password in the URL is not repeated).
    """
    if database_url is None:
        return knowledge_base / "kr.db"
    scheme, _, rest = database_url.partition("://")
    if scheme not in {"sqlite", "sqlite+pysqlite"}:
        raise StoreError(
            f"KR_DATABASE_URL: scheme {scheme[:32]!r} is not supported; use sqlite:///path/to/kr.db"
        )
    parts = urlsplit("//" + rest)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or path in {"", ":memory:"}:
        raise StoreError(
            "KR_DATABASE_URL: name one file, as in sqlite:///path/to/kr.db or sqlite:////absolute/kr.db"
        )
    return Path(path)
