"""``kr doctor``: what is wrong with a knowledge base, and what ``--repair`` does about it.

A corrupt database is not mended cell by cell: a person brings a backup back, or ``--repair`` sets it aside and builds a new one from
``index.yaml``, ``_archived-index.yaml`` and the report files. Nothing is deleted for good.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kr.errors import KrError, ReportUnwritable, SourceFailure, SourceNotAsked, StoreError
from kr.models import Entry, Learned, Query
from kr.report import origin_of, parse_report
from kr.research.miss import configured_sources
from kr.settings import Settings
from kr.settings.project import tracked_name
from kr.sources.base import Ask
from kr.sources.fetch import complete
from kr.sources.local_docs import Folder
from kr.store import backup, lookup, saving
from kr.store import entries as entry_rows
from kr.store.engine import Store
from kr.store.entries import edit_at
from kr.text import counted, one_line
from kr.times import parse_time, to_text
from kr.transfer import ARCHIVE, INDEX
from kr.transfer.export_yaml import export_yaml
from kr.transfer.import_yaml import import_report, import_yaml
from kr.transfer.place import Item

_MOST_SHOWN = 5
_SECONDS_FOR_A_SOURCE = 20.0
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ANEW = "set it aside, and make a new one from the exports and the reports"
_ADVICE = {
    "newer": ". Install that kr, or `kr db restore` an older backup",
    "foreign": ". Set KR_DATABASE_URL or --kb to another place",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a check found; ``information`` is no problem. ``repair`` says what ``fix`` does; ``fix`` says what it did, and may raise."""

    check: str
    severity: Literal["error", "warning", "information"]
    subject: str
    message: str
    repair: str | None = None
    fix: Callable[[], str] | None = None

    def plain(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("check", "severity", "subject", "message", "repair")}


Check = Callable[[], Iterator[Diagnosis]]


class Doctor:
    """Examines and repairs one knowledge base: its database, and the reports and exports in ``folder``."""

    def __init__(
        self, store: Store, folder: Path, *, auto_export: bool, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._folder = folder
        self._auto_export = auto_export
        self._clock = clock

    def findings(self) -> Iterator[Diagnosis]:
        """Say what is wrong, in the order in which it is repaired; an error that stops a check is a finding itself."""
        for check in self._checks():
            try:
                yield from [*check()]
            except (KrError, OSError) as error:
                name, why = check.__name__.removeprefix("_"), f"can't be examined: {error}"
                yield Diagnosis(name, "error", str(self._folder), why)

    def repair(self) -> list[dict[str, Any]]:
        """Do what the findings announce, and say of each what was ``done``. Each check sees what was repaired before it."""
        repaired = []
        for finding in self.findings():
            if finding.fix is not None:
                try:
                    done = finding.fix()
                except (KrError, OSError) as error:
                    done = f"failed: {error}"
                repaired.append(finding.plain() | {"done": done})
        if repaired and self._auto_export:
            with suppress(KrError, OSError):  # what is in its way is a finding of its own
                self._export()
        return repaired

    def _checks(self) -> Iterator[Check]:
        yield self._database
        with suppress(StoreError):  # which the first check has named
            if backup.inspect(self._store).state == "current":
                yield self._integrity
                if not self._store.is_shared:  # else the folder is a copy, which is made as kr answers
                    yield from (self._reports, self._orphans, self._exports)

    def _database(self) -> Iterator[Diagnosis]:
        """What this user may not write, what git keeps, and a database that is absent, corrupt, of another version or program."""
        store, found = self._store, backup.inspect(self._store)
        for path in (self._folder,) if store.is_shared else (self._folder, store.path):
            if path.exists() and not os.access(path, os.W_OK):
                why = "may not be written by this user; let its owner run kr, or change its mode or mount"
                yield Diagnosis("permissions", "error", str(path), why)
        if not store.is_shared and (name := tracked_name(store.path)) is not None:
            why = f"is tracked by git, and is trusted like code: `git rm --cached {name}`, and ignore it"
            yield Diagnosis("tracked", "warning", str(store.path), why)
        about = partial(Diagnosis, "database", subject=store.location)
        if found.state == "absent" and (left := self._remains()):
            why, repair = f"there is no database, but there are {left}", "make a new database from them"
            yield about("error", message=why, repair=repair, fix=self._rebuild)
        elif found.state == "absent":
            why = "there is no knowledge base yet; `kr init` or the first research makes it"
            yield about("information", message=why)
        elif found.state == "corrupt":
            why = f"is corrupt: {found.problem}. `kr db restore FILE` brings a backup back, if there is one"
            yield about("error", message=why, repair=_ANEW, fix=self._replace)
        elif found.problem is not None:
            yield about("error", message=found.problem + _ADVICE.get(found.state, ""))

    def _remains(self) -> str:
        """Say what a new database could be made of; empty where there is nothing."""
        exports = [name for name in (INDEX, ARCHIVE) if (self._folder / name).is_file()]
        found = self._report_paths()
        return " and ".join([*exports, *([counted(len(found), "report")] if found else [])])

    def _replace(self) -> str:
        self._store.close()
        aside = backup.set_aside(self._store.path, self._moment())
        made = self._rebuild()
        return f"{made}; earlier texts, ratings and wordings are in the corrupt file alone, {aside}"

    def _rebuild(self) -> str:
        """Import the exports into a new database; the reports that they don't name follow as orphans."""
        with self._store.write() as tx:
            entry_rows.count(tx)
        if not any((self._folder / name).is_file() for name in (INDEX, ARCHIVE)):
            return "an empty database was made"
        result = import_yaml(self._store, self._folder, [self._folder], now=self._clock(), adopts=True)
        counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
        problems = [*map(str, result.unreadable), *map(str, result.refused)]
        refused = f" (not imported: {_some(problems)})" if problems else ""
        return f"from the exports: {counts or 'nothing'}{refused}"

    def _moment(self) -> str:
        return f"{self._clock():%Y%m%dT%H%M%SZ}"

    def _integrity(self) -> Iterator[Diagnosis]:
        """Broken pages, indexes, references, and texts that are not those that were written."""
        problems = backup.check(self._store)
        about = partial(Diagnosis, "integrity", "error", self._store.location)
        if strange := [line for line in problems if line.endswith(backup.NOT_OURS)]:
            yield about(_some(strange))
        if broken := [line for line in problems if line not in strange]:
            repair = f"back it up and rebuild its indexes; where that is not enough, {_ANEW}"
            yield about(f"is not sound: {_some(broken)}", repair, self._mend)

    def _mend(self) -> str:
        store, kept = self._store, None
        with suppress(StoreError):  # where more than its indexes is broken
            if not store.is_shared:
                kept = backup.backup(store.path, None, self._moment())
            with store.write() as tx:
                backup.rebuild_indexes(tx)
            if all(line.endswith(backup.NOT_OURS) for line in backup.check(store)):
                return f"indexes rebuilt; the database as it was: {kept}"
        return "its indexes can't be rebuilt" if store.is_shared else self._replace()

    def _reports(self) -> Iterator[Diagnosis]:
        """Entries whose report file is missing, edited or can't be read: the last is no reason to touch the entry."""
        with self._store.read() as tx:
            entries = entry_rows.all(tx)
            kept = {entry.id for entry in entries if lookup.text_of(tx, entry.sha256) is not None}
            edited = {entry.id for entry in entries if edit_at(tx, entry.path, entry.sha256) is not None}
        for entry in entries:
            state, is_kept = self._store.files.state(entry.path), entry.id in kept
            why, sync = f"its report {entry.path} is missing or empty", partial(self._sync_file, entry)
            if state == "unreadable":
                why = f"its report {entry.path} can't be read; the entry is left alone"
                yield Diagnosis("unreadable", "error", entry.id, why)
            elif state == "absent" and is_kept:
                repair = "write the file from the text in the database"
                yield Diagnosis("missing_report", "warning", entry.id, why, repair, sync)
            elif state == "absent":
                repair = "move it to the archive; its text is lost, so that only research can answer again"
                archive = partial(self._archive, entry)
                yield Diagnosis("missing_report", "error", entry.id, why, repair, archive)
            elif entry.id in edited and is_kept:
                why = f"somebody edited its report {entry.path}; whoever reads it next takes that in"
                repair = "take it in as a finding, unless it must wait for `kr review`"
                yield Diagnosis("edited_report", "information", entry.id, why, repair, sync)

    def _sync_file(self, entry: Entry) -> str:
        """Write a missing file, or take in what somebody wrote into it, as whoever reads the report does."""
        saving.read_report(self._store, entry)
        if self._store.files.state(entry.path) != "there":
            raise ReportUnwritable(f"{entry.path} can't be written")
        return "done"

    def _archive(self, entry: Entry) -> str:
        with self._store.write() as tx:
            entry_rows.archive(tx, entry.id, "manual", self._clock())
        return "archived"

    def _orphans(self) -> Iterator[Diagnosis]:
        """Report files that no entry has, live or archived."""
        with self._store.read() as tx:
            for path in self._report_paths():
                if entry_rows.holders(tx, "path", path):
                    continue
                about = partial(Diagnosis, "orphan", subject=path)
                item = self._read_item(path)
                if item is None:
                    why = "does not follow the template of reports; it is left alone"
                    yield about("information", message=why)
                    continue
                version = item.framework_version or "unknown"
                of_topic = entry_rows.of_pair(tx, item.framework, item.topic)
                if live := entry_rows.of_major(of_topic, version):
                    why = f"{live.id} has this framework, topic and major version; it is left alone"
                    yield about("information", message=why)
                else:
                    repair, fix = f"index it as {item.framework} - {item.topic}", partial(self._adopt, item)
                    yield about("warning", message="no entry has this report", repair=repair, fix=fix)

    def _adopt(self, item: Item) -> str:
        result = import_report(self._store, self._folder, item, now=self._clock())
        return result.refused[0].reason if result.refused else "indexed"

    def _read_item(self, path: str) -> Item | None:
        """Make the item of an index that a report's own header tells; None where it does not follow the template."""
        text = self._store.files.read_text(path)
        shape = parse_report(text)
        framework = _plain(shape.header["Framework"]) if shape else ""
        topic = _plain(shape.title.removeprefix("# ")).removeprefix(f"{framework} - ") if shape else ""
        if shape is None or not framework or not topic:
            return None
        now = self._clock()
        at = to_text(min(parse_time(shape.header["Research Date"]) or now, now))
        return Item(
            file=self._folder / INDEX,
            row=1,
            framework=framework,
            framework_version=_plain(shape.header["Version"]) or None,
            topic=topic,
            path=path,
            created=at,
            last_accessed=at,
            status="stale" if origin_of(text) in {"placeholder", "baseline"} else "fresh",
        )

    def _exports(self) -> Iterator[Diagnosis]:
        """Exports that are wanted and not there: a new database could not be made of them."""
        with self._store.read() as tx:
            is_wanted = self._auto_export and bool(entry_rows.count(tx))
        lacking = [name for name in (INDEX, ARCHIVE) if not (self._folder / name).is_file()]
        if is_wanted and lacking:
            why = f"{' and '.join(lacking)}: no such file"
            yield Diagnosis("export", "warning", str(self._folder), why, "export both files", self._export)

    def _export(self) -> str:
        export_yaml(self._store, self._folder)
        return "exported"

    def _report_paths(self) -> list[str]:
        """Return the Markdown files below ``frameworks/`` as the index writes paths, sorted; no links, nothing hidden."""
        found = []
        for here, folders, files in os.walk(self._folder / "frameworks"):
            folders[:] = [name for name in folders if not name.startswith(".")]
            at = Path(here).relative_to(self._folder)
            found += [(at / name).as_posix() for name in files if name.endswith(".md") and name[0] != "."]
        return sorted(found)


def check_sources(settings: Settings, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Ask each source and model one question, and say whether it answers; nothing is kept."""
    question = "How is state kept in a component?"
    query = Query(
        framework="react", framework_version="unknown", topic="state", tags=("state",), question=question
    )
    ask, model = Ask(query=query, known=Learned(repository="facebook/react")), settings.knowledge_research.llm
    asked: list[tuple[str, Callable[[], object]]] = []
    for source in configured_sources(settings, environ):
        if isinstance(source, Folder):  # about its own subject: that it can be read is all that is asked
            asked.append((source.name, source.check))
        else:
            asked.append((source.name, partial(source.ask, ask, timeout=_SECONDS_FOR_A_SOURCE)))
    if model.model:
        words = ("Answer with one word.", "Say yes.")
        asked.append(("llm", partial(complete, model, environ, *words, timeout=_SECONDS_FOR_A_SOURCE)))
    for name, use in asked:
        started = time.monotonic()
        try:
            use()
        except SourceNotAsked as failure:
            yield Diagnosis("source", "warning", name, failure.reason)
        except SourceFailure as failure:
            yield Diagnosis("source", "error", name, f"gave no answer: {failure.reason}")
        else:
            seconds = time.monotonic() - started
            yield Diagnosis("source", "information", name, f"answered in {seconds:.1f} s")


def _some(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_SHOWN
    return "; ".join(lines[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _plain(line: str) -> str:
    """Take the escapes of Markdown from a line of a header."""
    return one_line(_ESCAPED.sub(r"\1", line))
