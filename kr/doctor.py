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
from kr.store import backup, lookup, reports
from kr.store import entries as entry_rows
from kr.store.engine import Store
from kr.store.reports import edit_at
from kr.text import counted, one_line
from kr.times import parse_time, to_text
from kr.transfer import ARCHIVE, INDEX
from kr.transfer.export_yaml import export_yaml, render_archive, render_index
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

Severity = Literal["error", "warning", "information"]
Fix = Callable[[], str]
"""Does what a finding announced, and says what was done. Raises ``KrError`` or ``OSError``."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a check found; ``information`` is no problem. ``repair`` says what ``fix`` would do."""

    check: str
    severity: Severity
    subject: str
    message: str
    repair: str | None = None
    fix: Fix | None = None

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
        self._files = store.files
        self._auto_export = auto_export
        self._clock = clock

    def findings(self) -> list[Diagnosis]:
        """Say what is wrong."""
        return [finding for check in self._checks() for finding in self._run(check)]

    def repair(self) -> list[dict[str, Any]]:
        """Do what the findings announce, and say of each what was ``done``. Each check sees what was repaired before it."""
        repaired = []
        for finding in (finding for check in self._checks() for finding in self._run(check)):
            if finding.fix is not None:
                try:
                    done = finding.fix()
                except (KrError, OSError) as error:
                    done = f"failed: {error}"
                repaired.append(finding.plain() | {"done": done})
        return repaired

    def _checks(self) -> Iterator[Check]:
        """Give the checks in the order in which they repair: a row must be right before it is exported."""
        try:
            is_file = not self._store.is_shared and bool(self._store.path)
        except StoreError as error:
            bad_url = Diagnosis("database", "error", "KR_DATABASE_URL", str(error))
            yield lambda: iter([bad_url])
            return
        yield self.check_permissions
        yield self.check_database
        if is_file:
            yield self.check_tracked
        if backup.inspect(self._store).state == "current":
            yield self.check_integrity
            if is_file:  # else the folder is a copy, which is made as kr answers
                yield from (self.check_reports, self.check_orphans, self.check_export)

    def _run(self, check: Check) -> list[Diagnosis]:
        """Run one check; an error that stops it is a finding itself."""
        findings: list[Diagnosis] = []
        try:
            findings += check()
        except (KrError, OSError) as error:
            name, why = check.__name__.removeprefix("check_"), f"can't be examined: {error}"
            findings.append(Diagnosis(name, "error", self._store.location, why))
        return findings

    def check_permissions(self) -> Iterator[Diagnosis]:
        """A knowledge base in which this user can save nothing: a read-only disk, somebody else's folder."""
        for path in (self._folder,) if self._store.is_shared else (self._folder, self._store.path):
            if path.exists() and not os.access(path, os.W_OK):
                why = "may not be written by this user; let its owner run kr, or change its mode or mount"
                yield Diagnosis("permissions", "error", str(path), why)

    def check_database(self) -> Iterator[Diagnosis]:
        """A database that is absent, corrupt, of another version, or another program's."""
        found = backup.inspect(self._store)
        about = partial(Diagnosis, "database", subject=self._store.location)
        if found.state == "absent" and (left := self._remains()):
            why = f"there is no database, but there are {left}"
            yield about("error", message=why, repair="make a new database from them", fix=self._rebuild)
        elif found.state == "absent":
            why = "there is no knowledge base yet; `kr init` or the first research makes it"
            yield about("information", message=why)
        elif found.state == "corrupt":
            why = f"is corrupt: {found.problem}. `kr db restore FILE` brings a backup back, if there is one"
            yield about("error", message=why, repair=_ANEW, fix=self._replace)
        elif found.problem is not None:
            yield about("error", message=found.problem + _ADVICE.get(found.state, ""))

    def check_tracked(self) -> Iterator[Diagnosis]:
        """A database that git keeps: whoever may commit may put anything into it."""
        path = self._store.path
        if (name := tracked_name(path)) is not None:
            why = f"is tracked by git, and is trusted like code: `git rm --cached {name}`, and ignore it"
            yield Diagnosis("tracked", "warning", str(path), why)

    def _replace(self) -> str:
        self._store.close()
        aside = backup.set_aside(self._store.path, self._moment())
        made = self._rebuild()
        return f"{made}; earlier texts, ratings and wordings are in the corrupt file alone, {aside}"

    def _remains(self) -> str:
        """Say what a new database could be made of; empty where there is nothing."""
        exports = [name for name in (INDEX, ARCHIVE) if (self._folder / name).is_file()]
        reports = self._report_paths()
        return " and ".join([*exports, *([counted(len(reports), "report")] if reports else [])])

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

    def check_integrity(self) -> Iterator[Diagnosis]:
        """Broken pages, indexes, references, and texts that are not those that were written."""
        problems = backup.check(self._store)
        about = partial(Diagnosis, "integrity", "error", self._store.location)
        if strange := [line for line in problems if line.endswith(backup.NOT_OURS)]:
            yield about(_some(strange))
        if broken := [line for line in problems if line not in strange]:
            repair = f"back it up and rebuild its indexes; where that is not enough, {_ANEW}"
            yield about(f"is not sound: {_some(broken)}", repair, self._mend)

    def _mend(self) -> str:
        if self._store.is_shared:
            with self._store.write() as tx:
                backup.rebuild_indexes(tx)
            return "the search index was made anew"
        path = self._store.path
        with suppress(StoreError):  # where more than its indexes is broken
            kept = backup.backup(path, None, self._moment())
            with self._store.write() as tx:
                backup.rebuild_indexes(tx)
            if all(line.endswith(backup.NOT_OURS) for line in backup.check(self._store)):
                return f"indexes rebuilt; the database as it was is {kept}"
        return self._replace()

    def check_reports(self) -> Iterator[Diagnosis]:
        """Entries whose report file is missing, edited or can't be read: the last is no reason to touch the entry."""
        with self._store.read() as tx:
            entries = entry_rows.all(tx)
            kept = {entry.id for entry in entries if lookup.text_of(tx, entry.sha256) is not None}
            edited = {entry.id for entry in entries if edit_at(tx, entry.path, entry.sha256) is not None}
        for entry in entries:
            state = self._files.state(entry.path)
            if state == "unreadable":
                why = f"its report {entry.path} can't be read; the entry is left alone"
                yield Diagnosis("unreadable", "error", entry.id, why)
            elif state == "absent":
                yield self._missing(entry, is_kept=entry.id in kept)
            elif entry.id in edited & kept:
                why = f"somebody edited its report {entry.path}; whoever reads it next takes that in"
                repair = "take it in as a finding, unless it must wait for `kr review`"
                fix = partial(self._settle, entry)
                yield Diagnosis("edited_report", "information", entry.id, why, repair, fix)

    def _missing(self, entry: Entry, *, is_kept: bool) -> Diagnosis:
        why = f"its report {entry.path} is missing or empty"
        if is_kept:
            repair = "write the file from the text in the database"
            return Diagnosis("missing_report", "warning", entry.id, why, repair, partial(self._settle, entry))
        repair = "move it to the archive; its text is lost, so that only research can answer again"
        return Diagnosis("missing_report", "error", entry.id, why, repair, partial(self._archive, entry))

    def _settle(self, entry: Entry) -> str:
        """Write a missing file, or take in what somebody wrote into it, as whoever reads the report does."""
        reports.read_report(self._store, entry)
        if self._files.state(entry.path) != "there":
            raise ReportUnwritable(f"{entry.path} can't be written")
        return "done"

    def _archive(self, entry: Entry) -> str:
        with self._store.write() as tx:
            row = entry_rows.get(tx, entry.id)
            if row is None or self._files.state(row.path) != "absent":
                return "somebody else has put it right"
            entry_rows.archive(tx, entry.id, "manual", self._clock())
        return "archived"

    def check_orphans(self) -> Iterator[Diagnosis]:
        """Report files that no entry has, live or archived."""
        with self._store.read() as tx:
            for path in self._report_paths():
                if reports.holders(tx, "path", path):
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
        text = self._files.read_text(path)
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
            status="stale" if origin_of(text) in {"skeleton", "baseline"} else "fresh",
        )

    def check_export(self) -> Iterator[Diagnosis]:
        """``index.yaml`` and ``_archived-index.yaml`` that don't say what the database says."""
        with self._store.read() as tx:
            live, archived = entry_rows.all(tx), entry_rows.archived_since(tx, 0)
        is_wanted = self._auto_export and bool(live or archived)
        repair = "export both files; an index that kr did not write is imported first"
        for name, text in ((INDEX, render_index(live)), (ARCHIVE, "".join(render_archive(archived)))):
            path = self._folder / name
            about = partial(Diagnosis, "export", subject=str(path))
            if not path.exists() and is_wanted:
                yield about("warning", message="is missing", repair=repair, fix=self._export)
            elif path.exists() and not path.is_file():
                why = "is not a regular file; move it away, and the next export writes the file"
                yield about("error", message=why)
            elif path.exists() and path.read_bytes() != text.encode():
                why = "differs from the database, as it does after each hit"
                yield about("information", message=why, repair=repair, fix=self._export)

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
