"""Whether a new report says what a related entry says: then that one is renewed, and no second one kept (SPEC 3.2, 3.8).

Entries of one answer keep each other out: of two that are equally likely neither is far ahead, and kr becomes sure of none.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kr.freshness import Limits, judge, major_key
from kr.matching.decide import contradiction
from kr.matching.evidence import asked_of, weigh
from kr.reports.template import ATTRIBUTION, SUMMARY, read_shape
from kr.research.candidates import gather
from kr.values import Confidence, Entry, Query

if TYPE_CHECKING:
    from kr.reports.report import Report
    from kr.store.unit import Unit

_SURENESS: tuple[Confidence, ...] = ("low", "medium", "high")


def twin_of(
    unit: "Unit",
    query: Query,
    report: "Report",
    aliases: Mapping[str, str],
    *,
    limits: Limits,
    now: datetime,
) -> Entry | None:
    """Return the closest entry of the same major version whose summary and first source a new report has, perhaps with more.

    How likely it is in itself is not asked: beside entries that answer the same, none is (two of a stranger's seven had 0.06).
    None where the topic has an entry of its own, which is renewed as ever; where the new report is less sure than the one that it
    would take the place of; and where an entry is about a sibling or the opposite of what is asked, whatever it says.
    """
    said = substance(report.text)
    if said is None or report.origin not in {"researched", "installed"}:
        return None
    if unit.entries.of_topic(query.framework, query.topic, query.framework_version) is not None:
        return None

    def text_of(entry: Entry) -> str:
        return unit.revisions.text(entry.sha256) or ""

    gathered = gather(unit, query, aliases, read=text_of)
    mine = [
        it
        for it in sorted(gathered.entries, key=lambda it: [*gathered.best].index(it.id))
        if judge(it, query.framework_version, limits, now).status != "archived"
        and _may_be_renewed(it, query, report)
    ]
    same = gathered.candidates([it for it in mine if _is_said(substance(text_of(it)), said)])
    asked = asked_of(query)
    found = zip(same, weigh(asked, same), strict=True)
    return next((it.entry for it, evidence in found if contradiction(asked, it, evidence) is None), None)


def _may_be_renewed(entry: Entry, query: Query, report: "Report") -> bool:
    is_of_major = major_key(entry.framework_version) == major_key(query.framework_version)
    is_less_sure = _SURENESS.index(report.confidence) < _SURENESS.index(entry.confidence)
    return is_of_major and entry.origin == report.origin and not is_less_sure


class Substance(NamedTuple):
    """The lines of a report's summary, and where it has that from."""

    lines: frozenset[str]
    source: str


def substance(text: str) -> Substance | None:
    """Return what a report says first; None where it does not follow the template."""
    shape = read_shape(text)
    if shape is None:
        return None
    lines = frozenset(line for line in shape.sections[SUMMARY].splitlines() if line.strip("> "))
    return Substance(lines, shape.sections[ATTRIBUTION].partition("\n")[0])


def _is_said(known: Substance | None, new: Substance) -> bool:
    """Tell whether a new report says all that a known one says first: who asked for that loses nothing by the new one."""
    return known is not None and known.source == new.source and known.lines <= new.lines
