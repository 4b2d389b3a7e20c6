"""``_wordings.yaml``: what entries were asked, and when, beside an index in another folder (SPEC 3.2 and 6.1).

The index keeps the nine keys of seed 002, and of times the days. Without these words the entries would not be found
elsewhere as they are here, and without the times not leave in the same order; so both go along in a file of their own:
one item for each live entry's times, each entry's question, and each wording.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from kr.store.entries import pair_of
from kr.store.requests import Need, Wording
from kr.store.session import UnitOfWork
from kr.store.store import Store
from kr.transfer.export import render_items
from kr.transfer.read_index import Asked, Bad, BadItem, Times, check_asked, check_times, read_items
from kr.values import Entry

WORDINGS = "_wordings.yaml"
_TIMES = "times"
_EXACT = ("created", "last_accessed", "researched_at", "fresh_until")


def render_wordings(unit: UnitOfWork) -> str | None:
    """Render the questions and wordings of all entries, live or archived, sorted by id, older before newer.

    None where nothing is known: then there is no need of a file.
    """
    known: dict[str, Entry] = {row.entry.id: row.entry for row in unit.archive.all()}
    known |= {entry.id: entry for entry in unit.entries.all()}
    wordings = unit.wordings.all()
    asked = (it for _, entry in sorted(known.items()) for it in _of(entry, wordings.get(entry.id, ())))
    items: list[Mapping[str, str | tuple[str, ...]]] = [
        _times(entry) for entry in unit.entries.all() if _says_more_than_days(entry)
    ]
    items += [_item(each) for each in asked]
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
                if found.fields.get("kind") == _TIMES:
                    _take_times(unit, check_times(found.fields))
                else:
                    _take(unit, check_asked(found.fields, now=now))
            except BadItem as error:
                bad.append(f"{file}:{found.line}: {error}")
    return bad


def _says_more_than_days(entry: Entry) -> bool:
    times = (getattr(entry, name) for name in _EXACT)
    return any(time is not None and not _is_day(time) for time in times)


def _is_day(time: str) -> bool:
    return time[10:19] == "T00:00:00"


def _times(entry: Entry) -> Mapping[str, str]:
    item = {"id": entry.id, "framework": entry.framework, "entry_topic": entry.topic, "kind": _TIMES}
    told = {name: getattr(entry, name) for name in _EXACT}
    return {**item, **{name: time for name, time in told.items() if time is not None}}


def _take_times(unit: UnitOfWork, times: Times) -> None:
    """Say exactly when, where the entry knows the day alone: an access since then is later, and stays."""
    entry = unit.entries.get(times.id)
    if entry is None or pair_of(entry.framework, entry.topic) != pair_of(times.framework, times.entry_topic):
        return
    exact = {name: _exact(getattr(entry, name), getattr(times, name)) for name in _EXACT}
    unit.entries.set_times(entry.id, exact)


def _exact(known: str | None, told: str | None) -> str | None:
    is_day = known is not None and told is not None and _is_day(known) and known[:10] == told[:10]
    return told if is_day else known


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


def _take(unit: UnitOfWork, asked: Asked) -> None:
    pair = pair_of(asked.framework, asked.entry_topic)
    live = unit.entries.get(asked.id)
    entry = live or next((row.entry for row in unit.archive.of_id(asked.id)), None)
    if entry is None or pair_of(entry.framework, entry.topic) != pair:
        return
    if asked.kind == "question" and entry.question is None:
        unit.entries.set_question(asked.id, asked.need.question, at=asked.at)
    else:
        unit.wordings.keep(entry, asked.need, at=asked.at, session_id=asked.session_id)
