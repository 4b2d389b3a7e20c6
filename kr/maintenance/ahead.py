"""Entries that the exports tell of and the database doesn't know: it is an older copy (SPEC 6.5).

Their rows are taken in before anything is exported over them, and before their reports count as orphans.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kr.maintenance.findings import Finding, Patient
from kr.maintenance.rebuild import EXPORTS, take_in
from kr.reports.template import read_version
from kr.store.bulk import is_newer, is_same
from kr.store.claims import Claim
from kr.store.hashing import decoded, digest
from kr.store.incoming import Incoming
from kr.store.keys import pair_of
from kr.store.rows import Archived
from kr.store.standing import standing
from kr.text.counting import counted
from kr.text.inline import plain_line
from kr.transfer.export import ARCHIVE, INDEX, is_ours
from kr.transfer.import_yaml import told_in
from kr.values import Entry


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database knew when it was looked at: rows by id, and which exports it wrote itself (``own``)."""

    patient: Patient
    live: dict[str, Entry]
    archived: dict[str, list[Claim]]
    paths: set[str]
    own: frozenset[str]

    def lacks(self, told: Incoming) -> bool:
        """Tell whether an item of the exports is news.

        A live one that a row has is news when it was accessed later, or its report is the newer one; one that no
        row has, when its report is there, for a look-up removes entries whose report is gone. What the database
        told itself was later only if rows went by no way of kr's.
        """
        if told.departure is not None:
            return ARCHIVE not in self.own and self._lacks_archived(told.departure.at, told)
        row = self.live.get(told.id or "")
        if row is not None and pair_of(row.framework, row.topic) == pair_of(told.framework, told.topic):
            is_later = INDEX not in self.own and is_newer(told.last_accessed, row.last_accessed)
            return is_later or self._is_overtaken(row, told)
        return (
            told.path not in self.paths and standing(self.patient.knowledge_base, told.path).state == "there"
        )

    def _lacks_archived(self, at: str | None, told: Incoming) -> bool:
        """An archived item never goes by itself; but it may be live again, and was accessed then."""
        if told.id is None:
            return told.path not in self.paths
        if any(is_same(told, claim) for claim in self.archived.get(told.id, ())):
            return False
        row = self.live.get(told.id)
        return row is None or is_newer(at, row.last_accessed)

    def _is_overtaken(self, row: Entry, told: Incoming) -> bool:
        """Tell whether a row's report is one that the database never had, of the version that is told instead.

        An export tells days, so that of two states of one day neither is the later one by itself.
        """
        version = told.framework_version
        if version in {None, row.framework_version} or told.path != row.path or told.last_accessed is None:
            return False
        content = self.patient.reports.read(row.path) or b""
        shown = read_version(content.decode(errors="replace"))
        if not row.last_accessed.startswith(told.last_accessed) or shown != plain_line(version or ""):
            return False
        with self.patient.store.read() as unit:
            return digest(decoded(content)) != row.sha256 and not unit.revisions.has(digest(decoded(content)))


def check_ahead(patient: Patient) -> Iterator[Finding]:
    """Exports that are ahead of the database."""
    if not patient.is_at_home:
        return
    number = len(news(patient))
    if number:
        yield Finding(
            check="ahead",
            severity="warning",
            subject=str(patient.knowledge_base),
            message=f"index.yaml and _archived-index.yaml tell of {counted(number, 'entry', 'entries')} that the "
            "database doesn't have, or has as an earlier state: it may be an older copy",
            repair="take in what they tell, as `kr import-yaml` does",
            fix=lambda: take_in(patient, _known(patient).lacks),
        )


def news(patient: Patient) -> list[Incoming]:
    """Return what the exports tell and the database doesn't know."""
    files = [file for file in (patient.knowledge_base / name for name in EXPORTS) if file.is_file()]
    if not files:
        return []
    known, now = _known(patient), patient.clock()
    return [told for file in files for told in told_in(file, now=now) if known.lacks(told)]


def _known(patient: Patient) -> _Known:
    own = frozenset(name for name in EXPORTS if is_ours(patient.store, patient.knowledge_base / name))
    archived: dict[str, list[Claim]] = {}
    with patient.store.read() as unit:
        live = {entry.id: entry for entry in unit.entries.all()}
        for row in unit.archive.all():
            archived.setdefault(row.entry.id, []).append(_claim(row))
        return _Known(patient, live, archived, unit.upkeep.known_paths(), own)


def _claim(row: Archived) -> Claim:
    return Claim(
        id=row.entry.id,
        path=row.entry.path,
        pair=pair_of(row.entry.framework, row.entry.topic),
        last_accessed=row.entry.last_accessed,
        archived_at=row.archived_at,
        framework_version=row.entry.framework_version,
    )
