"""Entries that the exports tell of and the database doesn't know: it is an older copy (SPEC 6.5).

Their rows are taken in before anything is exported over them, and before their reports count as orphans.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kr.maintenance.findings import Finding, Patient
from kr.maintenance.rebuild import EXPORTS, take_in
from kr.rules.counting import counted
from kr.store.bulk import is_newer
from kr.store.claims import Pair, pair_of
from kr.store.incoming import Incoming
from kr.store.standing import standing
from kr.transfer.export import is_ours
from kr.transfer.import_yaml import told_in


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database knew when it was looked at. ``live``: pair and last access by id."""

    patient: Patient
    live: dict[str, tuple[Pair, str]]
    ids: set[str]
    paths: set[str]

    def lacks(self, told: Incoming) -> bool:
        """Tell whether an item of the exports is news.

        A live one that a row has is news when it was accessed later; one that no row has, when its report is
        there, for a look-up removes entries whose report is gone. An archived one never goes by itself.
        """
        if told.departure is not None:
            return told.path not in self.paths if told.id is None else told.id not in self.ids
        pair, accessed = self.live.get(told.id or "", (None, ""))
        if pair == pair_of(told.framework, told.topic):
            return is_newer(told.last_accessed, accessed)
        return (
            told.path not in self.paths and standing(self.patient.knowledge_base, told.path).state == "there"
        )


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
    """Return what the exports tell and the database doesn't know. One that it wrote itself tells it nothing."""
    files = [patient.knowledge_base / name for name in EXPORTS]
    files = [file for file in files if file.is_file() and not is_ours(patient.store, file)]
    if not files:
        return []
    known, now = _known(patient), patient.clock()
    return [told for file in files for told in told_in(file, now=now) if known.lacks(told)]


def _known(patient: Patient) -> _Known:
    with patient.store.read() as unit:
        live = {it.id: (pair_of(it.framework, it.topic), it.last_accessed) for it in unit.entries.all()}
        archived = {row.entry.id for row in unit.archive.all()}
        return _Known(patient, live, live.keys() | archived, unit.upkeep.known_paths())
