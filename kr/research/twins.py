"""Whether a new report says what a related entry says: then that one is renewed, and no second one kept (SPEC 3.2, 3.8).

Entries of one answer keep each other out: of two that are equally likely neither is far ahead, and kr becomes sure of none.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kr.freshness import Limits, judge, major_key
from kr.matching.decide import CONTRADICTED, decide
from kr.matching.evidence import Candidate, asked_of, weigh
from kr.matching.terms import TOPIC, WORDINGS, Keys, fillers, terms
from kr.matching.weights import DEFAULT, Learned
from kr.reports.template import ATTRIBUTION, SUMMARY, read_shape
from kr.research.candidates import gather
from kr.values import Confidence, Entry, MatchRules, Query

if TYPE_CHECKING:
    from kr.reports.report import Report
    from kr.store.session import UnitOfWork

_ALONE = Learned(DEFAULT.fitted, DEFAULT.least)
"""Without how far an entry is ahead: one that is looked at alone is ahead of nobody."""
_SURENESS: tuple[Confidence, ...] = ("low", "medium", "high")


def twin_of(
    unit: "UnitOfWork",
    query: Query,
    report: "Report",
    aliases: Mapping[str, str],
    *,
    limits: Limits,
    now: datetime,
) -> Entry | None:
    """Return the closest entry of the same major version whose summary and first source a new report has, perhaps with more.

    Each is looked at alone: beside entries that answer the same none is likely (two of a stranger's seven had 0.06).
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
        and _is_kindred(query, gathered.best[it.id])
    ]
    same = gathered.candidates([it for it in mine if _is_said(substance(text_of(it)), said)])
    return next((it.entry for it in same if _is_related(query, it)), None)


def _is_related(query: Query, candidate: Candidate) -> bool:
    """Tell whether the need may be the same: likely enough, taken alone, and no opposite or sibling, not even told by the way."""
    alone = decide(query, [candidate], MatchRules(), learned=_ALONE).considered[0]
    (evidence,) = weigh(asked_of(query), [candidate])
    return alone.likelihood > CONTRADICTED and evidence.comparison.contradiction is None


def _is_kindred(query: Query, keys: Keys) -> bool:
    """Tell whether a telling word of the topic stands in the entry's topic, or in the words that it answered before.

    A README answers much with its one passage: what has no word in common stays apart.
    """
    words = {term.text for term in terms(query.topic)} - fillers()
    return any(keys.get(word, 0) & (TOPIC | WORDINGS) for word in words)


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
