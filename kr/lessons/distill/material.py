"""Which of an agent's findings becomes the lesson of which event, with its one reference (seed 003, step 2)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kr.lessons.columns import columns
from kr.lessons.distill.distill import COLUMNS, distill, is_worth_keeping, says_what_to_do
from kr.lessons.distill.scrub import relative_path
from kr.lessons.events import phase_tag
from kr.lessons.line import Lesson, clean_ref, cleaned
from kr.lessons.returned import AgentReturn, Finding
from kr.values import EventType

_LEAST_COLUMNS = 96
_FRAME_COLUMNS = 12
_FIXED: EventType = "dev_failure_auto_fixed"
_RESEARCH_TIMEOUT = (
    "Narrow the question to knowledge-researcher or raise timeout_seconds: the research timed out"
)
_LOOKED_AT = 8000
# What is made, kept or installed, not written in the project.
_PRODUCT = re.compile(
    r"(?:^|/)(?:dist|build|target|out|node_modules|site-packages|dist-packages|python3[.\d]*|gems|vendor|coverage|htmlcov|logs?|tmp|_next|\.next|__pycache__"
    r"|test-results|playwright-report|\w*-reports?|screenshots?|\.cargo|\.m2|\.rustup|rustc|pkg/mod|usr/(?:local/)?(?:lib|go))/"
    r"|\.(?:log|out|lock|map|pyc|class|snap|png|jpe?g|gif|webp|webm|zip|gz|jar|war|min\.js)(?::\d+)?$|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|go\.sum)$",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"(?<![\w.:@/\\-])((?:\.?/)?(?:[\w.@-]{1,60}/){1,12}[\w.@-]{1,80}\.(?:py|pyi|tsx?|jsx?|mjs|cjs|vue|svelte|java|kt|scala|go|rs|rb|php|cs|swift|dart|c|cc|cpp|h|hpp|sh|sql|tf|ya?ml|toml))"
    r"(?::|\(|\"?,? line )([1-9][0-9]{0,5})\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the request says beside the return; all of it optional."""

    code_paths: tuple[str, ...] = ()
    framework: str = ""
    additional: str = ""
    project_root: str | None = None


def lesson_of(
    event: EventType,
    phase: str,
    returned: AgentReturn,
    context: Context,
    *,
    date: str,
    used: Sequence[str] = (),
) -> Lesson | None:
    """Return the lesson of one event; ``None`` when nothing in the return tells anything.

    ``used`` are the summaries that earlier events of the phase took: another finding is preferred to the same
    one again, which is returned where there is no other, and is then a duplicate.
    """
    again: Lesson | None = None
    for finding in _findings(event, phase, returned, context):
        ref = _ref(finding, returned, context)
        # What fits beside the reference is injected whole later.
        room = COLUMNS - _FRAME_COLUMNS - columns(ref) if ref else COLUMNS
        summary = distill(
            finding.complaint,
            finding.remedy,
            context.framework,
            max(room, _LEAST_COLUMNS),
            is_report=event == _FIXED and finding.complaint == returned.summary,
        )
        place = _named_path(finding, context.project_root) if summary and not ref else None
        if summary and place and columns(summary) + columns(place) + _FRAME_COLUMNS <= COLUMNS:
            ref = place
        lesson = summary and cleaned(Lesson(date=date, tags=(phase,), summary=summary, ref=ref))
        if lesson and lesson.summary not in used:
            return lesson
        again = again or lesson or None
    return again


def _findings(event: EventType, phase: str, returned: AgentReturn, context: Context) -> Iterator[Finding]:
    """Yield what may tell about the event, the most telling first."""
    milder = tuple(issue for issue in returned.issues if issue.severity != "high")
    severe = _with_remedies_first(returned.severe)
    if event == "high_severity_issues":
        yield from severe
    if event == _FIXED and returned.remedy:
        complaint = next((error.complaint for error in returned.errors), returned.summary)
        yield Finding(complaint=complaint, remedy=returned.remedy)
    others = _with_remedies_first((*returned.errors, *milder))
    given = [finding for finding in others if finding.remedy]
    # A person's own words about what to do tell more than a trace.
    is_told = event == _FIXED or says_what_to_do(returned.summary)
    told = [Finding(complaint=returned.summary)] if is_told else []
    others = [*given, *told, *others[len(given) :]]
    # Severe issues have an event of their own: another one of its phase takes them when nothing else is left,
    # and one of another phase when they say what to do and the rest does not.
    is_theirs = phase == phase_tag("high_severity_issues", phase)
    yield from others if is_theirs else sorted([*others, *severe], key=_says_nothing_to_do)
    yield from severe
    yield Finding(complaint=returned.summary, remedy=returned.remedy)
    yield Finding(complaint=context.additional)
    if event == "knowledge_researcher_timeout":
        yield Finding(complaint=_RESEARCH_TIMEOUT)


def _with_remedies_first(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: not finding.remedy)


def _says_nothing_to_do(finding: Finding) -> bool:
    return not finding.remedy and not is_worth_keeping(finding.complaint)


def _ref(finding: Finding, returned: AgentReturn, context: Context) -> str | None:
    """Choose the most relevant path: the finding's own, then a source before a product, one that the text names first."""
    text = f"{finding.complaint} {finding.remedy}"
    known = (*context.code_paths, *returned.artifacts)
    chosen = finding.path or min(known, key=lambda path: _distance(path, text), default=None)
    if chosen is None:
        return None
    return clean_ref(relative_path(clean_ref(chosen) or "", context.project_root))


def _distance(path: str, text: str) -> tuple[bool, bool, bool]:
    plain = path.replace("\\", "/")
    return _PRODUCT.search(plain) is not None, plain.partition(":")[0] not in text, _base(path) not in text


def _named_path(finding: Finding, root: str | None) -> str | None:
    """Return the source of the project that the complaint names with its line: a traceback's last, else the first."""
    text = finding.complaint
    is_reversed = "Traceback (most recent call last)" in text
    looked_at = text[-_LOOKED_AT:] if is_reversed else text[:_LOOKED_AT]
    places = [found for found in _PLACE.finditer(looked_at) if not _PRODUCT.search(found[1])]
    if not places:
        return None
    path, line = places[-1 if is_reversed else 0].groups()
    return clean_ref(f"{relative_path(path, root)}:{line}")


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].partition(":")[0] or path
