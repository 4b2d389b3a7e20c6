"""The templates and static files of the page, read once from the package."""

import mimetypes
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined

from kr import __version__
from kr.server.page import texts

SAID = {
    "answered": "Kept. From now on this wording finds {of}.",
    "none": "Noted: none of them answers.",
    "restored": "{of} is live again.",
    "removed": "{of} is in the archive now.",
    "approve": "Approved. It is given to agents from now on.",
    "retire": "Retired. It is not given to agents any more.",
    "bring-back": "Brought back. It is given to agents again.",
    "pin": "Pinned. It goes before others of its phase.",
    "unpin": "Not pinned any more.",
}
"""What an action says when it is done, by its code; ``of`` is the entry."""

NAVIGATION = (
    ("/", "Overview"),
    ("/entries", "Entries"),
    ("/near-misses", "Near misses"),
    ("/lessons", "Lessons"),
    ("/archive", "Archive"),
    ("/spending", "Spending"),
    ("/sources", "Sources"),
)


class StaticFile(NamedTuple):
    """A file that the page loads. ``address`` changes with the content, so that a browser may keep it."""

    address: str
    content: bytes
    media_type: str


def _static() -> dict[str, StaticFile]:
    found = {}
    for file in (files("kr.server.page") / "static").iterdir():
        content = file.read_bytes()
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        address = f"/static/{file.name}?v={sha256(content).hexdigest()[:12]}"
        found[file.name] = StaticFile(address, content, kind)
    return found


STATIC = _static()


def render(template: str, request: Request, **context: Any) -> str:
    """Fill a template; ``context`` is what its view gives."""
    now = datetime.now(UTC)
    return (
        _environment()
        .get_template(template)
        .render(
            path=request.url.path,
            query=dict(request.query_params),
            now=now,
            ago=lambda text: texts.ago(text, now),
            **context,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kr.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(texts, name)
        for name in ("percent", "number", "short", "duration", "day", "plural", "passage", "marked")
    }
    environment.filters["address"] = lambda text: quote(text, safe="")
    environment.globals |= {
        "static": {name: file.address for name, file in STATIC.items()},
        "navigation": NAVIGATION,
        "version": __version__,
        "with_query": with_query,
        "percent_of": texts.percent,
        "short_of": texts.short,
        "number_of": texts.number,
    }
    return environment


def with_query(query: dict[str, str], **changes: Any) -> str:
    """Return a query with some of its values changed (an empty one goes), for links to the same view."""
    both = {**query, **{name: str(value) for name, value in changes.items()}}
    kept = {name: value for name, value in both.items() if value and name not in {"said", "of", "by"}}
    return f"?{urlencode(kept)}"
