"""The operations of kr over one configuration, each once: what the command line, MCP and HTTP call."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kr.errors import ConfigError, FieldError, InvalidRequest, KrError, StoreError, UnknownEntry
from kr.research.decide import with_confidence
from kr.research.service import Clock, Progress, ResearchService
from kr.settings import Settings, load_settings
from kr.store.engine import Store
from kr.store.files import new_id
from kr.text import fit, sections
from kr.text import section as section_of
from kr.transfer import has_export

if TYPE_CHECKING:
    from kr.catalog import Catalog
    from kr.lessons.record import RecordEnvelope
    from kr.lessons.review import Lessons
    from kr.models import Writer
    from kr.research.finding_text import RateResults, SaveEnvelope
    from kr.research.findings import Findings
    from kr.transfer.import_yaml import Imported

logger = logging.getLogger(__name__)

_LONGEST_TIMEOUT = 60.0


Research = TypeVar("Research", bound=ResearchService)


class App:
    """The operations of kr over one configuration. Close it, or use it as a context manager."""

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        cwd: str | Path,
        progress: Progress = lambda _: None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.store = Store(
            settings.database_url,
            settings.knowledge_base,
            max_entries=settings.knowledge_research.max_entries,
            archive_after_days=settings.knowledge_research.archive_after_days,
            # The overall deadline must leave time for an answer.
            timeout=min(_LONGEST_TIMEOUT, settings.overall_timeout / 2),
        )
        self.environ = environ
        self.cwd = Path(cwd)
        self._progress = progress
        self.clock = clock
        self._is_index_taken = False
        self.serves_one = False
        """Whether one client alone talks to this process (``kr mcp``): its sessions are not independent of each other."""
        self.server_timeout = 60.0
        """Seconds that the server of ``KR_SERVER`` has for whatever is no research."""

    @classmethod
    def open(cls, config: str | None, knowledge_base: str | None, *, progress: Progress) -> Self:
        """Build the operations from the environment and the configuration. Raises ``ConfigError``."""
        environ = dict(os.environ)
        try:
            cwd = Path.cwd()
        except OSError as error:
            raise ConfigError(f"the working directory is gone: {error.strerror}") from error
        settings = load_settings(config=config, knowledge_base=knowledge_base, environ=environ, cwd=cwd)
        for warning in settings.warnings:
            logger.warning("%s", warning)
        return cls(settings, environ=environ, cwd=cwd, progress=progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.store.close()
        except StoreError as error:
            logger.warning("%s", error)

    @cached_property
    def research(self) -> ResearchService:
        """Requests of F1: research, and lessons for a phase."""
        return self._research(ResearchService)

    def _research(self, kind: type[Research]) -> Research:
        return kind(
            self.settings,
            self.store,
            environ=self.environ,
            cwd=self.cwd,
            progress=self._progress,
            clock=self.clock,
        )

    def explain(self, request: bytes | Mapping[str, Any]) -> dict[str, Any]:
        """Say what the cache would answer to a research request, and why. Raises ``InvalidRequest``."""
        return self.research.explain(request)

    def stats(self) -> dict[str, Any]:
        from kr.stats import collect  # heavy

        waiting = 0
        if self.store.exists():
            with self.store.read(), self.lessons() as lessons:  # a database that can't serve is named once
                waiting = len(lessons.quarantined())
        counted = collect(self.store, self.settings, now=self.clock())
        return {**counted, "lessons": {**counted["lessons"], "quarantined": waiting}}

    def doctor(self, *, repair: bool = False, online: bool = False) -> dict[str, Any]:
        """Examine the knowledge base, and repair it: ``{knowledge_base, problems, findings, repaired}``.

        ``online`` also asks each configured source and model one cheap question; nothing is charged or kept.
        """
        from kr.doctor import Doctor, check_sources  # heavy

        folder, wanted = self.settings.knowledge_base, self.settings.knowledge_research.auto_export
        doctor = Doctor(self.store, folder, auto_export=wanted, clock=self.clock)
        repaired = doctor.repair() if repair else []
        found = [*doctor.findings(), *(check_sources(self.settings, self.environ) if online else ())]
        return {
            "knowledge_base": str(folder),
            "problems": sum(finding.severity != "information" for finding in found),
            "findings": [finding.plain() for finding in found],
            "repaired": repaired,
        }

    @contextmanager
    def lessons(self, **waits: float) -> "Iterator[Lessons]":
        """Open the project's lessons for people; ``waits`` as in ``open_lessons``."""
        from kr.lessons.file import open_lessons  # heavy
        from kr.lessons.review import Lessons  # heavy

        with open_lessons(self.settings, **waits) as file:
            yield Lessons(file, clock=self.clock)

    def record_lessons(self, request: bytes | Mapping[str, Any], **waits: float) -> "RecordEnvelope":
        """Record what an agent's return teaches: any bytes or plain data in, an envelope out; ``waits`` as in ``open_lessons``."""
        from kr.lessons.file import open_lessons  # heavy
        from kr.lessons.record import record  # heavy

        with open_lessons(self.settings, **{"timeout": _LONGEST_TIMEOUT, **waits}) as file:
            return record(request, file, self.settings, now=self.clock())

    def entries(self, **page: Any) -> dict[str, Any]:
        """Give some of the live entries, the last accessed first: ``{entries, total}``; see ``Catalog.page``."""
        return self.catalog.page(**page)

    def entry(self, entry_id: str, *, report: bool = False) -> dict[str, Any]:
        """Give a live entry; its report has the confidence that it has now."""
        found = self.catalog.entry(entry_id, report=report)
        if found.get("report"):
            found["report"] = with_confidence(found["report"], found["confidence"])
        return found

    def read_report(self, entry_id: str, *, section: str | None = None, max_tokens: int) -> dict[str, Any]:
        """Give a report or one section, at most ``max_tokens`` long. Raises ``UnknownEntry``, ``InvalidRequest``."""
        found = self.entry(entry_id, report=True)
        text = found["report"]
        if text is None:
            raise UnknownEntry(f"{entry_id}: its report is lost; the next research writes it again")
        shown = text if section is None else section_of(text, section)
        if shown is None:
            raise InvalidRequest(FieldError("section", f"there are {', '.join(sections(text))}"))
        names = ("id", "framework", "framework_version", "topic", "confidence", "origin")
        cut, is_cut = fit(shown, max_tokens)
        return {**{key: found[key] for key in names}, "text": cut, "is_cut": is_cut}

    def search_all(self, query: str, *, framework: str | None = None, limit: int = 10) -> dict[str, Any]:
        """Find entries and lessons, best first.

        ``{entries: [{id, framework, framework_version, topic, status, passage}], lessons: [{id, phase, passage}]}``.
        """
        with self.lessons() as service:
            service.refresh()
        rows = self.catalog.search(query, framework=framework, limit=limit)
        found = [{name: value for name, value in row.items() if name != "question"} for row in rows]
        return {"entries": found, "lessons": self.catalog.search_lessons(query, limit=limit)}

    @cached_property
    def findings(self) -> "Findings":
        """Saving findings, and ratings."""
        from kr.research.findings import Findings  # heavy

        return Findings(self.research, export=self._export_after_change, serves_one=self.serves_one)

    def save_finding(self, data: bytes | Mapping[str, Any], writer: "Writer | None" = None) -> "SaveEnvelope":
        """Keep what was found out and proved, of a document or plain data. ``writer`` is a person; None: the agent of the session that ``data`` names."""
        self.import_on_first_use()
        return self.findings.save(data, writer)

    def rate_report(
        self, entry_id: str, data: Mapping[str, Any], writer: "Writer | None" = None
    ) -> "RateResults":
        """Note whether a report worked. Raises ``InvalidRequest``, ``UnknownEntry``. ``writer`` as in ``save_finding``."""
        return self.findings.rate(entry_id, data, writer)

    def decide(self, waiting_id: str, *, is_approved: bool) -> dict[str, Any]:
        """Let through, or drop, a finding or a lesson that was held back. Raises ``UnknownEntry``."""
        from kr.research.findings import HELD  # heavy
        from kr.store.saving import HELD_FILE  # heavy

        if not waiting_id.startswith((HELD, HELD_FILE)):
            with self.lessons() as lessons:
                return lessons.mark(waiting_id, "approved_at" if is_approved else "retired_at", is_set=True)
        return self.findings.decide(waiting_id, is_approved=is_approved)

    def review(self) -> dict[str, Any]:
        """Tell what waits for a person: findings and lessons that were held back, entries rated wrong."""
        waiting = self.findings.review()
        with self.lessons() as lessons:
            return {**waiting, "lessons": lessons.quarantined()}

    @property
    def catalog(self) -> "Catalog":
        from kr.catalog import Catalog  # heavy

        self.import_on_first_use()
        return Catalog(
            store=self.store,
            config=self.settings.knowledge_research,
            clock=self.clock,
            export=self._export_after_change,
        )

    def versions(
        self, project: Path | None = None, *, everything: bool = False, mark_stale: bool = False
    ) -> list[dict[str, Any]]:
        """List what a project depends on; ``mark_stale`` marks entries of another major version."""
        from kr.project import list_versions  # heavy

        catalog, folder = self.catalog, self.cwd / (project or ".")
        rows = list_versions(
            folder, self.store, everything=everything, mark_stale=mark_stale, environ=self.environ
        )
        if any(row.get("marked_stale") for row in rows):
            catalog.export()
        return rows

    def warm(self, project: Path | None = None, *, names: Sequence[str] = ()) -> list[dict[str, Any]]:
        """List what a project depends on, or what is named, and what the cache holds and lacks of it."""
        from kr.project import needs  # heavy

        self.import_on_first_use()
        config, folder = self.settings.knowledge_research, self.cwd / (project or ".")
        return needs(folder, self.store, config, self.clock(), names=names, environ=self.environ)

    def warm_up(
        self, project: Path | None = None, *, names: Sequence[str] = (), **run: Any
    ) -> list[dict[str, Any]]:
        """Research what the cache lacks of a project's frameworks, within one budget; ``run`` as in ``research_needs``."""
        from kr.project import research_needs  # heavy

        found, session_id = self.warm(project, names=names), f"warm-{new_id()}"
        options = {"max_calls": None, "limit": None, **run}
        return research_needs(found, self.research.document, session_id=session_id, **options)

    def export_yaml(self, output: Path | None = None) -> dict[str, Any]:
        from kr.transfer.export_yaml import export_yaml  # heavy

        self.import_on_first_use()
        folder = None if output is None else self.cwd / output
        return export_yaml(self.store, self.settings.knowledge_base, folder)

    def import_yaml(self, sources: Sequence[Path]) -> "Imported":
        """Take folders or single index files in, then export what came of it, where that is wanted."""
        from kr.transfer.import_yaml import import_yaml  # heavy

        self.import_on_first_use()
        paths = [self.cwd / source for source in sources]
        result = import_yaml(self.store, self.settings.knowledge_base, paths, now=self.clock())
        if result.has_changed:
            self._export_after_change()
        return result

    def _export_after_change(self) -> list[str]:
        """Write the YAML files, where that is wanted; return what went wrong, which changes nothing else."""
        if not self.settings.knowledge_research.auto_export:
            return []
        from kr.transfer.export_yaml import refresh_exports  # heavy

        try:
            refresh_exports(self.store, self.settings.knowledge_base)
        except KrError as error:
            logger.warning("%s", error)
            return [f"export_failed: {error}"]
        return []

    def import_on_first_use(self) -> None:
        """Take in an ``index.yaml`` beside an empty database, looked for until it went well once."""
        if self._is_index_taken:
            return
        if not has_export(self.settings.knowledge_base):
            return  # also where it may not be looked for: the database then says so
        from kr.transfer.import_yaml import import_on_first_use  # heavy

        try:
            import_on_first_use(self.store, self.settings.knowledge_base, now=self.clock())
            self._is_index_taken = True
        except StoreError as error:
            logger.debug("%s", error)
