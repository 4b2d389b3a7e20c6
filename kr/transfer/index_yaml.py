"""The text of ``index.yaml`` and ``_archived-index.yaml`` (seed 002, "Cache Index Schema"; SPEC 6.1).

Every value is a double-quoted scalar, whose escapes YAML 1.1 and 1.2 share: `2.10`, `yes` and dates stay
text in any reader. Written by hand because a general emitter neither keeps the seed's style nor gives the
same bytes with and without its C library.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from kr.store.archive import Archived
from kr.values import Entry

HEADER = "# Written by kr from its database. An edited item is taken in by `kr import-yaml` if its last_accessed is later.\n"

Item = Mapping[str, str | tuple[str, ...]]

_EMOJI = "[\u203c-\u3299\ufe0f\U0001f000-\U0001faff]"
_NOT_PRINTABLE = re.compile(
    "[\x7f-\x9f\xad\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff\U000e0000-\U000e0fff]"
    # The joiner makes one sign of two emoji, and is seen there; anywhere else it hides.
    f"|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})"
)


def quoted(text: str) -> str:
    """Write ``text`` as a double-quoted scalar in one line; what a reader can't see is escaped."""
    return _NOT_PRINTABLE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def render_index(entries: Iterable[Entry]) -> str:
    """Render live entries, sorted by id."""
    return render_items(_item(entry, entry.status) for entry in sorted(entries, key=lambda entry: entry.id))


def render_archive(
    archived: Iterable[Archived],
    *,
    report_of: Callable[[Archived], str | None] | None = None,
    is_continued: bool = False,
) -> Iterator[str]:
    """Render archived rows as they come, the header first; ``is_continued``: more of a file that has it already.

    ``report_of`` says where a row's text stands beside the file.
    """
    items = (_archived_item(row, report_of) for row in archived)
    return render_parts(items, is_continued=is_continued)


def _archived_item(row: Archived, report_of: Callable[[Archived], str | None] | None) -> Item:
    item = {**_item(row.entry, "archived"), "archived_at": row.archived_at, "reason": row.reason}
    report = report_of(row) if report_of is not None else None
    return item if report is None else {**item, "report": report}


def _item(entry: Entry, status: str) -> dict[str, str | tuple[str, ...]]:
    return {
        "id": entry.id,
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": entry.tags,
        "path": entry.path,
        "created": entry.created[:10],
        "last_accessed": entry.last_accessed[:10],
        "status": status,
    }


def render_items(items: Iterable[Item]) -> str:
    """Render items, whose first key is ``id``, as a list."""
    return "".join(render_parts(items))


def render_parts(items: Iterable[Item], *, is_continued: bool = False) -> Iterator[str]:
    """Render a list item by item; an empty one, unless it ``is_continued``, is told as such."""
    if not is_continued:
        yield HEADER
    is_empty = not is_continued
    for item in items:
        is_empty = False
        lines = (f"  {key}: {_value(value)}\n" for key, value in item.items())
        yield f"- {''.join(lines)[2:]}"
    if is_empty:
        yield "[]\n"


def _value(value: str | tuple[str, ...]) -> str:
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"
