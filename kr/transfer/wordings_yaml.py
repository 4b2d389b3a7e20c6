"""``_wordings.yaml``: what entries were asked, beside an index in another folder (SPEC 3.2 and 6.1).

The index keeps the nine keys of seed 002. Without these words the entries would not be found elsewhere as they are
here, so that they go along in a file of their own: one item for each entry's question, and for each wording.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from kr.store.keys import pair_of
from kr.store.store import Store
from kr.store.unit import Unit
from kr.store.wordings import Need, Wording
from kr.transfer.index_yaml import render_items
from kr.transfer.items import Asked, BadItem, check_asked
from kr.transfer.read_index import Bad, read_items
from kr.values import Entry

WORDINGS = "_wordings.yaml"


def render_wordings(unit: Unit) -> str | None:
    """Render the questions and wordings of all entries, live or archived, sorted by id, older before newer.

    None where nothing is known: then there is no need of a file.
    """
    known: dict[str, Entry] = {row.entry.id: row.entry for row in unit.archive.all()}
    known |= {entry.id: entry for entry in unit.entries.all()}
    wordings = unit.wordings.all()
    asked = (it for _, entry in sorted(known.items()) for it in _of(entry, wordings.get(entry.id, ())))
    items = [_item(each) for each in asked]
    return render_items(items) if items else None


def take_in_wordings(store: Store, file: Path, data: bytes, *, now: datetime) -> list[str]:
    """Give the entries that are here what the file says of them; what they know is left. Returns what was wrong.

    Raises ``IndexUnreadable``, or a ``StoreError``.
    """
    bad: list[str] = []
    items = list(read_items(data))
    with store.write() as unit:
        for found in items:
            if isinstance(found, Bad):
                bad.append(f"{file}:{found.line}: {found.reason}")
                continue
            try:
                _take(unit, check_asked(found.fields, now=now))
            except BadItem as error:
                bad.append(f"{file}:{found.line}: {error}")
    return bad


def _of(entry: Entry, wordings: Iterable[Wording]) -> Iterator[Asked]:
    whose = (entry.id, entry.framework, entry.topic)
    if entry.question is not None:
        need = Need(entry.topic, entry.tags, entry.question)
        yield Asked(*whose, "question", need, entry.researched_at or entry.created, None)
    for wording in wordings:
        need = Need(wording.topic, wording.tags, wording.question)
        yield Asked(*whose, "wording", need, wording.at, wording.session_id)


def _item(asked: Asked) -> Mapping[str, str | tuple[str, ...]]:
    item: dict[str, str | tuple[str, ...]] = {
        "id": asked.id,
        "framework": asked.framework,
        "entry_topic": asked.entry_topic,
        "kind": asked.kind,
        "topic": asked.need.topic,
        "tags": asked.need.tags,
        "question": asked.need.question,
        "at": asked.at,
    }
    return item if asked.session_id is None else {**item, "session_id": asked.session_id}


def _take(unit: Unit, asked: Asked) -> None:
    pair = pair_of(asked.framework, asked.entry_topic)
    live = unit.entries.get(asked.id)
    entry = live or next((row.entry for row in unit.archive.of_id(asked.id)), None)
    if entry is None or pair_of(entry.framework, entry.topic) != pair:
        return
    if asked.kind == "question" and entry.question is None:
        unit.entries.set_question(asked.id, asked.need.question, at=asked.at)
    else:
        unit.wordings.keep(entry, asked.need, at=asked.at, session_id=asked.session_id)
